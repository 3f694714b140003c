"""Awkward names and identifiers, judged by numerical gradients."""

from __future__ import annotations

import binascii
import importlib
import math
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy import sin as s

from tapegen import differentiable
from tapegen.errors import NotDifferentiable, TapegenError
from tests.oracle import numerical_gradient
from tests.sources import define, load

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.compiled)]
RATE = 2.0
WEIGHTS = np.array([1.0, 2.0, 3.0])


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    """How the derivative runs."""
    return request.param


def check(derived: Any, plain: Callable[..., Any], *args: Any) -> None:
    """Value and gradient of what was derived against plain Python as it is now."""
    value, gradient = derived.value_and_grad(*args)
    expected = plain(*args)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(derived(*args), expected, rtol=1e-13)
    estimate = numerical_gradient(plain, args, paths=[(0,)])
    np.testing.assert_allclose(gradient, estimate.value[(0,)], rtol=1e-7, atol=1e-9)


# ---- names that generated code would like to use -------------------------------------------------------------------


def scalars(x: float) -> float:
    np = x * x
    range = math.sin(np)
    len = range * x
    float = len + np
    int = 0
    while int < 3:
        _tape = float * range
        float = math.sin(_tape) + len
        x_tape = float * x
        float_bar = x_tape + _tape
        len = len + float_bar
        int = int + 1
    return len + float


def arrays(x: np.ndarray, x_bar: float) -> float:
    _d_x = x * x_bar
    _tg_0 = 0.0
    t = x[0]
    t_1 = t * x_bar
    for i in range(x.shape[0]):
        x_tape = _d_x[i] * t_1
        _tg_0 += x_tape * x_tape
        t_1 = _tg_0 * 0.1
        _d_x[i] = t_1
    _d_x_bar = _d_x.sum()
    value_bar = _d_x_bar * t
    njit = value_bar + _tg_0
    _tape = np.exp(-njit * 0.01)
    zeros_like = _tape * t
    return zeros_like + _d_x_bar


def branches(x: float, trips: int) -> float:
    numba = x
    branch = 0
    for _ in range(trips):
        if numba > 1.0:
            numba_tape = numba * 0.5
            numba = numba_tape * numba_tape
            branch += 1
        else:
            pop = numba + 1.5
            numba = pop * x
    return numba


@pytest.mark.parametrize(
    ("func", "args"),
    [(scalars, (0.7,)), (arrays, (np.array([0.3, 0.5, 0.9]), 1.1)), (branches, (0.8, 5))],
)
def test_b16_names_of_the_generated_code(func: Callable[..., Any], args: tuple[Any, ...], backend: str) -> None:
    check(differentiable(func, backend=backend), func, *args)


# ---- names mean objects --------------------------------------------------------------------------------------------


def renamed(x: float) -> float:
    return s(x) * math.cos(x)


def test_b17_functions_under_other_names(backend: str) -> None:
    check(differentiable(renamed, backend=backend), renamed, 0.4)


IMPOSTOR = """
def f(x):
    return np.sin(x) * x
"""


def test_b17_np_is_whatever_it_is(backend: str) -> None:
    func = define(IMPOSTOR)
    func.__globals__["np"] = types.SimpleNamespace(sin=np.cos)
    derived = differentiable(func, backend=backend)
    value, gradient = derived.value_and_grad(0.4)
    assert value == pytest.approx(0.4 * math.cos(0.4), rel=1e-13)
    assert gradient == pytest.approx(math.cos(0.4) - 0.4 * math.sin(0.4), rel=1e-13)


def test_python_function_in_the_place_of_a_numpy_function(backend: str) -> None:
    func = define("\n" + IMPOSTOR)
    func.__globals__["np"] = types.SimpleNamespace(sin=define("def sin(x):\n    return x * x\n", "sin"))
    value, gradient = differentiable(func, backend=backend).value_and_grad(3.0)
    assert (value, gradient) == (27.0, 27.0)


def test_b17_unknown_function_is_refused() -> None:
    func = define("\n\n" + IMPOSTOR)
    func.__globals__["np"] = types.SimpleNamespace(sin=binascii.hexlify)
    with pytest.raises(NotDifferentiable, match="hexlify") as caught:
        differentiable(func).grad(0.4)
    assert caught.value.span is not None
    assert "np.sin(x)" in caught.value.span.source_line()


# ---- shadowing -----------------------------------------------------------------------------------------------------


def shadowing(x: Any) -> Any:
    sum = 0.0
    return sum(x)


