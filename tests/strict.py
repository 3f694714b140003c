"""Compiled text run by CPython, slowly: every index is looked at, and fresh memory is full of garbage.

Machine code reads outside an array, or memory that nobody has written, without a word, and mostly finds a number that
looks right.  Here both are errors: an index must lie in `0 .. size - 1`, and `np.empty` gives NaN and absurd integers.
Arithmetic is that of compiled code: what Python refuses (`1 / 0`, `math.log(0.0)`) gives inf and nan.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen.backend.printer.source import PythonSource
from tapegen.errors import CompileLimit
from tapegen.ir import intrinsics
from tapegen.pipeline.artifacts import executables


class OutOfBounds(AssertionError):
    """The text reads or writes where no item is."""


def _checked(array: Any, index: Any) -> Any:
    """The index; whole numbers only: NumPy itself sees to slices, arrays and masks."""
    items = index if isinstance(index, tuple) else (index,)
    whole = all(isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)) for item in items)
    if isinstance(array, np.ndarray) and whole:
        for axis, item in enumerate(items):
            if not 0 <= item < array.shape[axis]:
                raise OutOfBounds(f"index {item} of axis {axis} of an array of shape {array.shape}")
    return index


def _like_machine(numpy_operator: Callable[..., Any]) -> Callable[..., Any]:
    def apply(a: Any, b: Any) -> Any:
        python = all(type(operand) in (bool, int, float) for operand in (a, b))
        with np.errstate(all="ignore"):
            found = numpy_operator(_wide(a), _wide(b))
        return found.item() if python else found

    return apply


def _wide(number: Any) -> Any:
    return np.float64(number) if type(number) is float else np.int64(number) if type(number) is int else number


def _power(a: Any, b: Any) -> Any:
    if type(a) is type(b) is int and b >= 0:
        return a**b
    return _like_machine(np.power)(float(a) if type(a) is int else a, b)


_OPERATORS = {
    ast.Div: ("_divide", _like_machine(np.true_divide)),
    ast.FloorDiv: ("_floor_divide", _like_machine(np.floor_divide)),
    ast.Mod: ("_remainder", _like_machine(np.remainder)),
    ast.Pow: ("_power", _power),
}
_WATCHERS = {"_checked": _checked, **dict(_OPERATORS.values())}


class _Watched(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and not any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
            node.slice = _call("_checked", ast.Name(node.value.id, ast.Load()), node.slice)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        known = _OPERATORS.get(type(node.op))
        return node if known is None else _call(known[0], node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        known = _OPERATORS.get(type(node.op))
        if known is None:
            return node
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], _call(known[0], before, node.value))


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class _Module:
    """A module in which some names mean something else."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self.__dict__ |= {"_module": module, **replaced}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _garbage(make: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def filled(*args: Any, **words: Any) -> np.ndarray:
        array = make(*args, **words)
        kind = array.dtype.kind
        array.fill(np.nan if kind in "fc" else True if kind == "b" else np.iinfo(array.dtype).max // 3)
        return array

    return filled


def _lenient(function: Callable[..., float]) -> Callable[..., float]:
    """A function of `math` that gives nan and inf where Python's raises."""

    def apply(*args: float) -> float:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            pole = args[0] == 0 and function in (math.log, math.log2, math.log10)
            return -math.inf if pole else math.nan

    return apply


_RAISE = "acos acosh asin atanh cos cosh exp expm1 fmod gamma lgamma log log10 log1p log2 pow sin sinh sqrt tan".split()
_NUMPY = _Module(np, empty=_garbage(np.empty), empty_like=_garbage(np.empty_like))
_INTRINSICS = _Module(intrinsics, tell=lambda *_: None)  # messages are left out
_MATH = _Module(math, **{name: _lenient(getattr(math, name)) for name in _RAISE})


def build(source: PythonSource, **_: Any) -> Callable[..., Any]:
    """The entry of a compiled text as a function that CPython runs."""
    tree = ast.parse(source.text)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "numba")]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    tree = ast.fix_missing_locations(_Watched().visit(tree))
    namespace = {**_WATCHERS, **source.namespace}
    try:
        code = compile(tree, source.file_name, "exec")
    except RecursionError as error:
        raise CompileLimit(str(error), "Split the function.") from error
    exec(code, namespace)
    replaced = {id(np): _NUMPY, id(math): _MATH, id(intrinsics): _INTRINSICS}
    namespace.update({name: replaced[id(value)] for name, value in namespace.items() if id(value) in replaced})
    return namespace[source.entry]


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything that numba would compile be run here."""
    monkeypatch.setattr(executables, "build_numba", build)
