"""docs/system.md against the tree."""

from __future__ import annotations

import fnmatch
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).parent.parent
HOUSE = (ROOT / "docs" / "system.md").read_text(encoding="utf-8")


def named() -> list[str]:
    """What the first column of the file table names: files, patterns, and folders whose every file is meant."""
    rows = re.findall(r"^\| (`.*?) \| .* \|$", HOUSE, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def modules() -> list[str]:
    """The modules of the package, but for those that only mark or start it."""
    found = [path.relative_to(ROOT / "tapegen").as_posix() for path in (ROOT / "tapegen").rglob("*.py")]
    return sorted(name for name in found if not name.endswith(("__init__.py", "__main__.py")))


def covers(name: str, module: str) -> bool:
    return module.startswith(name) if name.endswith("/") else fnmatch.fnmatchcase(module, name)


def test_every_module_has_a_row() -> None:
    assert [module for module in modules() if not any(covers(name, module) for name in named())] == []


def test_every_row_has_a_module() -> None:
    every = [*modules(), "cli/__init__.py"]
    assert [name for name in named() if not any(covers(name, module) for module in every)] == []


def test_the_layers_are_those_that_are_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    checked = [layer.removeprefix("tapegen.") for layer in contract["layers"]]
    (line,) = re.findall(r"^    (errors < .*)$", HOUSE, re.MULTILINE)
    assert line.split(" < ") == checked[::-1]
