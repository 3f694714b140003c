"""Functions made for vector instructions: errors, special values, and the same bits one by one and side by side."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy import special

import tapegen as tg
from tapegen.backend.printer.helper_functions import INLINED
from tapegen.ir import vector_math
from tests.sources import define

R = np.random.default_rng(11)
COUNT = 4000
FUNCTIONS = {
    "exp": vector_math.vexp,
    "log": vector_math.vlog,
    "log1p": vector_math.vlog1p,
    "sin": vector_math.vsin,
    "cos": vector_math.vcos,
    "tanh": vector_math.vtanh,
    "erf": vector_math.verf,
    "erfc": vector_math.verfc,
    "ndtr": vector_math.vndtr,
}


def of_all_sizes(low: float, high: float) -> np.ndarray:
    return np.exp2(R.uniform(low, high, COUNT)) * R.choice([-1.0, 1.0], COUNT)


def of_any_bits() -> np.ndarray:
    found = R.integers(0, 2**64, COUNT, dtype=np.uint64).view(np.float64)
    return found[np.isfinite(found)]


ANGLES = (
    R.uniform(-10.0, 10.0, COUNT),
    of_all_sizes(-1074, 15),
    R.integers(-20860, 20861, COUNT) * (np.pi / 2),
    R.uniform(-32768.0, 32768.0, COUNT),
)
POINTS = {
    "exp": (
        R.uniform(-1.0, 1.0, COUNT),
        R.uniform(-746.0, 710.0, COUNT),
        R.uniform(-745.2, -707.0, COUNT),
        of_any_bits(),
    ),
    "log": (
        1.0 + of_all_sizes(-52, -1),
        np.abs(of_any_bits()),
        np.abs(of_all_sizes(-1074, -1020)),
        R.uniform(0.6, 1.7, COUNT),
    ),
    "log1p": (
        of_all_sizes(-1074, -0.1),
        np.abs(of_any_bits()),
        R.uniform(-1.0, 2.0, COUNT),
        np.exp(R.uniform(-40, 40, COUNT)),
    ),
    "sin": ANGLES,
    "cos": ANGLES,
    "tanh": (R.uniform(-1.0, 1.0, COUNT), R.uniform(-20.0, 20.0, COUNT), of_all_sizes(-1074, 6), of_any_bits()),
    "erf": (R.uniform(0.8, 1.3, COUNT), R.uniform(-6.5, 6.5, COUNT), of_all_sizes(-1074, 3), of_any_bits()),
    "erfc": (
        R.uniform(0.2, 1.5, COUNT),
        R.uniform(-6.5, 26.0, COUNT),
        R.uniform(25.0, 27.3, COUNT),
        np.clip(of_any_bits(), -50.0, 50.0),
    ),
    "ndtr": (
        R.uniform(-2.0, 0.5, COUNT),
        R.uniform(-37.0, 9.0, COUNT),
        R.uniform(-38.6, -36.0, COUNT),
        np.clip(of_any_bits(), -50.0, 50.0),
    ),
}
LARGEST_ERROR = {"exp": 0.8, "log": 0.9, "log1p": 0.9, "sin": 0.8, "cos": 0.8, "tanh": 0.9, "erf": 0.95}
LARGEST_ERROR |= {"erfc": 3.5, "ndtr": 3.5}
EXACT = {"erf": mpmath.erf, "erfc": mpmath.erfc, "ndtr": mpmath.ncdf}
PYTHON = {"erf": math.erf, "erfc": math.erfc, "ndtr": special.ndtr}


def errors(name: str, x: np.ndarray) -> np.ndarray:
    """Distances from the true values, in units in the last place."""
    with np.errstate(all="ignore"):
        got = np.array([FUNCTIONS[name](item) for item in x])
    exact = _extended(name, x)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(rounded))
    finite = np.isfinite(rounded)
    off = np.abs(got[finite].astype(np.longdouble) - exact[finite])
    return (off / np.spacing(np.abs(rounded[finite]))).astype(np.float64)


def _extended(name: str, x: np.ndarray) -> np.ndarray:
    if name in EXACT:
        with mpmath.workprec(90):
            exact = [mpmath.ldexp(EXACT[name](mpmath.mpf(float(item))), 200) for item in x]
            high = [float(item) for item in exact]
            low = [float(item - rough) for item, rough in zip(exact, high, strict=True)]
        return (np.array(high, np.longdouble) + low) / np.longdouble(2.0) ** 200
    with np.errstate(all="ignore"):
        return getattr(np, name)(x.astype(np.longdouble))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="longdouble is no longer than double")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(name: str) -> None:
    worst = max(float(np.max(errors(name, x))) for x in POINTS[name])
    assert 0.5 < worst < LARGEST_ERROR[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_in_many_digits(name: str) -> None:
    with mpmath.workprec(200), np.errstate(all="ignore"):
        for x in POINTS[name]:
            for item in x[:25]:
                want = (EXACT.get(name) or getattr(mpmath, name))(mpmath.mpf(float(item)))
                if abs(want) < 1e308:
                    got = float(FUNCTIONS[name](item))
                    assert abs(got - want) <= LARGEST_ERROR[name] * mpmath.mpf(float(np.spacing(abs(float(want))))), (
                        item
                    )


SPECIAL = [0.0, 5e-324, 2.2250738585072014e-308, 1.0, 709.782712893384, 709.7827128933841, 745.1332191019411]
SPECIAL += [745.1332191019412, 746.0, 1e5, 1.7976931348623157e308, np.inf, np.nan, np.nextafter(1.0, 2.0)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    for item in [*SPECIAL, *(-x for x in SPECIAL)]:
        if name in ("sin", "cos") and abs(item) > 32768:
            continue
        with np.errstate(all="ignore"):
            got, want = (
                FUNCTIONS[name](np.float64(item)),
                (PYTHON.get(name) or getattr(np, name))(np.float64(item)),
            )
        if np.isfinite(want) and want not in (0.0, 1.0, -1.0):
            rtol = 5e-16 if name in ("erfc", "ndtr") else 3e-16
            np.testing.assert_allclose(got, want, rtol=rtol, atol=0.0 if abs(want) > 1e-300 else 5e-324)
        else:
            np.testing.assert_array_equal(got, want)
            assert np.isnan(want) or np.signbit(got) == np.signbit(want)


# ---- single precision ------------------------------------------------------------------------------------------------

SINGLE = {
    "exp": vector_math.vexpf,
    "log": vector_math.vlogf,
    "log1p": vector_math.vlog1pf,
    "sin": vector_math.vsinf,
    "cos": vector_math.vcosf,
    "tanh": vector_math.vtanhf,
}
STRIDE = 40009
"""Distance of the bit patterns that are tested, of all that there are."""


def singles(name: str, stride: int = STRIDE) -> np.ndarray:
    """float32 of both signs and all sizes, subnormal ones included, and the densest region of errors."""
    positive = np.arange(0, 0x7F800000, stride, dtype=np.uint32)
    x = np.concatenate([positive.view(np.float32), -positive.view(np.float32), R.uniform(-3.0, 3.0, COUNT)])
    x = x.astype(np.float32)
    if name in ("sin", "cos"):
        multiples = (np.arange(-2600, 2601) * (np.pi / 2)).astype(np.float32)
        x = np.concatenate([x, multiples, np.nextafter(multiples, np.float32(0.0))])
        x = x[np.abs(x) <= vector_math.LARGEST_ANGLE["float32"]]
    return x


def single_errors(name: str, x: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Distances from the values in double precision, in units in the last place of single precision."""
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    zero = rounded == 0.0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))
    return np.abs(got[finite].astype(np.float64) - exact[finite]) / np.spacing(np.abs(rounded[finite]))


