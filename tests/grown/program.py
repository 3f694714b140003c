"""A grown program: statements as text in blocks, printed as a module, loaded so that `inspect` finds its source."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import linecache
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

HEAD = "import dataclasses\nimport math\n\nimport numpy as np\n"
SEPARATION = "\n\n\ndef arguments():"
COUNTER = itertools.count()


@dataclasses.dataclass
class Statement:
    """One statement.

    Attributes
    ----------
    text : str
        The statement, or the first line of a compound one, with its colon.
    body : list of Statement, optional
        Of a compound statement.
    more : list of (str, list of Statement)
        Its further clauses, such as `else:`.
    """

    text: str
    body: list[Statement] | None = None
    more: list[tuple[str, list[Statement]]] = dataclasses.field(default_factory=list)

    def lines(self, indent: str = "") -> Iterator[str]:
        """The lines of its text."""
        for line in self.text.split("\n"):
            yield indent + line
        if self.body is None:
            return
        yield from block_lines(self.body, indent + "    ")
        for head, body in self.more:
            yield indent + head
            yield from block_lines(body, indent + "    ")

    def blocks(self) -> Iterator[list[Statement]]:
        """Its blocks."""
        if self.body is not None:
            yield self.body
        for _, body in self.more:
            yield body


def block_lines(block: list[Statement], indent: str) -> Iterator[str]:
    """The lines of a block; `pass` where it is empty."""
    if not block:
        yield indent + "pass"
    for statement in block:
        yield from statement.lines(indent)


@dataclasses.dataclass
class Program:
    """A module with one function `f`, its arguments, and helpers.

    Attributes
    ----------
    parameters : list of (str, str)
        Names of the parameters, and expressions for the arguments.
    body : list of Statement
        Of `f`, without its last line.
    results : list of str
        Expressions; `f` returns their sum, or them in a structure.
    form : str
        How they are returned: `"number"`, `"tuple"`, `"list"` or `"dict"`.
    helpers : list of Statement
        Definitions in front of `f`.
    """

    parameters: list[tuple[str, str]]
    body: list[Statement] = dataclasses.field(default_factory=list)
    results: list[str] = dataclasses.field(default_factory=list)
    form: str = "number"
    helpers: list[Statement] = dataclasses.field(default_factory=list)

    def last_line(self) -> str:
        """The return statement."""
        if self.form == "number":
            return f"return {' + '.join(self.results) or '0.0'}"
        if self.form == "tuple":
            return f"return {', '.join(self.results)}{',' if len(self.results) == 1 else ''}"
        if self.form == "list":
            return f"return [{', '.join(self.results)}]"
        return "return {" + ", ".join(f'"r{k}": {result}' for k, result in enumerate(self.results)) + "}"

    def text(self) -> str:
        """The module."""
        lines = HEAD.splitlines()
        for helper in self.helpers:
            lines += ["", "", *helper.lines()]
        lines += ["", "", f"def f({', '.join(name for name, _ in self.parameters)}):"]
        for statement in self.body:
            lines += statement.lines("    ")
        lines += ["    " + self.last_line()]
        lines += ["", "", "def arguments():", f"    return ({', '.join(text for _, text in self.parameters)},)"]
        return "\n".join(lines) + "\n"

    def blocks(self) -> Iterator[list[Statement]]:
        """Every block of it, the inner ones last."""
        waiting = [self.helpers, self.body]
        while waiting:
            block = waiting.pop(0)
            yield block
            for statement in block:
                waiting += statement.blocks()

    def copied(self) -> Program:
        """One that shares nothing with it."""
        return copy.deepcopy(self)


@dataclasses.dataclass
class Loaded:
    """A program's function, a function that makes its arguments anew, and what was made of the function."""

    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    text: str
    module: types.ModuleType
    made: dict[Any, Any] = dataclasses.field(default_factory=dict)


class Kept:
    """Programs that differ in their arguments only have one function: it and what is made of it are kept."""

    def __init__(self) -> None:
        self.loaded: dict[str, Loaded] = {}

    def load(self, text: str) -> Loaded:
        """A program, with the function of an earlier one if that is the same."""
        head, separation, rest = text.partition(SEPARATION)
        if head not in self.loaded:
            self.loaded[head] = load(text)
            return self.loaded[head]
        first = self.loaded[head]
        names = dict(first.module.__dict__)
        exec(separation + rest, names)
        return dataclasses.replace(first, arguments=names["arguments"], text=text)


def load(text: str, **names: Any) -> Loaded:
    """Run the text of a program as a module of its own; `names` are put into it beforehand."""
    name = f"grown_{next(COUNTER)}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = types.ModuleType(name)
    module.__file__ = file
    module.__dict__.update(names)
    sys.modules[name] = module  # where dataclasses and pickle look
    exec(compile(text, file, "exec"), module.__dict__)
    return Loaded(module.f, module.arguments, text, module)


def unload(loaded: Loaded) -> None:
    """Forget its source."""
    linecache.cache.pop(loaded.module.__file__ or "", None)
    sys.modules.pop(loaded.module.__name__, None)
