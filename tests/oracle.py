"""Numerical gradients that share nothing with tapegen: central differences, extrapolated, with an error estimate.

Structures (tuples, lists, dicts, named tuples, dataclasses) are walked here by code of its own, so that a mistake in
the package's own walk cannot hide.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

STEP = 0.01
SHRINK = 2.0
LEVELS = 8
JUMP = 0.01  # a value further than this off its tangent, relative to the step, has jumped


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A numerical derivative of every number in a structure.

    Attributes
    ----------
    value : dict
        From the path of a leaf (`(0, "w")`) to an array shaped as the leaf.
    error : dict
        The estimated error of each entry, in the same form.
    """

    value: dict[tuple, np.ndarray]
    error: dict[tuple, np.ndarray]


def children(node: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and children of a structure; nothing for a leaf."""
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, tuple) and hasattr(node, "_fields"):
        yield from zip(node._fields, node, strict=True)
    elif isinstance(node, tuple | list):
        yield from enumerate(node)
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        for field in dataclasses.fields(node):
            yield field.name, getattr(node, field.name)
    elif hasattr(node, "__dict__") and not callable(node) and not inspect.ismodule(node):
        yield from vars(node).items()


def leaves(node: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Every leaf of a structure with its path."""
    inner = list(children(node))
    if not inner and not isinstance(node, tuple | list | dict):
        yield path, node
    for key, child in inner:
        yield from leaves(child, (*path, key))


def is_floating(leaf: Any) -> bool:
    """Whether a leaf is a floating number or array."""
    return isinstance(leaf, float | np.floating) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f")


def floating(node: Any) -> dict[tuple, np.ndarray]:
    """The floating leaves of a structure as float64 arrays."""
    return {path: np.array(leaf, dtype=np.float64) for path, leaf in leaves(node) if is_floating(leaf)}


def with_leaf(node: Any, path: tuple, leaf: Any) -> Any:
    """A copy of the structure in which one leaf is another; the structure itself stays as it is."""
    if not path:
        return leaf
    key, rest = path[0], path[1:]
    if isinstance(node, dict):
        return {k: with_leaf(v, rest, leaf) if k == key else v for k, v in node.items()}
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return node._replace(**{key: with_leaf(getattr(node, key), rest, leaf)})
    if isinstance(node, tuple | list):
        return type(node)(with_leaf(v, rest, leaf) if k == key else v for k, v in enumerate(node))
    twin = copy.copy(node)
    object.__setattr__(twin, key, with_leaf(getattr(node, key), rest, leaf))
    return twin


def widened(node: Any) -> Any:
    """A copy in which single precision is double, so that differences are not drowned in rounding."""
    for path, leaf in list(leaves(node)):
        if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype in (np.float32, np.float16):
            wide = np.asarray(leaf, dtype=np.float64)
            node = with_leaf(node, path, wide if isinstance(leaf, np.ndarray) else wide[()])
    return node


def moved(leaf: Any, index: tuple, step: float) -> Any:
    """A leaf with one of its numbers moved, of the same kind and memory layout."""
    if isinstance(leaf, np.ndarray):
        twin = np.copy(leaf, order="K")
        twin[index] += step
        return twin
    return type(leaf)(leaf + step)


def contract(value: Any, weights: dict[tuple, np.ndarray] | None) -> float:
    """The sum of the floating leaves of a result, each times its weight."""
    parts = floating(value)
    if weights is None:
        ((_, only),) = parts.items()
        return float(only)
    return float(sum(np.sum(part * weights[path]) for path, part in parts.items()))


def numerical_gradient(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    weights: dict[tuple, np.ndarray] | None = None,
    paths: Sequence[tuple] | None = None,
    step: float = STEP,
) -> Estimate:
    """Differentiate `sum(weights * function(*args))` by extrapolated central differences.

    Parameters
    ----------
    function : callable
        Plain Python.  Called with deep copies, so it may write into its arguments.
    args, kwargs
        Where to differentiate.
    weights : dict, optional
        Weight of each floating leaf of the result; leave out for a result that is one number.
    paths : sequence of tuple, optional
        The leaves of `args` to differentiate by (default: all floating ones); a path starts with the position.
    step : float
        The largest step, relative to the larger of 0.1 and the number's magnitude.

    Returns
    -------
    Estimate
        Derivatives by Neville's scheme over steps `step / 2**k`; the error is the smallest disagreement between
        neighbouring entries of the scheme (C. J. F. Ridders, 1982).
    """
    args = tuple(widened(arg) for arg in args)
    kwargs = kwargs or {}

    def at(path: tuple, index: tuple, delta: float) -> float:
        fresh = copy.deepcopy((args, kwargs))
        leaf = dict(leaves(fresh[0]))[path]
        there = with_leaf(fresh[0], path, moved(leaf, index, delta))
        return contract(function(*there, **fresh[1]), weights)

    value: dict[tuple, np.ndarray] = {}
    error: dict[tuple, np.ndarray] = {}
    for path, leaf in floating(args).items():
        if paths is not None and path not in paths:
            continue
        value[path], error[path] = np.zeros(leaf.shape), np.zeros(leaf.shape)
        for index in np.ndindex(leaf.shape):
            first = step * max(0.1, abs(float(leaf[index])))
            best, doubt = extrapolate(lambda h, path=path, index=index: at(path, index, h) - at(path, index, -h), first)
            # large steps may have met another branch on both sides, where all is smooth too
            last = first / SHRINK ** (LEVELS - 1)
            off = at(path, index, last) - at(path, index, 0.0) - last * best
            if abs(off) > JUMP * last * max(1.0, abs(best)):
                doubt = np.inf
            value[path][index], error[path][index] = best, doubt
    return Estimate(value, error)


def extrapolate(difference: Callable[[float], float], step: float) -> tuple[float, float]:
    """Extrapolate `difference(h) / 2h` to zero step; returns the derivative and its estimated error."""
    best, error = np.nan, np.inf
    row: list[float] = []
    for _ in range(LEVELS):
        new = [difference(step) / (2.0 * step)]
        factor = 1.0
        for old in row:
            factor *= SHRINK**2
            new.append((factor * new[-1] - old) / (factor - 1.0))
            doubt = max(abs(new[-1] - new[-2]), abs(new[-1] - old))
            if doubt <= error:
                best, error = new[-1], doubt
        row = new
        step /= SHRINK
    return best, error