@pytest.mark.parametrize("name", SINGLE)
def test_errors_in_single_precision(name: str) -> None:
    x = singles(name, 10 * STRIDE)
    with np.errstate(all="ignore"):
        got = np.array([SINGLE[name](item) for item in x])
    assert got.dtype == np.float32
    assert 0.5 < np.max(single_errors(name, x, got)) < 0.8


@pytest.mark.parametrize("name", SINGLE)
def test_special_values_in_single_precision(name: str) -> None:
    special = np.array(
        [0.0, 1e-45, 1.1754944e-38, 1.0, 88.72283, 88.72284, 103.97, 104.0, 1e30, 3.4e38, np.inf, np.nan]
    )
    x = np.concatenate([special, -special]).astype(np.float32)
    if name in ("sin", "cos"):
        x = x[~(np.abs(x) > vector_math.LARGEST_ANGLE["float32"])]
    with np.errstate(all="ignore"):
        got = np.array([SINGLE[name](item) for item in x])
    assert np.max(single_errors(name, x, got)) < 0.8


@pytest.mark.compiled
@pytest.mark.parametrize("name", SINGLE)
def test_vector_instructions_in_single_precision(name: str) -> None:
    function = compiled(SINGLE[name])

    @njit(error_model="numpy")
    def of_each(x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    x = singles(name)
    y = np.empty_like(x)
    of_each(x, y)
    assert np.max(single_errors(name, x, y)) < 0.8
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y[::50], [SINGLE[name](item) for item in x[::50]])
    text = of_each.inspect_llvm(of_each.signatures[0])
    assert " x float>" in text and "double" not in text and " x i64>" not in text


# ---- compiled --------------------------------------------------------------------------------------------------------


def compiled(function: Any) -> Any:
    namespace: dict[str, Any] = {"np": np, "njit": njit}
    for each in (*vector_math.CALLED[function], function):
        exec("\n".join([f"@{INLINED}", *vector_math.text_of(each)]), namespace)
    return namespace[function.__name__]


@pytest.mark.compiled
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vector_instructions_give_the_same_bits(name: str) -> None:
    function = compiled(FUNCTIONS[name])

    @njit(error_model="numpy")
    def of_each(x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    for x in POINTS[name]:
        y = np.empty_like(x)
        of_each(x, y)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(y, [FUNCTIONS[name](item) for item in x])
    assert " x double>" in of_each.inspect_llvm(of_each.signatures[0])


def test_functions_and_numpy_may_be_called_like_variables_of_these() -> None:
    loss: Any = define(
        """
        import numpy as scale

        def power(x, n):
            return 1.0 if n == 0 else x * power(x, n - 1)

        def loss(x, n):
            return scale.sum(scale.exp(-x)) + power(x[0], n)
        """,
        "loss",
    )
    x = np.linspace(0.5, 2.0, 50)
    derived = tg.differentiable(loss)
    text = str(derived.inspect(x, 3).compiled)
    assert "def power(x, n, depth):" in text
    assert "def vexp(x):" in text
    value, gradient = derived.value_and_grad(x, 3)
    assert value == pytest.approx(loss(x, 3), rel=1e-14)
    step = 1e-6 * np.eye(50)[0]
    assert gradient[0] == pytest.approx((loss(x + step, 3) - loss(x - step, 3)) / 2e-6, rel=1e-8)
