"""Factorizations of complex matrices: what does not depend on phases that LAPACK chooses has derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg

import tapegen as tg
from tapegen.errors import BadArgument

RNG = np.random.default_rng(2)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


A = normal(3, 3) + np.diag([4.0, 1.0 + 3.0j, -2.0])
TALL = normal(4, 3)
STACK = np.stack([A, A.T + 1.0])
C, D = normal(3, 3), normal(4, 4)


def hermitian(a):
    return a @ a.conj().T + 2.0 * np.eye(3)


def part(z):
    """A real number of complex ones, in which real and imaginary parts count otherwise."""
    return np.sum(z.real**2 + 0.3 * z.real * z.imag)


def cholesky(a):
    return part(np.linalg.cholesky(hermitian(a)) * C) + part(np.linalg.cholesky(hermitian(a), upper=True) * C)


def cholesky_of_one_triangle(a):
    return part(np.linalg.cholesky(a + 12.0 * np.eye(3)) * C)


def eigh(a):
    w, v = np.linalg.eigh(hermitian(a))
    return part((v * np.sin(w)) @ v.conj().T * C) + np.sum(w**3)


def eigh_of_the_other_triangle(a):
    w, v = np.linalg.eigh(a, "U")
    return part((v * np.sin(w)) @ v.conj().T * C) + np.sum(np.linalg.eigvalsh(a) ** 3)


def eig(a):
    w, v = np.linalg.eig(a)
    return part(w**2) + part(v * C) + part(np.linalg.eigvals(a @ C))


def eig_of_a_real_matrix(x):
    w, v = np.linalg.eig(x.astype(np.complex128))
    return part(w**3) + part(v * C)


def qr(a):
    q, r = np.linalg.qr(a)
    return part(q @ C) + part(r * C)


def svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (
        part((u * np.sin(s)) @ vh)
        + np.sum(s**3)
        + part(u @ np.diag(s) @ u.conj().T)
        + part(vh.conj().T @ np.diag(s) @ vh * C)
    )


def svdvals(a):
    return np.sum(np.linalg.svdvals(a) ** 3) + np.linalg.cond(a)


def pinv(a):
    return part(np.linalg.pinv(a) @ D) + part(np.linalg.pinv(a[:3]) @ C)


def slogdet(a):
    sign, length = np.linalg.slogdet(a)
    return length + part(sign * C[0, 0])


def of_stacks(a):
    w, v = np.linalg.eigh(a @ np.conj(np.swapaxes(a, -1, -2)))
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    sign, _ = np.linalg.slogdet(a)
    q, r = np.linalg.qr(a)
    first = part((v * np.expand_dims(np.sin(w), -2)) @ np.conj(np.swapaxes(v, -1, -2)))
    return first + part((u * np.expand_dims(np.sin(s), -2)) @ vh) + part(sign * 2.0j) + part(q @ C) + part(r)


CASES = [
    *((f, A) for f in (cholesky, cholesky_of_one_triangle, eigh, eigh_of_the_other_triangle, eig, qr, svd, svdvals)),
    (slogdet, A),
    *((f, TALL) for f in (qr, svd, pinv)),
    (eig_of_a_real_matrix, A.real + np.triu(C.imag)),
    (of_stacks, STACK),
]


@pytest.mark.parametrize(("function", "a"), CASES, ids=lambda value: getattr(value, "__name__", None))
def test_both_modes(function: Callable, a: np.ndarray) -> None:
    tg.check_grads(function, a, modes=("forward", "reverse"), backend="python")


@pytest.mark.parametrize("function", [cholesky, eigh, eig, qr, svd], ids=lambda function: function.__name__)
def test_second_order(function: Callable) -> None:
    tg.check_grads(function, A, modes=("forward", "reverse"), order=2, backend="python")


def levels(t: float) -> Any:
    total = 0.0
    for k in (0.3, 1.1):
        a = np.zeros((2, 2), dtype=complex)
        a[0, 1] = 1.0 + t * np.exp(-1j * k)
        a[1, 0] = np.conj(a[0, 1])
        total += np.linalg.eigvalsh(a)[1] ** 3 + np.linalg.svd(np.stack([a, a]), compute_uv=False)[0, 0]
    return total


@pytest.mark.compiled
def test_eigenvalues_and_singular_values_are_real_in_compiled_code() -> None:
    product = tg.hvp(levels, (0.7,), (1.0,), backend="numba")
    assert product == pytest.approx(tg.hvp(levels, (0.7,), (1.0,), backend="python"), rel=1e-12)


OSCILLATING = np.array([[0.3, -1.2, 0.1], [1.4, 0.2, 0.3], [-0.2, 0.1, 2.0]])
GROWING = np.array([[0.3, 0.2, 0.1], [1.4, 1.2, 0.3], [-0.2, 0.1, 2.0]])


def of_values_and_vectors(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    return np.sum(np.abs(w) ** 3) + np.sum(np.real(w) * np.arange(3.0)) + np.sum(np.abs(v) ** 4)


def fastest(a: Any) -> Any:
    return np.max(np.real(np.linalg.eigvals(a)))


@pytest.mark.parametrize("a", [OSCILLATING, GROWING], ids=["complex", "real"])
@pytest.mark.parametrize("function", [of_values_and_vectors, fastest])
def test_eigenvalues_of_real_matrices(function: Callable, a: np.ndarray) -> None:
    tg.check_grads(function, a, modes=("forward", "reverse"), order=2, backend="python")
    assert tg.differentiable(function, backend="python")(a) == function(a)


def test_eigenvalues_of_real_matrices_are_complex_in_any_case() -> None:
    call = tg.differentiable(lambda a: np.linalg.eig(a), backend="python")
    assert [part.dtype for part in call.vjp(GROWING)[0]] == [np.complex128, np.complex128]
    assert [part.dtype for part in call.vjp(GROWING.astype(np.float32))[0]] == [np.complex64, np.complex64]


@pytest.mark.parametrize("p", [np.array([1.0, -3.0, 3.5, -2.5]), np.array([2.0, 1.0, -3.0])], ids=["complex", "real"])
def test_roots(p: np.ndarray) -> None:
    def spread(p: Any) -> Any:
        return np.sum(np.abs(np.roots(p)) ** 2 + np.real(np.roots([1.0, p[1], p[2]]))[0])

    tg.check_grads(spread, p, modes=("forward", "reverse"), order=2, backend="python")


def schur(a: Any) -> Any:
    t, z = linalg.schur(a)
    return np.sum(t * t * np.arange(9.0).reshape(3, 3)) + np.sum(z**3)


def complex_schur(a: Any) -> Any:
    t, z = linalg.schur(a, output="complex")
    return np.sum(np.abs(t) ** 2 * np.arange(9.0).reshape(3, 3)) + np.sum(np.abs(z) ** 4)


@pytest.mark.parametrize(
    ("function", "a"), [(schur, GROWING), (complex_schur, OSCILLATING), (complex_schur, A)], ids=["real", "pair", "any"]
)
def test_schur(function: Callable, a: np.ndarray) -> None:
    tg.check_grads(function, a, modes=("forward", "reverse"), order=2, backend="python")


def test_the_real_schur_form_of_complex_eigenvalues_is_refused() -> None:
    with pytest.raises(BadArgument, match="a real form with blocks is not unique; pass output='complex'"):
        tg.grad(schur, backend="python")(OSCILLATING)
