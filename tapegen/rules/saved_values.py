"""Saved-value analysis: the operands that a rule body reads, and slicing of the body to the wanted derivatives."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_SHAPE = frozenset({"shape", "ndim", "size", "zeros_like", "ones_like", "empty_like", "count_along"})
_ATTRIBUTES = frozenset({"shape", "dtype", "size", "ndim"})


def values_read(body: Callable[..., Any]) -> set[str]:
    """Parameters of which a body reads values, not only the shape."""
    return _names_of_values(_tree(body)) & set(inspect.signature(body).parameters)


@dataclass(frozen=True, slots=True)
class Slice:
    """A program slice of a body that returns only some of its results.

    Attributes
    ----------
    call : callable
        Takes the arguments of the body; returns a tuple of the wanted results.
    reads : frozenset of str
        The parameters whose values these results need; of all others it reads at most shape and dtype.
    numbers : tuple
        For each wanted result its value if it is constant, or None.
    inverse : tuple of bool
        Which of the wanted results are inverted (`y` for `1.0 / y`); see `sliced`.
    """

    call: Callable[..., tuple[Any, ...]]
    reads: frozenset[str]
    numbers: tuple[float | None, ...]
    inverse: tuple[bool, ...]


def sliced(body: Callable[..., Any], wanted: Sequence[int], count: int, inverted: bool = False) -> Slice:
    """Slice a body to some of the `count` results that it returns as a tuple (or as the only one).

    Assignments that only the others need are removed, so that they cost nothing and give no warnings.  With
    `inverted`, a result written `1.0 / y` is returned as `y`, for callers that divide by it.
    """
    parameters = frozenset(inspect.signature(body).parameters)
    try:
        tree = _tree(body)
    except (OSError, TypeError, SyntaxError):  # no source: made by exec
        return Slice(_picked(body, tuple(wanted), count), parameters, (None,) * len(wanted), (False,) * len(wanted))
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    returned: list[list[ast.expr] | None] = []
    for node in _returns(function):
        assert node.value is not None
        items = _items(node.value, count)
        returned.append(items)
        chosen: list[ast.expr]
        if items is None:  # another function makes the tuple
            made_once = ast.NamedExpr(ast.Name("_results", ast.Store()), node.value)
            held: list[ast.expr] = [made_once, *(ast.Name("_results", ast.Load()) for _ in wanted[1:])]
            chosen = [
                ast.Call(ast.Name("_result", ast.Load()), [results, ast.Constant(k)], [])
                for results, k in zip(held, wanted, strict=True)
            ]
        else:
            chosen = [items[k] if k < len(items) else ast.Constant(None) for k in wanted]
        node.value = ast.Tuple(chosen, ast.Load())
    inverse = [False] * len(wanted)
    if inverted and len(returned) == 1 and returned[0] is not None:
        made_of = _returns(function)[0].value
        assert isinstance(made_of, ast.Tuple)
        inverse = [_is_inverse(item) for item in made_of.elts]
        made_of.elts = [_denominator(item) if flag else item for item, flag in zip(made_of.elts, inverse, strict=True)]
    _drop_unused(function)
    _Quicker().visit(function)
    numbers: list[float | None] = [None] * len(wanted)
    if len(returned) == 1 and returned[0] is not None:
        numbers = [_number(returned[0][k]) if k < len(returned[0]) else None for k in wanted]
    reads = _names_of_values(ast.parse(ast.unparse(tree))) & parameters
    ast.fix_missing_locations(tree)
    made: dict[str, Any] = {}
    file = f"<{body.__qualname__} for {','.join(map(str, wanted))}>"
    exec(compile(tree, file, "exec"), _surroundings(body), made)
    return Slice(made[function.name], frozenset(reads), tuple(numbers), tuple(inverse))


def _is_inverse(expr: ast.expr) -> bool:
    return isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Div) and _number(expr.left) == 1.0


def _denominator(expr: ast.expr) -> ast.expr:
    assert isinstance(expr, ast.BinOp)
    return expr.right


def _surroundings(body: Callable[..., Any]) -> dict[str, Any]:
    found = inspect.getclosurevars(body)
    return {"__builtins__": builtins, **body.__globals__, **found.nonlocals, "_result": _result, "_chosen": chosen}


class _Quicker(ast.NodeTransformer):
    """Replaces calls of functions that have a faster equivalent."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if ast.unparse(node.func) == "np.where" and len(node.args) == 3:
            node.func = ast.Name("_chosen", ast.Load())
        return node


_BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}
_LARGE = 512


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """`np.where(condition, x, y)`, for large arrays of floats without a branch for each element."""
    if type(condition) is not np.ndarray or type(x) is not np.ndarray or condition.size < _LARGE:
        return np.where(condition, x, y)
    bits = _BITS.get(x.dtype)
    if bits is None or condition.dtype != np.bool_ or condition.shape != x.shape:
        return np.where(condition, x, y)
    if type(y) is float and y == 0.0 and math.copysign(1.0, y) > 0.0:
        mask = -condition.view(np.int8).astype(bits)
        return (x.view(bits) & mask).view(x.dtype)
    if type(y) is np.ndarray and y.dtype == x.dtype and y.shape == x.shape:
        mask = -condition.view(np.int8).astype(bits)
        other = y.view(bits)
        mask &= x.view(bits) ^ other
        mask ^= other
        return mask.view(x.dtype)
    return np.where(condition, x, y)


def _result(results: Any, k: int) -> Any:
    """Result `k` of a body that returns a tuple, or the only one."""
    if isinstance(results, tuple):
        return results[k] if k < len(results) else None
    return results if k == 0 else None


def _picked(body: Callable[..., Any], wanted: tuple[int, ...], count: int) -> Callable[..., tuple[Any, ...]]:
    def pick(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        results = body(*args, **kwargs)
        return (results,) if count == 1 else tuple(_result(results, k) for k in wanted)

    return pick


def _tree(body: Callable[..., Any]) -> ast.Module:
    """The source of a body as a module of one function without decorators and annotations."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(body)))
    (function,) = tree.body
    if not isinstance(function, ast.FunctionDef):
        raise TypeError(f"{body!r} is not written with def")
    function.decorator_list = []
    function.returns = None
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return tree


def _returns(function: ast.FunctionDef) -> list[ast.Return]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Return)]


def _items(value: ast.expr, count: int) -> list[ast.expr] | None:
    """The results that a return statement lists."""
    if count == 1:
        return [value]
    if isinstance(value, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in value.elts):
        return value.elts
    return None


def _number(expr: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(expr)
    except ValueError:
        return None
    return value if isinstance(value, float | int) else None


def _drop_unused(function: ast.FunctionDef) -> None:
    """Remove dead assignments; the right sides of rule bodies have no side effects."""
    while True:
        read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        kept = [stmt for stmt in function.body if not _is_unread(stmt, read)]
        if len(kept) == len(function.body):
            return
        function.body = kept


def _is_unread(stmt: ast.stmt, read: set[str]) -> bool:
    return (
        isinstance(stmt, ast.Assign)
        and all(isinstance(target, ast.Name) for target in stmt.targets)
        and not {target.id for target in stmt.targets if isinstance(target, ast.Name)} & read
    )


def _names_of_values(tree: ast.Module) -> set[str]:
    """Variables of which values are read, not only the shape."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in _SHAPE:
                node.args = []
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            node.value = ast.Constant(0)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
