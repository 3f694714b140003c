"""The extents that are said of results are those that NumPy gives them."""

import itertools

import numpy as np
import pytest

import tapegen as tg
from tapegen.analysis.scopes import scopes_of
from tapegen.analysis.shape_inference import shapes_of
from tests.judged import both
from tests.lowering import lower
from tests.nests_reader import Outcome, python_function, uncompiled
from tests.oracle import numerical_gradient
from tests.sources import define

CALLS = """
np.expand_dims(x, 0)
np.expand_dims(m, (0, 2))
np.expand_dims(t, -1)
np.moveaxis(t, 0, 2)
np.moveaxis(t, (0, 1), (-1, 0))
np.swapaxes(t, 0, -1)
np.transpose(t)
np.transpose(t, (1, 2, 0))
np.stack((x, y), axis=1)
np.stack([m, m, m])
np.concatenate((x, y, z))
np.concatenate((m, m), axis=1)
np.concatenate((t, t), -1)
np.hstack((x, z))
np.hstack((m, m))
np.vstack((x, y))
np.vstack((x, y, x))
np.column_stack((x, y))
np.column_stack((x, y, x))
np.diag(x)
np.diag(x, -2)
np.ravel(z)
np.diff(z)
np.diff(m, 2, 0)
np.diff(m, axis=1)
np.sum(t, 1)
np.sum(t, axis=(0, -1))
np.max(t, axis=2, keepdims=True)
np.mean(m, 0)
np.argmax(m, axis=1)
np.cumsum(m, axis=0)
np.linalg.solve(np.eye(3), y)
np.searchsorted(x, z)
np.interp(z, x, y)
y @ m
m @ t[0]
np.dot(m, np.ones(4))
np.outer(x, z)
np.linspace(0.0, 1.0, n)
np.linspace(0.0, 1.0, x.size)
np.linspace(0.0, 1.0)
np.arange(z.size)
np.fft.fft(x)
np.fft.ifft(m, 7, 0)
np.fft.irfft(z, 5)
np.fft.fft(t, axis=1)
np.fft.fftfreq(z.size)
np.fft.fftfreq(d=0.5, n=z.size)
(x > 0.0) & ~(y < 0.0)
np.where(m > 0.0, m, 0.0)
m.sum(axis=0) * np.ones(4)
np.stack((x[1:], x[:-1]))
"""
EMPTY = """
np.sort(np.ones((2, 3)), axis=None)
np.cumsum(m)
np.fft.rfft(z)
np.linalg.solve(np.ones((2, 3, 3)) + np.eye(3), np.ones((1, 3, 2)))
np.diff(x)
np.concatenate((x[1:], z))
np.stack((x[1:], x[:-1]))
np.concatenate((x, z))
np.diag(x)
np.sum(m, axis=1)
"""
SIZES = {"x": (3,), "y": (3,), "z": (5,), "m": (3, 4), "t": (2, 4, 5), "n": 6}
NONE = SIZES | {"x": (0,), "y": (0,), "m": (0, 4)}


def check(call: str, sizes: dict) -> int:
    """Compare what is said of each axis with the shape that NumPy gives; how many axes something is said of."""
    function = define(f"import numpy as np\n\ndef f({', '.join(sizes)}):\n    r = {call}\n    return r\n")
    values = {name: size if isinstance(size, int) else np.ones(size) for name, size in sizes.items()}
    lowered = lower(function, *values.values()).function
    found = {var.name: extents for var, extents in shapes_of(lowered, scopes_of(lowered)).extents.items()}
    (result,) = lowered.body[-1].values
    shape = np.shape(function(**values))
    assert len(found[result.name]) == len(shape)
    said = 0
    for (constant, terms), size in zip(found[result.name], shape, strict=True):
        if all(kind in ("param", "int") for (kind, _, _), _ in terms):
            sizes_of = [(np.shape(values[name]) or (values[name],))[axis] for (_, name, axis), _ in terms]
            form = constant + sum(c * each for (_, c), each in zip(terms, sizes_of, strict=True))
            assert max(form, 0) == size
            said += 1
    return said


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_sizes(call):
    assert check(call, SIZES)


@pytest.mark.parametrize("call", EMPTY.strip().splitlines())
def test_of_nothing(call):
    check(call, NONE)


def slopes(m):
    along, across = np.gradient(0.5 * m)
    return np.sum(along**2 + across**3)


@pytest.mark.compiled
def test_a_part_that_needs_no_sum_is_copied_before_it_gets_another_shape():
    m = 0.01 * np.arange(12.0).reshape(3, 4) ** 2
    got = tg.grad(slopes, backend="numba")(m)
    np.testing.assert_allclose(got, numerical_gradient(slopes, (m,)).value[0,], rtol=1e-8, atol=1e-11)


