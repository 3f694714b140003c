"""What the pages under docs/ show is what happens.

Their Python runs without machine code here; `python -m pytest -m whole tests/documentation` runs it as a reader does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tapegen.rules import registry
from tapegen.tape.tensors.tensor import Traced
from tests.documentation.pages import DOCS, is_of_the_package, promised, python_of, run, without_compiling

# pages whose blocks are programs of their own, or need files beside them
ELSEWHERE = {
    "cache.md": "tests/cli/test_command_line.py",
    "howto/clusters.md": "tests/clusters/test_dask.py",
    "howto/mpi.md": "tests/clusters/test_mpi.py",
    "command_line.md": "tests/cli/test_command_line.py",
    "libraries.md": "tests/export/test_library.py",
    "networks.md": "tests/tape/test_nn.py",
}
PAGES = sorted(
    name for page in DOCS.rglob("*.md") if python_of(page) and (name := str(page.relative_to(DOCS))) not in ELSEWHERE
)


@pytest.fixture(autouse=True)
def own_rules_end_with_the_page() -> Iterator[None]:
    before = dict(registry._RULES)
    yield
    loaded = {func: rule for func, rule in registry._RULES.items() if is_of_the_package(rule)}  # they are loaded once
    registry._RULES.clear()
    registry._RULES.update({**loaded, **before})


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.whole)], ids=["", "compiled"])
@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_is_what_happens(
    page: str, compiled: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Traced, "printed_as", "tg")  # importing tapegen.tf, as other tests do, changes it
    if not compiled:
        without_compiling(monkeypatch)
    monkeypatch.chdir(tmp_path)
    run(python_of(DOCS / page), tmp_path / f"{Path(page).stem}_page.py")
    if lines := promised(DOCS / page):
        assert [line for line in capsys.readouterr().out.splitlines() if line.strip()] == lines


def test_programs_in_c_are_built_and_run(tmp_path: Path) -> None:
    printed = []
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent), "TAPEGEN_CACHE": "0"}
    text = (DOCS / "howto" / "c_programs.md").read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        title = language.partition('title="')[2].rstrip('"')
        if title == "output":
            assert printed.pop() == block
        elif title.startswith("part of "):
            assert block in (tmp_path / title.removeprefix("part of ")).read_text(encoding="utf-8")
        elif title:
            (tmp_path / title).write_text(block, encoding="utf-8")
        for line in block.replace("\\\n", "").splitlines() if language == "sh" else []:
            command = re.sub(r"^python ", f"{sys.executable} ", line)
            done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), line
            printed.append(done.stdout)


def test_pages_that_are_tested_elsewhere() -> None:
    root = DOCS.parent
    for page, test in ELSEWHERE.items():
        assert f'"{page}"' in (root / test).read_text(encoding="utf-8")


def test_every_page_is_on_the_site() -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    nav = re.findall(r"- (?:[^:\n]+: )?([\w/]+\.md)$", (DOCS.parent / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(nav) == sorted(pages)
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w/]+\.md)\)", index)) == pages - {"index.md"}
    for page in pages:
        for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", (DOCS / page).read_text(encoding="utf-8")):
            assert ((DOCS / page).parent / target).is_file(), (page, target)