@pytest.mark.parametrize("how", ["__call__", "grad"])
def test_b18_calling_a_number(how: str) -> None:
    with pytest.raises(TypeError, match="'float' object is not callable") as caught:
        getattr(differentiable(shadowing), how)(np.ones(3))
    line = shadowing.__code__.co_firstlineno + 2
    told = str(caught.value) + "\n".join(getattr(caught.value, "__notes__", []))
    assert f"{Path(__file__).name}:{line}" in told


# ---- identifiers ---------------------------------------------------------------------------------------------------


def greek(α: float, n: int) -> float:
    été = α
    µ = 1.0
    for _ in range(n):
        μ = µ * été  # the micro sign and mu are one name
        été = math.sin(μ) + α
    return été * µ


def test_b19_unicode_identifiers(backend: str) -> None:
    check(differentiable(greek, backend=backend), greek, 0.6, 3)


def test_b19_unicode_identifiers_are_folded_in_wrt() -> None:
    def fine(*, ﬁ: float) -> float:
        return fi * fi

    assert differentiable(fine, wrt="ﬁ", backend="python").grad(fi=3.0) == 6.0


PRIVATE = """\
def __gain(x):
    return x * 1000.0

def _Model__gain(x):
    return x * x

class Model:
    def __init__(self, scale):
        self.__scale = scale

    def run(self, x):
        __y = __gain(x) * self.__scale
        return __y * x
"""


def test_b20_private_names(tmp_path: Path, backend: str) -> None:
    module = load(tmp_path / "private.py", PRIVATE)
    model = module.Model(3.0)
    assert model.run(2.0) == 24.0
    value, gradient = differentiable(model.run, backend=backend).value_and_grad(2.0)
    assert (value, gradient) == (24.0, 36.0)


def test_b21_identifier_of_5000_characters(backend: str) -> None:
    name = "long" * 1250
    func = define(f"def f({name}):\n    x = {name} * {name}\n    {name} = x * x\n    return {name}\n")
    assert differentiable(func, backend=backend).value_and_grad(3.0) == (81.0, 108.0)


def soft(match: float, case: float) -> float:
    type = match * case
    _ = type + match
    match = _ * type
    return match


def test_b22_soft_keywords(backend: str) -> None:
    check(differentiable(soft, backend=backend), soft, 0.6, 1.5)


# ---- writes outside ------------------------------------------------------------------------------------------------


def test_b23_derivatives_that_go_on_in_the_next_call_are_refused_before_anything_is_written() -> None:
    func = define("total = 5.0\ndef f(x):\n    global total\n    total = x * total\n    return total\n")
    for how in ("value_and_grad", "grad", "vjp"):
        with pytest.raises(NotDifferentiable, match="depends on 'total'"):
            getattr(differentiable(func), how)(2.0)
    assert func.__globals__["total"] == 5.0
    assert differentiable(func, backend="python")(2.0) == 10.0
    assert func.__globals__["total"] == 10.0

    count = 0.0

    def g(x: float) -> float:
        nonlocal count
        count += x
        return count

    with pytest.raises(NotDifferentiable, match="depends on 'count'"):
        differentiable(g).grad(2.0)
    assert count == 0.0


def test_b23_written_in_a_callee() -> None:
    text = "total = 5.0\ndef g(x):\n    global total\n    total = x\n    return x\ndef f(x):\n    return g(x) * total\n"
    func = define(text)
    assert differentiable(func, backend="python").grad(2.0) == 4.0
    assert func.__globals__["total"] == 2.0


# ---- values outside that change ------------------------------------------------------------------------------------


def test_b24_cell_that_changes_between_calls(backend: str) -> None:
    scale, weights = 2.0, np.array([1.0, 2.0])

    def f(x: np.ndarray) -> float:
        return (x * weights).sum() * scale

    derived = differentiable(f, backend=backend)
    x = np.array([1.0, 3.0])
    check(derived, f, x)
    scale = 5.0
    check(derived, f, x)
    weights[0] = 7.0  # the same array with other contents
    check(derived, f, x)
    weights = np.array([10.0, 20.0])
    check(derived, f, x)
    scale = 3  # of another type
    check(derived, f, x)
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    check(derived, f, x)


def test_b24_closures_of_one_def_do_not_share_values(backend: str) -> None:
    def make(scale: float) -> Callable[[float], float]:
        def f(x: float) -> float:
            return x * x * scale

        return f

    for scale in (2.0, 3.0, 2.0):
        check(differentiable(make(scale), backend=backend), make(scale), 1.5)


