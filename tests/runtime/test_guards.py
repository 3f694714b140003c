"""What a function reads besides its arguments may change between calls; the next call sees it."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tapegen import differentiable, grad
from tapegen.errors import TapegenError
from tests.judged import both
from tests.oracle import numerical_gradient


def agrees(function: Any, *args: Any) -> None:
    """Value and gradient of now are those of plain Python of now."""
    made = function if hasattr(function, "python") else differentiable(function, backend="python")
    value, gradient = made.value_and_grad(*args)
    assert value == pytest.approx(made.python(*args), rel=1e-12)
    estimate = numerical_gradient(made.python, args, paths=[(0,)])
    np.testing.assert_allclose(gradient, estimate.value[(0,)], rtol=1e-7, atol=1e-9)


def watched(func: Callable[..., Any], args: tuple[Any, ...], *changes: Callable[[], Any]) -> None:
    """One decorated function, called before and after each change."""
    function = differentiable(func, backend="python")
    agrees(function, *args)
    for change in changes:
        change()
        agrees(function, *args)


class Model:
    """Something with everything that a class can hold."""

    rate = 2.0
    table: ClassVar[list[float]] = [1.0]

    def __init__(self, k: float) -> None:
        self.k = k

    def energy(self, x):
        return self.k * self.rate * x * x

    @property
    def double(self):
        return self.k * 2.0

    @staticmethod
    def shifted(x):
        return x + 1.0

    @classmethod
    def scaled(cls, x):
        return cls.rate * x

    def __call__(self, x):
        return x * self.k

    def __mul__(self, other):
        return self.k * other

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.k + i

    def __eq__(self, other):
        return bool(self.k == other)

    __hash__ = None  # type: ignore[assignment]


REPLACED: dict[str, Any] = {
    "energy": lambda self, x: x**3,
    "double": property(lambda self: 11.0),
    "shifted": staticmethod(lambda x: x * 5.0),
    "scaled": classmethod(lambda cls, x: x * 7.0),
    "rate": 9.0,
    "table": [4.0, 5.0],
    "__call__": lambda self, x: x**4,
    "__mul__": lambda self, other: other * 13.0,
    "__len__": lambda self: 5,
    "__getitem__": lambda self, i: self.k * 10.0,
    "__eq__": lambda self, other: False,
    "__init__": lambda self, k: None,
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("captured", [True, False])
def test_a_class_is_patched(monkeypatch: pytest.MonkeyPatch, name: str, captured: bool) -> None:
    model = Model(1.5)

    def use(x, model):
        total = model.energy(x) + model.double * x + model.shifted(x) * model.scaled(x) + model(x) * x
        total += (model * x) * len(model) + model[1] * x + (x if model == 1.5 else 3.0 * x)
        return total + x * model.table[-1] + Model.shifted(x) + Model.scaled(x) * Model.rate

    def read(x):
        return use(x, model)

    watched(
        read if captured else use,
        (1.3,) if captured else (1.3, model),
        lambda: monkeypatch.setattr(Model, name, REPLACED[name]),
        monkeypatch.undo,
    )


def test_the_class_decides_how_objects_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(self, k):
        self.k = 3.0 * k

    def made(x):
        return Model(x).k * x

    watched(made, (1.3,), lambda: monkeypatch.setattr(Model, "__init__", init))


def test_an_object_gets_what_its_class_had() -> None:
    model = Model(1.5)

    def read(x):
        return model.energy(x) * model.rate + (x if hasattr(model, "late") else 0.0) + getattr(model, "later", 2.0) * x

    watched(
        read,
        (1.3,),
        lambda: setattr(model, "rate", 5.0),
        lambda: setattr(model, "energy", lambda x: x**3),
        lambda: delattr(model, "rate"),
        lambda: setattr(model, "late", 1.0),
        lambda: setattr(model, "later", 1.0),
    )


def test_a_derived_class_gets_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    class Derived(Model):
        pass

    model = Derived(1.5)

    def read(x):
        return model.energy(x)

    def method(self, x):
        return 9.0 * x * x

    watched(read, (1.3,), lambda: setattr(Derived, "energy", method), lambda: delattr(Derived, "energy"))


def test_one_object_under_two_names() -> None:
    first = second = Model(2.0)

    def read(x):
        return first.k * x + second.k * x * x

    def change(k: float) -> None:
        nonlocal second
        second = Model(k)

    watched(read, (1.3,), lambda: change(7.0), lambda: setattr(first, "k", 3.0))


def test_one_object_under_two_names_in_a_recursive_function() -> None:
    first = second = Model(2.0)

    def power(x, n, model):
        return model.k if n <= 0 else x * power(x, n - 1, model)

    def read(x, n):
        return power(x, n, first) + power(x, n, second)

    def change(k: float) -> None:
        nonlocal second
        second = Model(k)

    watched(read, (1.3, 40), lambda: change(7.0))


class Slots:
    """Attributes without a dict."""

    __slots__ = ("k", "n")

    def __init__(self, k: float, n: int) -> None:
        self.k, self.n = k, n

    def power(self, x):
        return self.k * x**self.n


def test_slots() -> None:
    slots = Slots(2.0, 2)

    def read(x):
        return slots.power(x)

    def use(x, slots):
        return slots.power(x)

    for func, args in ((read, (1.3,)), (use, (1.3, slots))):
        watched(func, args, lambda: setattr(slots, "k", 5.0), lambda: setattr(slots, "n", 3))
    gradient = grad(use, wrt="slots", backend="python")(1.3, slots)
    assert type(gradient) is Slots
    assert gradient.k == pytest.approx(1.3**3)


def test_sets_and_slices() -> None:
    chosen = {1, 2}

    def read(x):
        total = 0.0
        for i in range(4):
            if i in chosen:
                total += x**i
        return total

    def use(x, chosen):
        return read(x) + (x * 3.0 if 3 in chosen else 0.0)

    watched(read, (1.3,), lambda: chosen.add(3), lambda: chosen.discard(1))
    watched(use, (1.3, chosen), lambda: chosen.discard(3), lambda: chosen.add(0))

    def part(x, where):
        return (x[where] ** 2).sum()

    function = differentiable(part, backend="python")
    for where in (slice(0, 2), slice(0, 2), slice(1, 3), slice(None, None, 2)):
        agrees(function, np.arange(5.0), where)
    assert len(function._specializer._programs) == 3


def test_partial_and_defaults() -> None:
    def scaled(x, k=2.0, *, m=(1.0,)):
        return k * m[0] * x * x

    def read(x):
        return scaled(x)

    again: Any = scaled
    watched(
        read,
        (1.3,),
        lambda: setattr(scaled, "__defaults__", (7.0,)),
        lambda: again.__kwdefaults__.update(m=(3.0,)),
    )
    watched(
        scaled, (1.3,), lambda: setattr(scaled, "__defaults__", (5.0,)), lambda: again.__kwdefaults__.update(m=(2.0,))
    )
    partly = functools.partial(scaled, k=4.0)

    def call(x):
        return partly(x)

    for func in (partly, call):
        watched(func, (1.3,), lambda: partly.keywords.update(k=partly.keywords["k"] + 1.0))


def test_what_a_function_object_carries() -> None:
    def read(x):
        return read.rate * x * x

    read.rate = 2.0  # type: ignore[attr-defined]
    watched(read, (1.3,), lambda: setattr(read, "rate", 5.0))


def test_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "changing_module.py"
    path.write_text("K = 2.0\nW = [1.0]\n\n\ndef h(x):\n    return K * x * x\n")
    module: Any = importlib.import_module("changing_module")

    def read(x):
        from changing_module import K, W, h

        return h(x) + K * x + W[0] * x + module.h(x)

    def rewrite() -> None:
        path.write_text("K = 5.0\nW = [1.0]\n\n\ndef h(x):\n    return K * x * x * x\n")
        importlib.invalidate_caches()
        importlib.reload(module)

    watched(
        read,
        (1.3,),
        lambda: setattr(module, "K", 3.0),
        lambda: module.W.__setitem__(0, 9.0),
        lambda: setattr(module, "h", lambda x: x**4),
        rewrite,
    )


def test_a_name_that_appears() -> None:
    def read(x):
        return LATER * x  # type: ignore[name-defined]  # noqa: F821

    function = differentiable(read, backend="python")
    with pytest.raises(NameError):
        function.grad(1.0)
    globals()["LATER"] = 3.0
    try:
        assert function.grad(1.0) == 3.0
    finally:
        del globals()["LATER"]
    with pytest.raises(NameError):
        function.grad(1.0)


def test_keys_that_are_equal_and_differ() -> None:
    def use(x, table):
        total = 0.0
        for key in table:
            total += x * (key / 2) + (x if key is True else 0.0) + x * (7 // key)
        return total

    function = differentiable(use, backend="python")
    for table in ({1: 0}, {True: 0}, {1.0: 0}, {2: 0}, {2.0: 0}):
        agrees(function, 1.3, table)


# ---- names of parts ------------------------------------------------------------------------------------------------


def test_parts_of_arguments_that_would_share_a_name() -> None:
    def pair(x, x_0):
        return x[0] * 2.0 + x_0 * 3.0 + x[1]

    assert grad(pair, wrt=(0, 1), backend="python")((1.0, 2.0), 5.0) == ((2.0, 1.0), 3.0)

    def nested(p):
        return p["a"]["b"] * 2.0 + p["a_b"] * 3.0

    assert grad(nested, backend="python")({"a": {"b": 1.0}, "a_b": 2.0}) == {"a": {"b": 2.0}, "a_b": 3.0}

    def keys(p):
        return p["1"] * 2.0 + p[1] * 3.0

    assert grad(keys, backend="python")({"1": 1.0, 1: 2.0}) == {"1": 2.0, 1: 3.0}


def test_names_that_cannot_be_written() -> None:
    table: dict[Any, float] = {"a b": 1.0, "x'; import os #": 2.0, -1: 3.0, (1, 2): 4.0, "": 5.0, "class": 6.0}
    table |= {"1": 8.0, "²": 2.0, "#": 3.0, None: 2.0, "line\nbreak": 4.0}

    def use(x, table):
        total = 0.0
        for key in table:
            total += table[key] * x
        return total

    def read(x):
        return use(x, table)

    agrees(use, 1.3, table)
    agrees(read, 1.3)
    scaled = functools.partial(lambda a, x: (a * x).sum(), np.ones(3))

    def call(x):
        return scaled(x)

    agrees(call, 1.3)


# ---- what classes define ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Setting:
    """Compared by its fields, but for the last."""

    k: float
    n: int = 1
    note: float = dataclasses.field(default=0.0, compare=False)


def test_equality() -> None:
    class ByValue:
        def __init__(self, a: Any) -> None:
            self.a = a

        def __eq__(self, other):
            return self.a == other.a

    class Plain:
        def __init__(self, a: Any) -> None:
            self.a = a

    def settings(x):
        total = x if Setting(x) == Setting(x) else 2.0 * x
        total += x * x if Setting(x, 2) != Setting(x, 3) else x
        total += x**3 if Setting(x, 2, 1.0) == Setting(x, 2, 5.0) else x
        return total + (5.0 * x if Setting(x) == Setting(x + 1.0) else x)

    def objects(x):
        a, b = Plain(x), Plain(x)
        total = x if ByValue(x) != ByValue(x) else 3.0 * x
        return total + (x if a == b else 3.0 * x) + (x if a == a else 5.0 * x) + (x if a != a else 7.0 * x)

    def dicts(x):
        options = {"b": x, "a": 2.0}
        return (x if {"a": 1.0} == {"a": 1.0} else 3.0 * x) + (x if options == {"a": 2.0, "b": x} else 5.0 * x)

    for func in (settings, objects, dicts):
        agrees(func, 1.3)
    first, second = Setting(1.0), Setting(1.0)

    def read(x):
        return x if first == second else 3.0 * x

    watched(read, (1.3,), lambda: setattr(second, "n", 2))


def test_truth_and_operators() -> None:
    class Flag:
        def __init__(self, a: Any) -> None:
            self.a = a

        def __bool__(self):
            return self.a > 1.0

        def __mul__(self, other):
            return NotImplemented if isinstance(other, Other) else self.a * other

    class Other:
        def __init__(self, a: Any) -> None:
            self.a = a

        def __len__(self):
            return 0

        def __rmul__(self, other):
            return self.a * other.a * 3.0

    class Special(Flag):
        def __rmul__(self, other):
            return self.a * 9.0

    def use(x):
        total = (x if Flag(x) else 3.0 * x) + (5.0 * x if Other(x) else x * x) + (x if not Flag(x - 1.0) else 9.0 * x)
        return total + Flag(x) * Other(x) + Flag(x) * 2.0 + Flag(x) * Special(x)

    agrees(use, 1.3)
    agrees(use, 0.3)


class Guarded:
    """Attributes that the class has a say in."""

    def __init__(self) -> None:
        self._k = 1.0

    @property
    def k(self):
        return self._k * 2.0

    @k.setter
    def k(self, value):
        self._k = value * 10.0

    @property
    def fixed(self):
        return self._k

    @functools.cached_property
    def squared(self):
        return self._k * self._k


def test_properties_come_before_attributes() -> None:
    def made(x):
        guarded = Guarded()
        guarded.k = x
        guarded.k += x * x
        return guarded.k * x + guarded.squared

    def use(x, guarded):
        return guarded.k * x + guarded.squared * x

    def read_only(x):
        guarded = Guarded()
        guarded.fixed = x
        return guarded.fixed

    agrees(made, 1.3)
    hidden = Guarded()
    hidden.__dict__["k"] = 100.0
    agrees(use, 1.3, hidden)
    with pytest.raises(AttributeError):
        grad(read_only, backend="python")(1.3)


def test_classes_that_decide_how_attributes_are_set() -> None:
    class Doubling:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value * 2.0)

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        k: float

    def doubled(x):
        made = Doubling()
        made.k = x
        return made.k

    def frozen(x):
        made = Frozen(x)
        made.k = 2.0 * x  # type: ignore[misc]
        return made.k

    with pytest.raises(TapegenError, match="decides itself"):
        grad(doubled, backend="python")(1.3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        grad(frozen, backend="python")(1.3)


def test_options_given_as_lists() -> None:
    def product(x, y):
        return x * y * y

    function = differentiable(product, backend="python")
    assert function.with_options(wrt=[0, 1]).grad(2.0, 3.0) == (9.0, 12.0)


def test_functions_that_are_swapped() -> None:
    chosen: Any = math.sin
    table = {"a": math.sin}

    def read(x):
        return chosen(x) + table["a"](x)

    def change(func: Any) -> None:
        nonlocal chosen
        chosen = func

    model = Model(1.5)
    watched(
        read,
        (1.3,),
        lambda: change(math.cos),
        lambda: change(lambda x: x * x),
        lambda: change(functools.partial(math.pow, 2.0)),
        lambda: table.update(a=model.energy),
        lambda: setattr(model, "k", 6.0),
    )


POINTS = np.array([[0.0, 1.0], [2.0, -1.0]])


def distances(x: np.ndarray) -> float:
    total = 0.0
    for i, j in [(0, 1), (1, 0)]:
        total += sum([abs(part) ** 1.5 for part in (*(POINTS[i] - x), *POINTS[j])])
        total += np.hypot(*(POINTS[i] - POINTS[j])[:2]) * x[0]
    return total


def test_rows_of_a_global_array_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = differentiable(distances, backend="python")
    for points in (POINTS, np.array([[0.3, 1.0, -2.0], [2.0, -1.0, 0.4]]), POINTS + 1.0):
        monkeypatch.setitem(globals(), "POINTS", points)
        x = np.linspace(0.5, 0.8, points.shape[1])
        agrees(derived, x)


def waves(x: float) -> float:
    return np.sin(x) * math.cos(x) + np.linalg.norm(np.array([x, 2.0]))


@both
def test_functions_of_libraries_that_are_replaced_between_calls(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    derived = differentiable(waves, backend=backend)

    def check() -> None:
        for _ in range(2):
            value, gradient = derived.value_and_grad(0.5)
            assert value == pytest.approx(waves(0.5), rel=1e-14)
            assert gradient == pytest.approx((waves(0.5 + 1e-5) - waves(0.5 - 1e-5)) / 2e-5, rel=1e-8)

    check()
    with monkeypatch.context() as patched:
        patched.setattr(np, "sin", np.exp)
        check()
        patched.setattr(math, "cos", lambda x: x**3)
        patched.setattr(np.linalg, "norm", np.sum)
        check()
    check()
