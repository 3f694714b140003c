"""Files that a release needs say the same: versions, Pythons, commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")


def test_the_workflow_runs_the_commands_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example, tests = re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[:2]
    commands = re.findall(r"- run: (.*)$", WORKFLOW, re.MULTILINE)
    assert [command.replace(" ${{ matrix.arguments }}", "") for command in commands] == [tests.strip(), example.strip()]


def test_pythons_that_are_named_are_those_that_are_tested() -> None:
    named = [
        name.rpartition(" :: ")[2]
        for name in PROJECT["project"]["classifiers"]
        if re.fullmatch(r".*Python :: 3\.\d+", name)
    ]
    tested = re.search(r"python: \[(.*)\]", WORKFLOW)
    assert tested is not None
    assert [text.strip('"') for text in tested[1].split(", ")] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['project']['version']}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation


def test_the_source_distribution_holds_what_is_there() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name.lstrip("/")).exists() for name in included)
    assert {f"/{path.name}" for path in ROOT.glob("*.md")} <= set(included)
