"""Small functions as users write them: libraries of all that each has give what the decorator gives."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.aot import build
from tests.libraries import load

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

Pair = namedtuple("Pair", ["a", "b"])


@dataclasses.dataclass
class Weights:
    w: np.ndarray
    k: float
    name: str = "weights"


x = np.linspace(0.2, 1.1, 5)
X2 = np.linspace(0.1, 1.9, 6).reshape(2, 3)
CASES: list[Any] = []
QUICK = ("struct_out", "fort")


def case(args: tuple[Any, ...], wrt: Any = 0) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        name = function.__name__
        marks = () if name in QUICK else pytest.mark.compiled
        CASES.append(pytest.param(function, args, wrt, id=name, marks=marks))
        return function

    return add


@case(({"a": {"b": x, "c": (1.0, X2)}, "d": [x, 2.0]},))
def tree(p):
    return np.sum(p["a"]["b"]) * p["a"]["c"][0] + np.sum(p["a"]["c"][1]) + p["d"][1] * np.sum(p["d"][0] ** 2)


@case((Pair(x, 2.0),))
def ntuple(p):
    return np.sum(p.a) * p.b


@case((Weights(x, 2.0),))
def dclass(d):
    return np.sum(d.w**2) * d.k


@case((Weights(x, 2.0),))
def dclass_out(d):
    return Weights(d.w * d.k, d.k**2)


@case((x, "up"))
def string(x, how):
    return np.sum(x) if how == "up" else -np.sum(x)


@case((x, None))
def none(x, w):
    return np.sum(x) if w is None else np.sum(x * w)


@case((x, True))
def flag(x, f):
    return np.sum(x**2) if f else np.sum(x)


@case((x, 3))
def power(x, n):
    return np.sum(x**n)


@case((2.0, 3.0), wrt=(0, 1))
def scal(a, b):
    return a * math.sin(b)


@case((np.array(2.0),))
def zerod(a):
    return a * a


@case((np.float64(2.0),))
def npf(a):
    return a * a


@case((np.float32(2.0), x.astype("f4")), wrt=(0, 1))
def f32(a, x):
    return a * np.sum(x * x)


@case((np.random.default_rng(0).normal(size=(2, 2, 1, 2, 3)),))
def rank5(a):
    return np.sum(np.sin(a) * a)


@case((x, np.array([True, False, True, True, False])))
def boolarr(x, m):
    return np.sum(np.where(m, x, -x))


@case((x, np.array([0, 2, 2, 4])))
def gather(x, i):
    return np.sum(x[i] ** 2)


@case((x, np.array([0, 2, 2, 4], dtype="i4")))
def gather32(x, i):
    return np.sum(x[i] ** 2)


@case((x, np.array([1, 2, 3, 4, 5], dtype=np.uint8)))
def u8(x, i):
    return np.sum(x * i)


@case((x,))
def struct_out(x):
    return {"s": np.sum(x), "v": x * 2, "t": (x[0], [x[1], None, "hi"])}


@case((x.copy(),))
def mutated(x):
    x[1:] *= 2.0
    return np.sum(x**2)


@case((x, x.copy() + 1), wrt=(0, 1))
def mutout(x, out):
    out[:] = x * out
    return np.sum(out)


@case((np.asfortranarray(X2),))
def fort(a):
    return np.sum(a[:, 0] * a[:, 1])


@case((X2.T,))
def trans(a):
    return np.sum(a.T @ a)


@case((X2[:, ::-1],))
def neg(a):
    return np.sum(np.cumsum(a, axis=1) ** 2)


@case((np.zeros((0,)),))
def empty(x):
    return np.sum(x)


@case((np.ones(1),))
def size1(x):
    return np.sum(x * 3)


@case((X2, np.ones((1, 3))), wrt=(0, 1))
def bcast(a, b):
    return np.sum(a * b)


@case((x,))
def whil(x):
    s, i = 0.0, 0
    while s < 1.0 and i < x.size:
        s, i = s + x[i] ** 2, i + 1
    return s


@case((x,))
def raising(x):
    if np.min(x) < 0:
        raise ValueError(f"negative {np.min(x)}")
    return np.sum(np.sqrt(x))


@case((2.0,))
def zdiv(a):
    return 1.0 / (a - 2.0)


@case((x, 10))
def idx(x, i):
    return x[i] * 2


@case((x, 2.5), wrt=(0, "k"))
def kwonly(x, k, *, p=2.0, q=None):
    return np.sum(x**p) * k


@case((x, np.int64(3)))
def npint(x, n):
    return np.sum(x) * n


@case((x, 1.5))
def intgrad(x, n):
    return int(n) * np.sum(x)


@case((X2,))
def matvec(a):
    return np.sum(a @ np.ones(3))


@case((x,))
def sorting(x):
    return np.sum(np.sort(x) * np.arange(5.0))


@case((x,))
def tupleout(x):
    return np.sum(x), 3, x.size, True, "s"


@case((x,))
def intres(x):
    return x.size


@case((x,))
def view(x):
    return x[1:]


@case((x,))
def same_twice(x):
    y = x * 2
    return y, y


def same(found: Any, expected: Any) -> None:
    """The same structure and types of numbers; objects of classes come back as plain objects."""
    if dataclasses.is_dataclass(expected):
        for name, part in vars(expected).items():
            same(getattr(found, name), part)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, part in expected.items():
            same(found[key], part)
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif expected is None or isinstance(expected, str):
        assert found == expected
    elif found is not None:  # a tangent of what has none
        assert type(found) is type(expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, strict=True)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ArithmeticError, LookupError) as error:
        return str(type(error))


@pytest.mark.parametrize(("function", "args", "wrt"), CASES)
def test_a_library_gives_what_the_decorator_gives(function: Any, args: Any, wrt: Any, tmp_path: Path) -> None:
    f = tg.differentiable(function, wrt=wrt)
    module = load(build(f, *copy.deepcopy(args), directory=tmp_path, cpu="native"))
    names = list(inspect.signature(function).parameters)
    chosen = {
        names.index(each) if isinstance(each, str) else each for each in (wrt if isinstance(wrt, tuple) else [wrt])
    }
    along = tuple(copy.deepcopy(value) if k in chosen else None for k, value in enumerate(args))

    def pulled(vjp: Callable[..., Any], given: Any) -> Any:
        value, pullback = vjp(*given)
        return value, pullback(copy.deepcopy(value))

    calls: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "": (lambda given, call: call(*given), lambda given: function(*given)),
        "_value_and_grad": (lambda given, call: call(*given), lambda given: f.value_and_grad(*given)),
        "_grad": (lambda given, call: call(*given), lambda given: f.grad(*given)),
        "_vjp": (lambda given, call: pulled(call, given), lambda given: pulled(f.vjp, given)),
        "_jvp": (lambda given, call: call(given, along), lambda given: f.jvp(given, along)),
        "_hvp": (lambda given, call: call(given, along), lambda given: tg.hvp(f, given, along)),
    }
    first = module.__all__[0]
    assert len(module.__all__) >= 3
    for name in module.__all__:
        library, decorator = calls[name.removeprefix(first)]
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        call = getattr(module, name)
        same(outcome(lambda: library(mine, call)), outcome(lambda: decorator(theirs)))  # noqa: B023
        same(mine, theirs)
