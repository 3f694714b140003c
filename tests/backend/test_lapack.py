"""Functions of scipy.linalg in compiled code: LAPACK itself, called without Python."""

import warnings

import mpmath
import numpy as np
import pytest
from scipy import linalg

import tapegen as tg
from tapegen.errors import PerformanceWarning
from tests.oracle import numerical_gradient

pytestmark = pytest.mark.compiled
RNG = np.random.default_rng(5)
MATRIX, OTHER, RIGHT = RNG.normal(size=(6, 6)), RNG.normal(size=(4, 4)), RNG.normal(size=(6, 4))
PRECISIONS = [("f4", 2e-5), ("f8", 1e-13), ("c8", 2e-5), ("c16", 1e-13)]


@pytest.fixture(autouse=True)
def _all_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        yield


def same(got, want, tolerance):
    assert len(got) == len(want)
    for mine, expected in zip(got, want, strict=True):
        assert mine.dtype == expected.dtype
        assert mine.shape == expected.shape
        np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance)


def typed(a, dtype):
    return (a + 0.5j * a[::-1, ::-1] if dtype in ("c8", "c16") else a).astype(dtype)


def schur_forms(a):
    t, z = linalg.schur(a)
    own, turned = linalg.schur(a.T, "complex", check_finite=False)
    return t, z, own, turned


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_schur(dtype, tolerance):
    f = tg.differentiable(schur_forms)
    for a in (MATRIX, np.asfortranarray(MATRIX), MATRIX[::2, ::2], MATRIX[:1, :1], np.diag([1.0, 2.0, 2.0])):
        a = typed(a, dtype)
        same(f(a), schur_forms(a), tolerance)


def equation(a, b, q):
    return (linalg.solve_sylvester(a, b.T, q=q),)


@pytest.mark.parametrize(("dtype", "tolerance"), [pair for pair in PRECISIONS if pair[0] in ("f4", "f8")])
def test_sylvester(dtype, tolerance):
    f = tg.differentiable(equation)
    for a, b, q in (
        (MATRIX, OTHER, RIGHT),
        (MATRIX[::2, ::2], OTHER.T, RIGHT[:3]),
        (MATRIX, OTHER[:1, :1], RIGHT[:, :1]),
    ):
        a, b, q = (typed(x, dtype) for x in (a, b, q))
        same(f(a, b, q), equation(a, b, q), 50 * tolerance)
    mixed = MATRIX.astype("f4"), OTHER.astype("f4"), RIGHT
    same(f(*mixed), equation(*mixed), 1e-4)


def steady(a, k, steps):
    """Repeated solutions, of which each is the next right side."""
    x = a @ a.T
    for _ in range(steps):
        x = linalg.solve_sylvester(a, k * a.T, x + x.T)
    return np.sum(x**2)


def test_a_loop_of_equations():
    a = np.diag([2.0, 3.0, 2.5]) + 0.3 * MATRIX[:3, :3]
    f = tg.differentiable(steady, wrt=("a", "k"))
    value, (a_bar, k_bar) = f.value_and_grad(a, 0.7, 4)
    assert value == pytest.approx(steady(a, 0.7, 4), rel=1e-13)
    estimate = numerical_gradient(steady, (a, 0.7, 4))
    np.testing.assert_allclose(a_bar, estimate.value[0,], rtol=1e-7)
    np.testing.assert_allclose(k_bar, estimate.value[1,], rtol=1e-7)


def exponentials(a):
    return np.sum(linalg.funm(a, np.exp) ** 2)


def test_functions_of_a_matrix():
    a = np.diag([1.0, 2.2, 3.7]) + 0.3 * MATRIX[:3, :3]
    tg.check_grads(exponentials, a, modes=("forward", "reverse"))
    assert tg.differentiable(exponentials)(a) == pytest.approx(np.sum(linalg.expm(a) ** 2), rel=1e-12)


def eigenpairs(d, e):
    return *linalg.eigh_tridiagonal(d, e), linalg.eigh_tridiagonal(d[1:], e=e[1:], eigvals_only=True)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS[:2])
def test_tridiagonal_matrices(dtype, tolerance):
    f = tg.differentiable(eigenpairs)
    for d, e in ((MATRIX[0], OTHER.ravel()[:5]), (MATRIX[0, ::2], MATRIX[::3, 0]), (MATRIX[0, :2], RIGHT[0, :1])):
        same(f(d.astype(dtype), e.astype(dtype)), eigenpairs(d.astype(dtype), e.astype(dtype)), tolerance)


def oscillation(d, e):
    w, v = linalg.eigh_tridiagonal(d, e)
    return np.sum(np.exp(-w) * v[0] ** 2 * v[-1] ** 2) + np.sum(linalg.eigh_tridiagonal(e, e[1:], True) ** 3)


