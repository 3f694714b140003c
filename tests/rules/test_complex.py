"""Derivatives through complex numbers, against differences in their real and imaginary parts."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import (
    BadArgument,
    MissingRule,
    NotDifferentiable,
    NotFinite,
    TapegenError,
)
from tests.judged import both

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


Z, W, X = normal(5), normal(5), RNG.normal(size=5)
M, N = normal(5, 5), RNG.normal(size=(5, 4))
C, D = 0.3 + 0.7j, 0.2 - 0.5j


# ---- programs --------------------------------------------------------------------------------------------------------


def spectrum(x: np.ndarray, wanted: np.ndarray) -> float:
    """Power of a signal in each frequency, against the one that is wanted."""
    power = np.abs(np.fft.rfft(x)) ** 2 / x.size
    return np.sum((power - wanted) ** 2)


def filtered(x: np.ndarray, response: np.ndarray) -> float:
    y = np.fft.irfft(np.fft.rfft(x) * response, x.size)
    return np.sum((y - 1.0) ** 2)


def impedance(resistance: float, inductance: float, capacity: float, omega: float) -> float:
    """Length and angle of the impedance of a circuit: numbers of Python."""
    z = resistance + 1j * omega * inductance + 1.0 / (1j * omega * capacity)
    parallel = z * resistance / (z + resistance)
    return abs(parallel) + cmath.phase(parallel) * parallel.real


def evolved(step: float, start: np.ndarray) -> float:
    """A chain of spins: phases and rotations of neighbours, written into the state one by one."""
    psi = start.copy()
    n = psi.size
    for _ in range(4):
        for i in range(n):
            psi[i] *= np.exp(-1j * step * (i + 1.0))
        for i in range(n - 1):
            a = psi[i]
            b = psi[i + 1]
            psi[i] = np.cos(step) * a - 1j * np.sin(step) * b
            psi[i + 1] = np.cos(step) * b - 1j * np.sin(step) * a
    return np.sum(np.abs(psi[:2]) ** 2)


def relaxed(h: np.ndarray, psi: np.ndarray, tau: float) -> float:
    """Energy of a state after implicit steps in imaginary time."""
    system = np.eye(psi.size) + 0.5j * tau * (h + h.conj().T)
    for _ in range(3):
        psi = np.linalg.solve(system, psi)
        psi = psi / np.sqrt(np.vdot(psi, psi).real)
    return np.vdot(psi, h @ psi).real


def iterated(c: complex) -> float:
    """A `while` loop whose number of iterations depends on a length."""
    z = 0j
    count = 0
    while abs(z) < 2.0 and count < 20:
        z = z * z + c
        count += 1
    return abs(z)


def branches(z: np.ndarray) -> float:
    total = 0.0
    for k in range(z.size):
        w = z[k]
        if w.imag > 0.0:
            w = w.conjugate() ** 2
        elif w.real > 0.5:
            w = 1.0 / w
        total += w.real * w.imag + abs(w) ** 3
    return total


def stored(z: np.ndarray) -> np.ndarray:
    a = np.zeros(z.size, complex)
    for i in range(z.size):
        a[i] = z[i] * z[i - 1]
        a[i] += np.conj(z[i])
    a[1:] -= 0.5 * a[:-1]
    a *= 1j
    return a


def grown(z: np.ndarray, x: float) -> float:
    terms = []
    for k in range(z.size):
        terms.append(z[k] * x)
        x = abs(terms[-1]) + 0.5
    return sum(terms).imag


def of_one_kind_then_another(x: float, y: float) -> float:
    """A variable that is real before the loop and complex in it."""
    z = x
    for k in range(3):
        z = z * (1.0 + 1j * y) + k
    return abs(z)


def chosen(x: float, y: float) -> float:
    """Items of a list at places that the run computes."""
    numbers = [1.0 + 2j, x + 1j * y, 2.0 - 1j * x]
    total = 0j
    for k in range(1, len(numbers)):
        total += numbers[k] * numbers[k - 1] ** 2
    return abs(total) + total.imag


PROGRAMS: list[tuple[Callable, tuple]] = [
    (spectrum, (X, np.ones(3))),
    (filtered, (X, np.array([1.0, 0.5, 0.2]))),
    (impedance, (1.0, 2.0, 0.5, 1.3)),
    (evolved, (0.3, Z)),
    (relaxed, (M, Z, 0.2)),
    (iterated, (0.31 + 0.55j,)),
    (branches, (Z,)),
    (stored, (Z,)),
    (grown, (Z, 0.7)),
    (of_one_kind_then_another, (0.4, 0.9)),
    (chosen, (0.4, 0.9)),
]


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda part: getattr(part, "__name__", ""))
def test_program(function: Callable, args: tuple) -> None:
    tg.check_grads(function, *args, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda part: getattr(part, "__name__", ""))
def test_compiled_program(function: Callable, args: tuple) -> None:
    tg.check_grads(function, *args, modes=("forward", "reverse"), backend="numba")


# ---- functions -------------------------------------------------------------------------------------------------------

HOLOMORPHIC = (
    *(np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan),
    *(np.arcsinh, np.arccosh, np.arctanh, np.log1p, np.expm1, np.log2, np.log10, np.square, np.reciprocal, np.exp2),
)
OF_NUMBERS = (
    *(cmath.exp, cmath.log, cmath.sqrt, cmath.sin, cmath.cos, cmath.tan, cmath.sinh, cmath.cosh, cmath.tanh),
    *(cmath.asin, cmath.acos, cmath.atan, cmath.asinh, cmath.acosh, cmath.atanh, cmath.log10, cmath.phase),
)
CALLS: dict[str, tuple[Callable, tuple]] = {
    "numbers": (lambda z, w: z * w + z / w - w**2 + z**w + w**-1.5, (C, D)),
    "arrays": (lambda z, w, x: z * w + z / w - x * z + 2.0 * w + x**2, (Z, W, X)),
    "parts": (lambda z: z.real**2 + z.imag * 3.0 + np.real(z) * np.imag(z), (Z,)),
    "parts of a number": (lambda z: z.real**2 + z.imag * 3.0, (C,)),
    "conjugates": (lambda z: z.conj() * z.conjugate() + np.conj(z) ** 3, (Z,)),
    "conjugate of a number": (lambda z: z.conjugate() * z * z, (C,)),
    "lengths and angles": (lambda z: np.abs(z) + abs(z) * np.angle(z) + np.angle(z, deg=True), (Z,)),
    "of two numbers": (lambda a, b: complex(a, b) ** 2, (0.3, 0.6)),
    "sums": (lambda z: z.sum() + np.mean(z) * np.prod(z), (Z,)),
    "spread": (lambda z: np.var(z) + np.std(z, ddof=1), (Z,)),
    "vectors": (lambda z, w, x: np.dot(z, w) + np.vdot(z, w) + np.vdot(x, w) + z @ x, (Z, W, X)),
    "matrices": (lambda m, n, z: (m @ n, m @ z, n.T @ z, np.outer(z, z), np.kron(z, n)), (M, N, Z)),
    "einsum": (lambda m, z: np.einsum("ij,j->i", m, z), (M, Z)),
    "solve": (lambda m, z: np.linalg.solve(m, z), (M, Z)),
    "inverse": (lambda m: np.linalg.inv(m) * np.linalg.det(m), (M,)),
    "norms": (lambda m: (np.linalg.norm(m), np.linalg.norm(m, axis=0)), (M,)),
    "norms of vectors": (lambda m: [np.linalg.norm(m, p, axis=1) for p in (1, 3, np.inf, -np.inf, 0.5)], (M,)),
    "norms of matrices": (lambda m: [np.linalg.norm(m, p) for p in (1, -1, np.inf, 2, -2, "nuc")], (M,)),
    "choice": (lambda z, x: np.where(x > 0, z, x), (Z, X)),
    "joined": (lambda z, x: np.concatenate((z, x, z[::-1])), (Z, X)),
    "convolved": (lambda z, w: (np.convolve(z, w), np.correlate(z, w, "full")), (Z, W[:3])),
    "cumulated": (lambda z: (np.cumprod(z), np.cumsum(z)), (Z,)),
    "polar": (lambda z: (cmath.polar(z)[0] * 2.0, cmath.polar(z)[1]), (C,)),
    "from polar": (lambda r, phi: cmath.rect(r, phi), (0.3, 0.4)),
    "holomorphic": (lambda z: tuple(f(z) for f in HOLOMORPHIC), (Z,)),
    "cmath": (lambda z: tuple(f(z) for f in OF_NUMBERS), (C,)),
    "fft": (lambda z: (np.fft.fft(z), np.fft.ifft(z), np.fft.fft(z, 8), np.fft.fft(z, 3, norm="ortho")), (Z,)),
    "irfft": (lambda z: (np.fft.irfft(z), np.fft.irfft(z, 9), np.fft.irfft(z, 6, norm="ortho")), (Z,)),
    "hfft": (lambda z: (np.fft.hfft(z), np.fft.hfft(z, 7)), (Z,)),
    "rfft": (lambda x: (np.fft.rfft(x), np.fft.rfft(x, 4), np.fft.rfft(x, 8, norm="forward"), np.fft.ihfft(x)), (X,)),
    "fft2": (lambda m: (np.fft.fft2(m), np.fft.ifftn(m), np.fft.fftn(m, axes=(0,)), np.fft.fftshift(m)), (M,)),
    "rfft2": (lambda m, n: (np.fft.rfftn(n), np.fft.irfftn(m), np.fft.rfft2(n, (4, 6)), np.fft.irfft2(m)), (M, N)),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    function, args = CALLS[name]
    tg.check_grads(function, *args, modes=("forward", "reverse"), backend="python")


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name for name in CALLS if "fft" not in name])
def test_compiled_call(name: str) -> None:
    function, args = CALLS[name]
    tg.check_grads(function, *args, modes=("forward", "reverse"), backend="numba")


SECOND = ("numbers", "parts", "conjugates", "lengths and angles", "spread", "vectors", "solve", "holomorphic", "irfft")


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name: str) -> None:
    function, args = CALLS[name]
    tg.check_grads(function, *args, modes=("forward", "reverse"), order=2, backend="python")


# ---- the convention --------------------------------------------------------------------------------------------------


def length_and_angle(z: Any) -> Any:
    return np.sum(np.abs(z * z) + z.real * z.imag)


@both
def test_a_gradient_is_the_derivative_by_the_real_part_minus_j_times_that_by_the_imaginary_part(backend: str) -> None:
    h = 1e-6
    gradient = tg.grad(tg.differentiable(length_and_angle, backend=backend))
    for k, unit in enumerate(np.eye(5)):
        slopes = [(length_and_angle(Z + d * unit) - length_and_angle(Z - d * unit)) / (2 * h) for d in (h, 1j * h)]
        assert gradient(Z)[k] == pytest.approx(slopes[0] - 1j * slopes[1], rel=1e-7)
    assert gradient(Z).dtype == np.complex128
    assert tg.grad(lambda z: (z * z).real, backend=backend)(3.0 + 4.0j) == 6.0 + 8.0j  # as JAX and autograd
    assert tg.grad(lambda z: abs(z) ** 2, backend=backend)(3.0 + 4.0j) == pytest.approx(6.0 - 8.0j)


@both
def test_real_arguments_have_real_gradients(backend: str) -> None:
    def damped(x: float, u: np.ndarray) -> float:
        z = np.exp((1j - 0.1) * x) * u
        return np.sum(z.real * z.imag)

    slope, along = tg.differentiable(damped, wrt=(0, 1), backend=backend).grad(0.4, X)
    assert type(slope) is float and along.dtype == np.float64


@both
def test_holomorphic_functions_have_products_and_no_gradient(backend: str) -> None:
    def cubed(z: complex) -> complex:
        return z**3

    function = tg.differentiable(cubed, backend=backend)
    value, pull = function.vjp(C)
    assert value == C**3
    assert pull(1.0 + 0j) == pytest.approx(3 * C**2)
    assert pull(1j) == pytest.approx(3j * C**2)  # cotangents are multiplied by the derivative, and not conjugated
    assert function.jvp((C,), (1j,))[1] == pytest.approx(3j * C**2)
    with pytest.raises(BadArgument, match="cubed returns a complex number, which has no gradient") as caught:
        function.grad(C)
    assert caught.value.span is not None


def test_cotangents_of_real_results_are_real() -> None:
    _, pull = tg.differentiable(length_and_angle, backend="python").vjp(Z)
    with pytest.raises(BadArgument, match="cotangent of result 0 is complex, the result is real"):
        pull(1j)
    with pytest.raises(BadArgument, match="tangent of 'x'"):
        tg.differentiable(lambda x: x * 2j, backend="python").jvp((1.0,), (1j,))
    with pytest.raises(BadArgument, match="does not fit the value whose tangent or cotangent it is"):
        tg.grad(lambda z: tg.vjp(length_and_angle, z)[1](1j)[0].real, backend="python")(Z)


@both
def test_single_precision_stays(backend: str) -> None:
    z = Z.astype(np.complex64)
    gradient = tg.grad(tg.differentiable(length_and_angle, backend=backend))(z)
    assert gradient.dtype == np.complex64
    np.testing.assert_allclose(gradient, tg.grad(length_and_angle, backend="python")(Z), rtol=1e-5)


# ---- special points --------------------------------------------------------------------------------------------------


def on_the_cut(name: str, sides: tuple[complex, ...]) -> list[tuple[Callable, complex]]:
    return [(function, z) for function in (getattr(cmath, name), getattr(np, f"arc{name[1:]}")) for z in sides]


SIDES = (2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0))
CUTS = [
    *on_the_cut("asin", SIDES),
    *on_the_cut("acos", SIDES),
    *on_the_cut("acosh", (*SIDES[2:], 0.5 + 0j, complex(0.5, -0.0))),
    *on_the_cut("asinh", (2j, complex(-0.0, 2), -2j, complex(-0.0, -2))),
    *[(function, z) for function in (np.sqrt, cmath.sqrt, np.log, cmath.log) for z in SIDES[2:]],
]


@both
@pytest.mark.parametrize("function", dict.fromkeys(function for function, _ in CUTS), ids=lambda f: f.__name__)
def test_derivatives_follow_the_side_of_a_branch_cut(function: Callable, backend: str) -> None:
    """The sign of a zero says on which side a number lies; the derivative is the limit from there."""
    derived = tg.differentiable(lambda z: function(z), backend=backend)
    for other, z in CUTS:
        if other is function:
            step = 1e-7 * complex(np.copysign(1.0, z.real), np.copysign(1.0, z.imag))  # further into the same side
            expected = (4 * function(z + step) - function(z + 2 * step) - 3 * function(z)) / (2 * step)
            assert derived.jvp((z,), (1.0,))[1] == pytest.approx(expected, rel=1e-6), z


@both
def test_conventions_at_zero(backend: str) -> None:
    assert tg.grad(lambda z: abs(z), backend=backend)(0j) == 0.0
    np.testing.assert_array_equal(tg.grad(lambda z: np.abs(z).sum(), backend=backend)(np.zeros(2, complex)), 0.0)
    np.testing.assert_array_equal(tg.grad(lambda z: np.linalg.norm(z), backend=backend)(np.zeros(2, complex)), 0.0)
    assert np.isnan(tg.grad(lambda z: np.angle(z).sum(), backend=backend)(np.zeros(1, complex))).all()
    np.testing.assert_array_equal(  # what is not taken has no say
        tg.grad(lambda z: np.where(z == 0.0, 0.0, np.angle(z)).sum(), backend=backend)(np.array([0j, 1j])), [0, -1]
    )


@both
def test_errors_are_those_of_python(backend: str) -> None:
    quotient = tg.differentiable(lambda z, w: abs(z / w), backend=backend)
    with pytest.raises(ZeroDivisionError):
        quotient.value_and_grad(1j, 0j)
    with pytest.raises(ValueError, match="math domain error"):
        tg.differentiable(lambda z: abs(cmath.log(z)), backend=backend).value_and_grad(0j)


def hidden_root(x: float) -> float:
    y = x**0.5
    return (1j * x * y).real


@both
def test_a_real_power_does_not_turn_complex_among_complex_numbers(backend: str) -> None:
    with pytest.raises(BadArgument, match="cannot continue here"):
        tg.differentiable(hidden_root, backend=backend).value_and_grad(-1.0)


def angle_of_nothing(z: np.ndarray) -> float:
    nothing = z - z
    return np.angle(nothing).sum() + abs(z[0])


def test_debug_nans_looks_at_complex_numbers() -> None:
    with tg.debug_nans(), pytest.raises(NotFinite, match="NaN") as caught:
        tg.grad(angle_of_nothing, backend="python")(Z)
    assert caught.value.span is not None


# ---- what is refused -------------------------------------------------------------------------------------------------


def complex_into_real(z: np.ndarray) -> float:
    a = np.zeros(z.size)
    a[0] = z[0]
    return a.sum()


def turned(x: np.ndarray) -> float:
    return np.sum(tg.scale_gradient(x, 2j) ** 2)


def as_float(z: complex) -> float:
    return float(z) * 2.0


def real_rule_only(z: np.ndarray) -> Any:
    return np.sort(z).real.sum()


def rounded(z: np.ndarray) -> Any:
    return np.abs(np.round(z) * z).sum()


REFUSED: list[tuple[Callable, Any, type[TapegenError], str]] = [
    (complex_into_real, Z, NotDifferentiable, "lose their imaginary parts"),
    (turned, X, NotDifferentiable, "a complex factor"),
    (as_float, C, NotDifferentiable, "drops its imaginary part"),
    (real_rule_only, Z, MissingRule, "for real numbers only"),
    (rounded, Z, MissingRule, "for real numbers only"),
]


def of_real_arguments(x: np.ndarray) -> float:
    return np.sum(np.abs(np.exp(1j * x) * x + 1j) ** 2)


@pytest.mark.parametrize(
    ("function", "value", "error", "reason"), REFUSED, ids=lambda part: getattr(part, "__name__", "")
)
def test_refused(function: Callable, value: Any, error: type[TapegenError], reason: str) -> None:
    with pytest.raises(error, match=reason) as caught:
        tg.grad(function, backend="python")(value)
    assert caught.value.span is not None and caught.value.advice