def test_b24_object_whose_attribute_changes(backend: str) -> None:
    settings = types.SimpleNamespace(rate=2.0, table=np.array([1.0, 2.0]))

    def f(x: float) -> float:
        return x * x * settings.rate + x * settings.table[1]

    derived = differentiable(f, backend=backend)
    check(derived, f, 1.5)
    settings.rate = 4.0
    check(derived, f, 1.5)
    settings.table[1] = 9.0
    check(derived, f, 1.5)
    settings.table = np.array([0.0, -3.0, 5.0])
    check(derived, f, 1.5)


def test_b24_branch_on_a_cell(backend: str) -> None:
    quick, order = True, 2

    def f(x: float) -> float:
        if quick:
            return x * x
        y = 1.0
        for _ in range(order):
            y = y * x
        return y * 3.0

    derived = differentiable(f, backend=backend)
    check(derived, f, 1.5)
    quick = False
    check(derived, f, 1.5)
    order = 5
    check(derived, f, 1.5)


def with_globals(x: float) -> float:
    return math.sin(x * RATE) + x * WEIGHTS[2]


def test_b25_globals_that_change(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    derived = differentiable(with_globals, backend=backend)
    check(derived, with_globals, 0.5)
    monkeypatch.setitem(with_globals.__globals__, "RATE", 5.0)
    check(derived, with_globals, 0.5)
    monkeypatch.setitem(with_globals.__globals__, "WEIGHTS", np.array([0.0, 0.0, -4.0]))
    check(derived, with_globals, 0.5)
    monkeypatch.setitem(with_globals.__globals__, "RATE", 1)
    check(derived, with_globals, 0.5)


def test_b25_global_read_by_a_callee(backend: str) -> None:
    text = "rate = 2.0\ndef g(x):\n    return x * x * rate\ndef f(x):\n    return g(x) + x\n"
    func = define(text)
    derived = differentiable(func, backend=backend)
    for rate in (2.0, 3.0, -1.0):
        func.__globals__["rate"] = rate
        assert derived.value_and_grad(2.0) == (4.0 * rate + 2.0, 4.0 * rate + 1.0)


def test_b25_global_that_disappears(backend: str) -> None:
    func = define("rate = 2.0\n\ndef f(x):\n    return x * rate\n")
    derived = differentiable(func, backend=backend)
    assert derived.grad(1.0) == 2.0
    del func.__globals__["rate"]
    with pytest.raises(NameError, match="name 'rate' is not defined"):
        derived.grad(1.0)


# ---- helpers that change -------------------------------------------------------------------------------------------


def test_b25_global_function_replaced(backend: str) -> None:
    func = define("def g(x):\n    return x * x\n\ndef f(x):\n    return g(x) * 2.0\n")
    derived = differentiable(func, backend=backend)
    assert derived.value_and_grad(3.0) == (18.0, 12.0)
    func.__globals__["g"] = define("def g(x):\n    return x * x * x\n", "g")
    assert derived.value_and_grad(3.0) == (54.0, 54.0)
    # and the code of the function exchanged in place
    func.__globals__["g"].__code__ = define("def g(x):\n    return x * 5.0\n", "g").__code__
    assert derived.value_and_grad(3.0) == (30.0, 10.0)


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[types.ModuleType, Path]]:
    """A module that can be edited and reloaded."""
    path = tmp_path / "edited_helper.py"
    path.write_text("def g(x):\n    return x * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    module = importlib.import_module("edited_helper")
    yield module, path
    sys.modules.pop("edited_helper")


def test_b26_helper_module_edited_and_reloaded(helper: tuple[types.ModuleType, Path], backend: str) -> None:
    module, path = helper
    derived = differentiable(lambda x: module.g(x) * 2.0, backend=backend)
    assert derived.value_and_grad(3.0) == (18.0, 12.0)
    path.write_text("# an edit\n\ndef g(x):\n    return x * x * x\n")
    importlib.reload(module)
    assert derived.value_and_grad(3.0) == (54.0, 54.0)


def test_b26_helper_edited_but_not_reloaded(helper: tuple[types.ModuleType, Path]) -> None:
    # Python runs the old code, whose text is gone
    module, path = helper
    path.write_text("def g(x):\n    return x * x * x\n")
    with pytest.raises(TapegenError, match="the text on disk of 'g' is not the loaded code"):
        differentiable(lambda x: module.g(x) * 2.0).grad(3.0)
