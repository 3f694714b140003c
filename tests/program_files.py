"""The programs under `tests/programs`: what each differentiates and where.

A program is a module with a docstring, a function `f` (or several named `at_top`, `in_for`, `in_while`, `in_branch`)
and `ARGS`, a tuple or a function that returns fresh arguments.  Optional: `KWARGS`, `WRT` (positions or names; default:
every argument with a floating number in it), `TOL` (relative to the largest entry of a gradient), `UNCOMPILED` (why
generated Python runs in the place of compiled code).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegen import differentiable
from tests.oracle import Estimate, floating, is_floating, leaves, numerical_gradient, with_leaf

FOLDER = pathlib.Path(__file__).parent / "programs"
FUNCTIONS = ("f", "at_top", "in_for", "in_while", "in_branch")
TOL = 1e-7


@dataclasses.dataclass(frozen=True)
class Program:
    """One function to differentiate and where."""

    name: str
    function: Callable[..., Any]
    module: Any

    def args(self) -> tuple:
        source = self.module.ARGS
        return source() if callable(source) else copy.deepcopy(source)

    def kwargs(self) -> dict[str, Any]:
        return copy.deepcopy(getattr(self.module, "KWARGS", {}))

    @property
    def tol(self) -> float:
        return getattr(self.module, "TOL", TOL)

    @property
    def wrt(self) -> tuple:
        default = tuple(k for k, arg in enumerate(self.args()) if floating(arg))
        return getattr(self.module, "WRT", default)

    def positions(self) -> list[int]:
        names = list(inspect.signature(self.function).parameters)
        return [entry if isinstance(entry, int) else names.index(entry) for entry in self.wrt]

    def decorated(self, backend: str) -> Any:
        return differentiable(wrt=self.wrt, backend=backend)(self.function)

    @functools.cached_property
    def plain(self) -> tuple[Any, tuple]:
        """The result of plain Python, and what it leaves in its arguments."""
        args = self.args()
        return self.function(*args, **self.kwargs()), args

    @functools.cached_property
    def weights(self) -> dict[tuple, np.ndarray]:
        """A weight for every floating number of the result; 1 when the result is one number."""
        rng = np.random.default_rng(7)
        parts = floating(self.plain[0])
        if self.is_scalar:
            return {(): np.array(1.0)}
        return {path: rng.uniform(0.5, 1.5, part.shape) for path, part in parts.items()}

    @property
    def is_scalar(self) -> bool:
        return isinstance(self.plain[0], float | np.floating) or (
            is_floating(self.plain[0]) and self.plain[0].ndim == 0
        )

    def value_bar(self) -> Any:
        """The weights in the structure of the result."""
        bar = copy.deepcopy(self.plain[0])
        kinds = dict(leaves(bar))
        for path, weight in self.weights.items():
            leaf = kinds[path]
            cast = weight.astype(leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)(weight)
            bar = with_leaf(bar, path, cast)
        return bar

    @functools.cached_property
    def estimate(self) -> Estimate:
        args, kwargs = self.args(), self.kwargs()
        wanted = self.positions()
        paths = [path for path in floating(args) if path[0] in wanted]
        return numerical_gradient(self.function, args, kwargs, self.weights, paths)


def read(path: pathlib.Path) -> list[Program]:
    """The programs of one file."""
    relative = path.relative_to(FOLDER).with_suffix("")
    module = importlib.import_module(".".join(("tests", "programs", *relative.parts)))
    if not hasattr(module, "ARGS"):  # a module that other programs import
        return []
    return [
        Program(str(relative) if name == "f" else f"{relative}-{name}", getattr(module, name), module)
        for name in FUNCTIONS
        if hasattr(module, name)
    ]


def named(name: str) -> Program:
    """The program with a name, without a look at the others."""
    (found,) = [program for program in read(FOLDER / f"{name.split('-')[0]}.py") if program.name == name]
    return found


def collect() -> list[Program]:
    """Every program under the folder, in order of name."""
    files = [
        path
        for path in sorted(FOLDER.rglob("*.py"))
        if path.name != "__init__.py" and path.relative_to(FOLDER).parts[0] != "random"  # those have other oracles
    ]
    return [program for path in files for program in read(path)]
