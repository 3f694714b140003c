"""What plain Python does with a program, and how two results differ."""

from __future__ import annotations

import copy
import functools
import math
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.random_programs.forward import leaves
from tests.random_programs.program import Program


@dataclass
class Plain:
    """What plain Python does."""

    result: Any = None
    error: Exception | None = None
    args: tuple[Any, ...] = ()
    repeatable: bool = True  # it leaves its globals alone


def run_plain(program: Program) -> Plain:
    """The program in CPython."""
    args, f = program.arguments(), program.load()
    tables = {name: value for name, value in f.__globals__.items() if isinstance(value, np.ndarray)}
    before = copy.deepcopy(tables)
    try:
        with np.errstate(all="ignore"):
            plain = Plain(f(*args), None, args)
    except Exception as error:
        plain = Plain(None, error, args)
    plain.repeatable = not list(differences(before, tables))
    return plain


def is_settled(program: Program) -> bool:
    """Whether a program does the same whatever lies in the memory that `np.empty` gives."""
    seen = []
    for filling in (1.25, -7.5):
        numpy = types.SimpleNamespace(**{**vars(np), "empty": functools.partial(np.full, fill_value=filling)})
        f = program.load_with(numpy, math, {})
        try:
            with np.errstate(all="ignore"):
                seen.append(f(*program.arguments()))
        except Exception as error:
            seen.append(repr(error))
    return not list(differences(*seen))


# ---- comparing ----


def differences(expected: Any, got: Any, where: str = "", *, rtol: float = 0.0, widen: bool = False) -> Iterator[str]:
    """How two results differ; bit for bit unless `rtol` is given (NaNs are equal to one another).

    With `widen` a number may come back as the wider of two types that different paths give it: a float for an int, a
    NumPy float for a Python float.
    """
    if widen and type(expected) in (int, float) and type(got) in (float, np.float64):
        expected = type(got)(expected)
    if type(expected) is not type(got):
        yield f"{where}: {type(got).__name__} instead of {type(expected).__name__} ({got!r}, {expected!r})"
    elif isinstance(expected, tuple | list):
        if len(expected) != len(got):
            yield f"{where}: {len(got)} items instead of {len(expected)}"
        for k, pair in enumerate(zip(expected, got, strict=False)):
            yield from differences(*pair, f"{where}[{k}]", rtol=rtol, widen=widen)
    elif isinstance(expected, dict):
        for key in expected:
            yield from differences(expected[key], got.get(key), f"{where}[{key!r}]", rtol=rtol, widen=widen)
    elif isinstance(expected, np.ndarray):
        if (expected.shape, expected.dtype) != (got.shape, got.dtype):
            yield f"{where}: {got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
        elif not _equal(expected, got, rtol):
            yield f"{where}: {got!r} instead of {expected!r}"
    elif isinstance(expected, float | np.floating):
        if not _equal(np.asarray(expected), np.asarray(got), rtol):
            yield f"{where}: {got!r} instead of {expected!r}"
    elif expected is not got and expected != got:
        yield f"{where}: {got!r} instead of {expected!r}"


def _equal(a: np.ndarray, b: np.ndarray, rtol: float) -> bool:
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    if rtol:
        scale = np.max(np.abs(a[np.isfinite(a)]), initial=1.0)
        return bool(np.allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True))
    with np.errstate(all="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    return bool(np.all(same))


def finite(x: Any) -> bool:
    """Whether every number is finite."""
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves(x))
