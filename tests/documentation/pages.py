"""Pages and examples as a reader runs them, with or without machine code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tapegen.pipeline.options import Options
from tapegen.rules.rule import Rule

DOCS = Path(__file__).parents[2] / "docs"


def _blocks(page: Path) -> list[tuple[str, str]]:
    """What stands behind the opening fence of each block, and the block."""
    return re.findall(r"^```(\w[^\n]*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def python_of(page: Path) -> str:
    """The Python of a page, as one module: later blocks go on where earlier ones ended."""
    return "\n".join(text for language, text in _blocks(page) if language.startswith("python"))


def promised(page: Path) -> list[str]:
    """What the page says is printed: `print(...)  # this`, `# prints this`, and blocks with `title="prints"`."""
    lines: list[str] = []
    for language, text in _blocks(page):
        if language.startswith("python"):
            lines += re.findall(r"(?:^ *print\(.*\)  # |^ *# prints )(.*)$", text, re.MULTILINE)
        elif 'title="prints"' in language:
            lines += text.splitlines()
    return [line for line in lines if line.strip()]


def run(source: str, path: Path) -> None:
    """Run a module from a file of its own, so that tapegen can read its functions."""
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """`backend="auto"` runs generated Python: compiling takes seconds for each function, and other tests do it."""
    check = Options.__post_init__

    def as_python(self: Options) -> None:
        check(self)
        if self.backend == "auto":
            object.__setattr__(self, "backend", "python")

    monkeypatch.setattr(Options, "__post_init__", as_python)


def is_of_the_package(rule: Rule) -> bool:
    """Whether a rule is none of those that users register."""
    return str(getattr(rule.body or rule.pushforward, "__module__", "tapegen")).partition(".")[0] == "tapegen"