def test_derivatives_of_tridiagonal_matrices():
    tg.check_grads(oscillation, MATRIX[0], OTHER[1:, :2].ravel()[:5], modes=("forward", "reverse"))


TURNING = np.array([[1.0, -2.0, 0.3, 0.1], [2.0, 1.0, 0.4, -0.2], [0.0, 0.2, 0.5, 3.0], [0.1, 0.0, -3.0, 0.5]])
MIXED = np.diag([1.2, 2.0, 3.0, 8.0, 2.5, 2.5]) + 0.4 * MATRIX


def roots(a):
    return (linalg.sqrtm(a),)


def logarithms(a):
    return (linalg.logm(a),)


@pytest.mark.parametrize("f", [roots, logarithms])
def test_roots_and_logarithms(f):
    derived = tg.differentiable(f)
    turned = linalg.block_diag(TURNING, 2.0, TURNING.T) + 0.05 * np.outer(np.arange(9.0), np.ones(9))
    near, far = np.eye(3) + 1e-9 * MATRIX[:3, :3], np.diag([1e-12, 1.0, 1e6])
    for a in (TURNING, turned, MIXED, MIXED @ MIXED.T, MIXED[1:2, 1:2], near, far, 1e30 * TURNING, np.eye(2)):
        same(derived(a), f(a), 1e-13 * max(1.0, np.max(np.abs(f(a)[0]))))
    single = MIXED.astype("f4")
    if f is roots:
        same(derived(single), f(single), 1e-5)


def test_roots_and_logarithms_to_50_digits():
    with mpmath.workdps(50):
        for f, exact in ((roots, mpmath.sqrtm), (logarithms, mpmath.logm)):
            for a in (TURNING, MIXED):
                found = np.array(exact(mpmath.matrix(a)).tolist()).astype(complex)
                np.testing.assert_allclose(tg.differentiable(f)(a)[0], found, rtol=1e-13, atol=1e-14)


def halved(a, k):
    x = a
    for _ in range(3):
        x = linalg.sqrtm(linalg.solve_sylvester(a, a, k * x))
    return np.sum(linalg.logm(x) ** 3)


def test_derivatives_of_roots_and_logarithms():
    tg.check_grads(halved, TURNING, 1.3, modes=("forward", "reverse"))
    shown = tg.differentiable(halved).inspect(TURNING, 1.3).compiled
    assert ".append(" not in shown  # what loops record has known sizes


@pytest.mark.parametrize("f", [roots, logarithms])
def test_the_value_is_that_of_python_where_it_is_complex(f):
    a = np.array([[-1.0, 0.2], [0.1, 2.0]])
    for backend in ("python", "auto"):
        function = tg.differentiable(lambda a: np.abs(f(a)[0]).sum(), backend=backend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tg.errors.PerformanceWarning)
            assert function(a) == np.abs(f(a)[0]).sum()


def test_a_root_that_becomes_complex_in_a_loop_is_refused():
    def several(a, n):
        total = 0.0
        for k in range(n):
            total += np.sum(np.abs(linalg.sqrtm(a - k * np.eye(2))) ** 2)
        return total

    function = tg.differentiable(several, backend="python")
    a = np.array([[1.5, 0.2], [0.1, 2.0]])
    tg.check_grads(function, a, 1, modes=("forward", "reverse"))
    assert function(a, 4) == several(a, 4)
    with pytest.raises(tg.errors.BadArgument, match="complex"):
        function.grad(a, 4)
    with pytest.raises(tg.errors.BadArgument, match="complex"):
        function.jvp((a, 4), (a, None))


@pytest.mark.parametrize("f", [roots, logarithms])
def test_what_is_complex_is_refused_as_in_generated_python(f):
    for backend in ("python", "numba"):
        with pytest.raises(tg.errors.BadArgument, match="complex"):
            tg.differentiable(lambda a: np.sum(f(a)[0]), backend=backend).grad(np.diag([1.0, -2.0, 3.0]))


@pytest.mark.parametrize(
    ("f", "args", "message"),
    [
        (schur_forms, (MATRIX[:3],), "expected square matrix"),
        (schur_forms, (np.full((2, 2), np.nan),), "array must not contain infs or NaNs"),
        (equation, (MATRIX, OTHER, RIGHT.T.copy()), "not aligned"),
        (equation, (MATRIX[:2], OTHER, RIGHT), "expected square matrix"),
        (roots, (MATRIX[:2],), "must be square"),
        (logarithms, (np.full((2, 2), np.nan),), "array must not contain infs or NaNs"),
        (eigenpairs, (MATRIX[0], MATRIX[0]), "must have one more element than e"),
        (eigenpairs, (MATRIX[0], np.full(5, np.inf)), "array must not contain infs or NaNs"),
    ],
)
def test_errors_are_those_of_scipy(f, args, message):
    for one in (f, tg.differentiable(f)):
        with pytest.raises(ValueError, match=message):
            one(*args)
