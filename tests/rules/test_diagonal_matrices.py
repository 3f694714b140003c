"""Second derivatives of matrix functions at diagonal matrices, where cotangents are exactly zero in many places."""

from __future__ import annotations

import numpy as np
import pytest

import tapegen as tg
from tests.grown.checks import judge

CALLS = {
    "svd": "u, s, vh = np.linalg.svd(a, full_matrices=False)\n    r = np.sin(u @ vh + 0.5) + s",
    "svdvals": "r = np.linalg.svdvals(a) ** 2",
    "eigh": "w, q = np.linalg.eigh(a + a.T)\n    r = np.sin(q @ np.diag(np.exp(w)) @ q.T)",
    "eigvalsh": "r = np.exp(np.linalg.eigvalsh(a + a.T))",
    "eig": "w, q = np.linalg.eig(a)\n    r = np.sin((q @ np.diag(w * w) @ np.linalg.inv(q)).real)",
    "eigvals": "r = np.exp(np.linalg.eigvals(a).real * 0.3)",
    "polar": "p, h = scipy.linalg.polar(a)\n    r = np.sin(p + 0.5) * np.sin(h + 0.3)",
    "qr": "q, t = np.linalg.qr(a)\n    r = np.sin((q * q) @ (t * t))",
    "cholesky": "r = np.sin(np.linalg.cholesky(a + a.T))",
    "sqrtm": "r = np.sin(scipy.linalg.sqrtm(a).real)",
    "expm": "r = np.sin(scipy.linalg.expm(a * 0.3))",
    "logm": "r = np.sin(scipy.linalg.logm(a).real)",
    "pinv": "r = np.sin(np.linalg.pinv(a))",
    "norm": "r = np.linalg.norm(a, 2) * np.linalg.norm(a, 'nuc') * np.linalg.norm(a)",
    "cond": "r = np.linalg.cond(a)",
    "det": "r = np.linalg.det(a) * np.linalg.slogdet(a)[1]",
    "matrix_power": "r = np.sin(np.linalg.matrix_power(a, 3) * 0.1)",
    "lstsq": "r = np.linalg.lstsq(a, np.array([1.0, 0.0, 0.0]))[0] ** 2",
}
PROGRAM = """
import numpy as np
import scipy.linalg

def f(a):
    {call}
    return np.sum(r * np.arange(1.0, 1.0 + np.size(r)).reshape(np.shape(r)))

def arguments():
    return (np.diag([1.0, 2.0, 3.5]),)
"""


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives(name: str) -> None:
    verdict = judge(PROGRAM.format(call=CALLS[name]), ("reverse", "forward", "second"))
    assert verdict.kind == "right", verdict


def test_hessians_of_both_orders_agree() -> None:
    def turned(a: np.ndarray) -> float:
        u, _, vh = np.linalg.svd(a)
        return np.sum(np.sin(u @ vh + 0.5))

    matrix = np.diag([1.0, 2.0, 3.5])
    gradient = tg.grad(turned, backend="python")
    expected = tg.hessian(turned, backend="python")(matrix)
    np.testing.assert_allclose(tg.jacobian(gradient, mode="reverse")(matrix), expected, rtol=1e-9, atol=1e-12)
