"""The structure of the package: what docs/architecture.md and the docstrings of packages say against the tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import tapegen as tg

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tapegen"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
UNLISTED = {"", "tf", "tf/keras"}  # the modules of `tf` are TensorFlow's
MOST_FILES = 16
MOST_LAYERS = 14
MOST_WORDS = 1200


def packages() -> Iterator[str]:
    for file in sorted(PACKAGE.rglob("__init__.py")):
        yield file.parent.relative_to(PACKAGE).as_posix().removeprefix(".")


def members(package: str) -> set[str]:
    """Modules and packages inside of a package."""
    folder = PACKAGE / package
    modules = {file.stem for file in folder.glob("*.py")} - {"__init__", "__main__"}
    return modules | {file.parent.name for file in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("package", [package for package in packages() if package not in UNLISTED])
def test_a_package_lists_its_modules(package: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8")))
    assert text is not None
    head, _, rest = text.partition("\n")
    assert head.endswith(".")
    listed = re.findall(r"^\* `(\w+)` - ", rest, re.MULTILINE)
    assert sorted(listed) == sorted(members(package))


@pytest.mark.parametrize("package", list(packages()))
def test_a_package_is_small(package: str) -> None:
    assert len([file for file in (PACKAGE / package).glob("*.py") if file.stem != "__init__"]) <= MOST_FILES


def test_there_is_no_import_cycle() -> None:
    """Imports of types and imports inside of functions included."""
    graph = grimp.build_graph("tapegen", cache_dir=None)
    entry = {module for module in graph.modules if (PACKAGE / Path(*module.split(".")[1:]) / "__init__.py").exists()}
    imports = {
        module: graph.find_modules_directly_imported_by(module) - entry
        for module in graph.modules
        if module not in entry
    }
    assert cycles(imports) == []


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The modules that import each other, one list for each cycle."""
    left, changed = {node: set(edges) for node, edges in graph.items()}, True
    while changed:  # what imports nothing any more, or is imported by nothing, is in no cycle
        used = set().union(*left.values()) if left else set()
        free = {node for node, edges in left.items() if not edges & left.keys() or node not in used}
        left = {node: edges - free for node, edges in left.items() if node not in free}
        changed = bool(free)
    reach = {node: closure(left, node) for node in left}
    return sorted({tuple(sorted(m for m in reach[n] if n in reach[m])) for n in left} - {()})  # type: ignore[return-value]


def closure(graph: dict[str, set[str]], node: str) -> set[str]:
    found: set[str] = set()
    waiting = [node]
    while waiting:
        for following in graph.get(waiting.pop(), set()) - found:
            found.add(following)
            waiting.append(following)
    return found


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [("b", "c")]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_the_page_shows_the_layers_that_are_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert "exclude_type_checking_imports" not in settings["tool"]["importlinter"]
    checked = [{unit.strip().removeprefix("tapegen.") for unit in layer.split("|")} for layer in contract["layers"]]
    (line,) = re.findall(r"^    (errors < .*)$", PAGE, re.MULTILINE)
    shown = [{unit.strip() for unit in layer.split("|")} for layer in line.split(" < ")]
    assert shown == checked[::-1]
    assert len(shown) <= MOST_LAYERS
    assert set().union(*shown) == members("")


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= MOST_WORDS


def test_the_import_takes_the_modules_that_every_program_needs() -> None:
    """The passes, which a stored program does not need, and other interfaces are imported where they are used."""
    text = "import sys, tapegen; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    later = (
        "aot",
        "batching",
        "export",
        "loops",
        "pipeline.compile",
        "plot",
        "tape",
        "testing",
        "transform.autodiff",
        "transform.recording",
    )
    assert [name for name in loaded if name.startswith(tuple(f"tapegen.{part}" for part in later))] == []
    assert not {"scipy.linalg", "numpy.ma", "matplotlib"}.intersection(loaded)


def test_names_that_are_imported_later_are_there() -> None:
    assert set(tg.__all__) <= set(dir(tg))
    assert [name for name in tg.__all__ if not hasattr(tg, name)] == []
    assert not hasattr(tg, "no_such_name")