def solved_again(matrices, y):
    total = 0.0
    for _ in range(2):
        z = np.linalg.solve(matrices, y)
        total += np.sum(z**3 * y)
        y = y * 1.1
    return total


@both
def test_one_right_side_of_several_matrices(backend):
    matrices = np.random.default_rng(0).normal(size=(3, 2, 2)) + 3.0 * np.eye(2)
    tg.check_grads(solved_again, matrices, np.ones((1, 2, 2)), wrt=(0, 1), backend=backend)


def sorted_again(m):
    total = 0.0
    for _ in range(2):
        total += np.sum(np.sin(np.sort(m, axis=None)) ** 2 * np.arange(6))
        m = m * 1.1
    return total


@both
def test_a_matrix_sorted_without_an_axis(backend):
    tg.check_grads(sorted_again, np.random.default_rng(0).normal(size=(2, 3)), backend=backend)


HALO = "np.concatenate((x[{first}], x, x[:{b}]))[{c}:{d}]"
ENDS = [(1, "-1:"), (2, "-2:"), (3, "-3:"), (2, ":2"), (2, "1:3")]


def test_parts_of_vectors_with_halos():
    """All short halos and the parts of them: what is said holds for all sizes, and the size of the vector is found."""
    found = 0
    for (a, first), b, c, d in itertools.product(ENDS, range(3), range(4), (-1, -2, None)):
        call = HALO.format(first=first, b=b, c=c, d="" if d is None else d)
        said = [check(call, {"x": (n,)}) for n in (0, 2, 3, 6)]
        if a < 3 and ":3" not in first and a + b == c - (d or 0):
            assert all(said), call
            found += 1
    assert found > 10


PADDED = """
def f(x, y, k):
    s = y*1.0
    for t in range(k):
        wide = np.concatenate((s[{first}], s, s[:{b}]))
        new = (wide[{c}:] - wide[:-{c}])*wide[{d}:{e}] + x
        s = new
    return s
"""


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_loops_over_parts_of_vectors_with_halos(c):
    """Compiled text does what NumPy does, errors included, whatever the halos and the size."""
    runs = 0
    for (_, first), b, d, sample in itertools.product(ENDS, range(3), range(c + 1), (2, 5)):
        text = PADDED.format(first=first, b=b, c=c, d=d, e=d - c or "")
        reference = python_function(text)

        def args(n):
            return np.linspace(0.1, 0.9, n), np.linspace(0.2, 1.0, n), 2

        if Outcome(reference, args(sample)).error is not None:
            continue
        func = uncompiled(text, args(sample))
        for n in (0, 2, 3, 4, 6):
            ours, theirs = Outcome(func, args(n)), Outcome(reference, args(n))
            assert ours.error is theirs.error, (text, n)
            if theirs.error is None:
                np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-14)
                runs += 1
    assert runs > 20


def padded(x, k):
    s = x
    for _ in range(k):
        wide = np.concatenate((s[-2:], s, s[:1]))
        s = s + 0.1 * ((wide[3:] - wide[:-3]) * wide[1:-2] - s)
    return np.sum(s**2)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_gradients_of_vectors_with_halos(backend):
    derived = tg.differentiable(padded, backend=backend)
    value, gradient = derived.value_and_grad(np.ones(1), 3)  # the parts of a halo of two elements are empty
    assert (value, *gradient) == (0.0, 0.0)
    for n in (2, 3, 8):
        x = np.linspace(0.5, 1.5, n)
        value, gradient = derived.value_and_grad(x, 3)
        assert value == pytest.approx(padded(x, 3), rel=1e-14)
        estimate = numerical_gradient(padded, (x, 3)).value[0,]
        np.testing.assert_allclose(gradient, estimate, rtol=1e-7, atol=1e-9)
    text = str(derived.inspect(np.ones(8), 3).joint)
    assert "sum_to" not in text and ".append(" not in text


STATED = """
def f(x):
    n = x.shape[0]
    return np.zeros({size}).shape[0]
"""


@pytest.mark.parametrize("size", ["max(n - 1, 0)", "max(n - 3, 0)", "n + min(1, n) + min(2, n) - 3", "min(n, 2) - 1"])
def test_sizes_that_programs_state_are_not_clamped(size):
    """A slice with a negative number of elements is empty; an array of a negative size is an error."""
    text = STATED.format(size=size)
    func, reference = uncompiled(text, (np.ones(5),)), python_function(text)
    for n in (0, 2, 3, 6):
        ours, theirs = Outcome(func, (np.ones(n),)), Outcome(reference, (np.ones(n),))
        assert ours.error is theirs.error, n
        assert theirs.error is not None or ours.value == theirs.value
