"""Factorisations of complex matrices: what does not depend on phases that LAPACK chooses has derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import NotDifferentiable

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


def test_eigenvalues_of_real_matrices_are_refused() -> None:
    with pytest.raises(NotDifferentiable, match="eigenvalues of a real matrix may be complex"):
        tg.grad(lambda x: np.sum(np.abs(np.linalg.eigvals(x))), backend="python")(A.real)
