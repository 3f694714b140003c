"""One random program: its text, its arguments as text, and how to run it."""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

HEADER = "import math\n\nimport numpy as np\n"


@dataclass(frozen=True)
class Program:
    """A module text with a function `f`, and where to run and differentiate it.

    Attributes
    ----------
    source : str
        Text of a module that imports math and numpy and defines `f`.
    args : tuple of str
        One expression per parameter of `f`; evaluated anew for each run, so runs cannot disturb one another.
    wrt : tuple of int
        Positions of the parameters to differentiate by.
    fault : str
        What was planted in the "errors" profile; empty otherwise.
    """

    source: str
    args: tuple[str, ...]
    wrt: tuple[int, ...]
    profile: str = "uniform"
    seed: int = 0
    fault: str = ""
    features: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """A name for the pseudo file; a function of the text alone."""
        digest = hashlib.blake2b((self.source + repr(self.args)).encode(), digest_size=6).hexdigest()
        return f"<random program {digest}>"

    def load(self) -> Callable[..., Any]:
        """The function, as if its module had been imported from a file (`inspect.getsource` works)."""
        name = self.name
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        namespace: dict[str, Any] = {"__name__": "random_program"}
        exec(self._code(), namespace)
        return namespace["f"]

    def forget(self) -> None:
        """Drop the pseudo file."""
        linecache.cache.pop(self.name, None)

    def _code(self) -> CodeType:
        return _compiled(self.source, self.name)

    def arguments(self, numpy: Any = np) -> tuple[Any, ...]:
        """Fresh arguments, made by `numpy` or by another module of its kind."""
        names = {"np": numpy, "frozen": frozen}
        return tuple(eval(_expression(text), names) for text in self.args)

    def tangents(self, numpy: Any = np) -> tuple[Any, ...]:
        """Writable places of double precision with the memory layout of the arguments."""
        names = {"np": numpy, "frozen": lambda x: x}
        return tuple(eval(_expression(text.replace("np.float32", "np.float64")), names) for text in self.args)

    def load_with(self, numpy: Any, mathematics: Any, names: dict[str, Any]) -> Callable[..., Any]:
        """The function over another `numpy`, `math` and other builtins; the text runs unchanged."""
        code = _lifting(self.source, self.name) if "__float__" in names else self._code()
        return run_code(code, numpy, mathematics, names)["f"]


def run_text(text: str, numpy: Any, mathematics: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Execute a module text with its imports answered by other modules, and its floats by `names["__float__"]`."""
    return run_code(_lifting(text, "<generated text>"), numpy, mathematics, names)


def run_code(code: CodeType, numpy: Any, mathematics: Any, names: dict[str, Any]) -> dict[str, Any]:
    modules = {"numpy": numpy, "math": mathematics}

    def load(name: str, *args: Any, **kwargs: Any) -> Any:
        return modules[name] if name in modules else __import__(name, *args, **kwargs)

    namespace: dict[str, Any] = {
        "__name__": "random_program",
        "__builtins__": {**vars(builtins), "__import__": load, **names},
    }
    exec(code, namespace)
    return namespace


class _Lift(ast.NodeTransformer):
    """`0.5` becomes `__float__(0.5)`."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is not float:
            return node
        call = ast.Call(ast.Name("__float__", ast.Load()), [node], [])
        return ast.copy_location(call, node)


@functools.lru_cache(maxsize=64)
def _lifting(source: str, name: str) -> CodeType:
    tree = ast.fix_missing_locations(_Lift().visit(ast.parse(source)))
    return compile(tree, name, "exec")


def frozen(x: np.ndarray) -> np.ndarray:
    """A read-only array."""
    x.setflags(write=False)
    return x


@functools.lru_cache(maxsize=64)
def _compiled(source: str, name: str) -> CodeType:
    return compile(source, name, "exec")


@functools.lru_cache(maxsize=512)
def _expression(text: str) -> CodeType:
    return compile(text, "<argument>", "eval")
