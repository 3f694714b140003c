"""Array statements as loops: what numba runs is what NumPy does.

Programs hold many statements, as compiling is slow.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.nests_reader import assert_same, lowered_text

pytestmark = pytest.mark.usefixtures("either_way")

R = np.random.default_rng(7)


def arrays(*shapes: tuple[int, ...], dtype: str = "float64") -> tuple[np.ndarray, ...]:
    return tuple((R.random(shape) + 0.2).astype(dtype) for shape in shapes)


def test_slices_clip_as_in_python() -> None:
    text = """
    def f(x, k, j):
        a = x[k:]*2.0
        b = x[:k] + 1.0
        c = x[k:j]*1.0
        d = x[-k:]*1.0
        e = x[3:10] - 1.0
        g = x[-4:-1]*1.0
        h = x[::2] + 0.0
        i = x[1::3]*1.0
        l = x[::-1]*1.0
        m = x[k::-1]*1.0
        n = x[:k:-2]*1.0
        o = x[-2::-3]*1.0
        p = x[8:2:-1]*1.0
        q = x[k:j:2]*1.0
        return a, b, c, d, e, g, h, i, l, m, n, o, p, q
    """
    cases = [(*arrays((n,)), k, j) for n in (0, 2, 5, 9) for k, j in ((0, 3), (2, -1), (-3, 4), (7, 9), (-12, 12))]
    assert_same(text, *cases)


def test_stores_through_slices() -> None:
    text = """
    def f(x, y, k):
        x[1:-1] = y[2:] + y[:-2]
        x[k:] += 1.0
        x[::2] = 3.0*x[::2]
        x[::-1] += y
        y[-3:] = x[:3]
        y[:k] -= 0.5
        return x*y
    """
    assert_same(text, *((*arrays((n,), (n,)), k) for n in (3, 4, 8) for k in (0, 2, -1, 20)))


def test_overlap() -> None:
    text = """
    def f(a, b, k):
        a[1:] += a[:-1]
        a[:-1] *= a[1:]
        a += a[::-1]
        a[1:4] = a[:3]
        a[:3] = a[1:4]
        a[:k] += 0.3*a[:k][::-1]
        v = a[2:]
        a[:-2] -= v
        v[1:] = 2.0*a[1:-2] - v[:-1]
        b += b.T
        b[0] = b[:, 0]
        b[:, 1] = b[1] + b[k]
        b[1:] -= b[0]
        b[k] += b[k - 1]
        b[1:, 1:] = b[:-1, :-1] + b[1:, 1:]
        w = b.T
        w[0] += b[0]
        return a, b
    """
    text = text.replace("a[:k][::-1]", "np.flip(a[:k])")
    assert_same(text, *((*arrays((n,), (4, 4)), k) for n in (5, 9) for k in (1, 3)))


def test_buffers_that_change_places_need_no_copy() -> None:
    text = """
    def f(x, y, n):
        old = x
        new = np.zeros_like(x)
        for k in range(n):
            new[1:] = old[:-1]*2.0
            old, new = new, old
        for k in range(n):
            y[1:] = y[:-1]*2.0
        return old, new, y
    """
    assert_same(text, *((*arrays((size,), (size,)), n) for size in (2, 5) for n in (0, 1, 2, 3)))
    found = lowered_text(text, *arrays((5,), (5,)), 3)
    assert "new[i + 1] = old[i] * 2.0" in found and "y[i + 1] = t" in found


def test_overlap_that_needs_no_buffer() -> None:
    text = lowered_text(
        """
        def f(a, b, k):
            a[:-1] += a[1:]
            b[1:] -= b[0]
            b[:-1] = 2.0*b[1:]
            b[k] *= b[0]
            b *= b
            a[::2] = a[1::2] if False else a[::2]*3.0
            for i in range(1, b.shape[0]):
                for j in range(i):
                    b[i] -= 0.5*b[j]
            return a
        """.replace("a[1::2] if False else ", ""),
        *arrays((4,), (4, 4)),
        2,
    )
    assert "np.empty" not in text


def test_broadcasting() -> None:
    text = """
    def f(a, x, y, s, one):
        p = a*x + y[:, None]
        q = a + s
        t = x + one
        u = a*one
        v = y[:, None]*x
        w = a - x[None]
        a[:] = x
        a[1:] += y[1:, None]
        a[:, 0] = y
        a[0] = s
        a[:, 1:2] *= one
        return p, q, t, u, v, w, a
    """
    assert_same(text, (*arrays((4, 3), (3,), (4,)), 0.7, *arrays((1,))))


def test_sizes_that_are_one_only_at_run_time() -> None:
    text = """
    def f(x, y, i, j):
        a = x[i:j] + y
        b = y*x[i:j]
        c = x[i:j]*y[i:j]
        d = x[:j]*y[i:]
        z = np.zeros_like(y)
        z += x[i:j]
        z[:] = x[:j]
        return a, b, c, d, z
    """
    assert_same(
        text, *((*arrays((4,), (4,)), i, j) for i, j in ((0, 4), (2, 3), (3, 1), (1, 2), (0, 1), (-1, 9), (1, 3)))
    )


def test_shapes_that_do_not_fit() -> None:
    text = """
    def f(x, y, m):
        x[1:] = y[1:] + 1.0
        z = x*y
        m[0] += z
        return np.dot(m, y) + x @ y
    """
    assert_same(text, arrays((3,), (3,), (3, 3)), arrays((3,), (4,), (3, 3)), arrays((4,), (4,), (3, 3)))


def test_single_precision_stays_single() -> None:
    text = """
    def f(a, x, d, k):
        b = a*2.0 + x
        c = a*3 - 0.1
        e = np.where(a > 0.1, a, 0.0)
        g = a + d
        h = a**2 + a**0.5 + a**3.5 + np.maximum(a, 0.3)
        s = np.float32(0.0)
        for i in range(len(a)):
            s = s + a[i]*x
            a[i] = s*0.1
            a[i] += 0.1
        a[1:] += 0.7*a[:-1]
        u = 1.0/a
        a += d
        b /= 3.0
        t = k*a
        m = np.sin(a)*2.0
        n = a.sum()
        o = a.mean()
        q = a == 0.1
        r = np.sum(a*a, axis=0)
        return b, c, e, g, h, s, u, t, m, n, o, q, r, a.max()
    """
    a, d = arrays((5,), dtype="float32")[0], arrays((5,))[0]
    assert_same(text, (a, np.float32(1.3), d, 3), tolerance=3e-7)


def test_integers_and_booleans() -> None:
    text = """
    def f(i, j, x, b):
        a = i + j
        c = i*2 - 1
        d = i//j
        e = i % j
        g = i/j
        h = i*x
        k = (x > 0.5) & b
        l = ~b | (i == j)
        m = b*x + b
        n = i**2
        o = np.sum(b)
        p = np.sum(i)
        q = np.where(b, i, j)
        r = -i
        s = x.astype(np.int64)
        t = i.astype(np.float64)*0.5
        u = abs(i - j)
        v = np.mean(i)
        w = np.logical_and(b, i > 2)
        i[1:] += 1
        return a, c, d, e, g, h, k, l, m, n, o, p, q, r, s, t, u, v, w, np.any(b), np.all(b), np.sum(b, axis=0), i.max()
    """
    i, j = np.array([1, 5, -7, 4]), np.array([2, -3, 2, 4])
    assert_same(text, (i, j, *arrays((4,)), np.array([True, False, True, True])))
    small = """
    def f(i, k):
        a = i + i
        b = i*k
        c = i//3
        d = -i
        return a, b, c, d, np.sum(i)
    """
    assert_same(small, (np.array([1, 2_000_000_000, -5], np.int32), 3))


def test_functions_of_numbers() -> None:
    text = """
    def f(x, y):
        a = np.sin(x) + np.cos(y)*np.tan(x) + np.arcsin(x/9) + np.arccos(y/9) + np.arctan(x) + np.arctan2(x, y)
        b = np.sinh(x) + np.cosh(y) + np.tanh(x) + np.arcsinh(x) + np.arccosh(y + 1) + np.arctanh(x/9)
        c = np.exp(x) + np.expm1(y) + np.exp2(x) + np.log(x) + np.log2(x)
        c = c + np.log10(y) + np.log1p(x) + np.logaddexp(x, y)
        d = np.sqrt(x) + np.cbrt(y) + np.square(x) + np.reciprocal(x) + np.hypot(x, y) + abs(x - y) + np.sign(x - y)
        e = np.floor(x) + np.ceil(y) + np.trunc(x) + np.rint(y) + np.fix(x) + np.round(y, 2) + np.round(x*100, -1)
        g = np.maximum(x, y) + np.minimum(x, y) + np.fmax(x, y)
        g = g + np.fmin(x, 0.3) + np.clip(x, 0.4, y) + np.clip(x, None, 0.9)
        h = np.copysign(x, y - 0.8) + np.fmod(x, y) + np.heaviside(x - 0.8, 0.5) + np.nan_to_num(x) + np.sinc(x)
        i = np.deg2rad(x) + np.degrees(y) + x//y + x % y + x**y + np.float_power(x, 2) + (-x)**3 + x**-1
        j = np.isnan(x) | np.isfinite(y) & np.isinf(x)
        k = ops.strong_mul(x, y) + ops.strong_mul(np.where(x > 0.7, x, 0.0), 1.0/(x - x))
        l = np.abs(x)*+y
        return a, b, c, d, e, g, h, i, j, k, l
    """
    assert_same(text, arrays((6,), (6,)), tolerance=1e-11)


REDUCTIONS = [
    "np.sum(a), np.sum(a*a), np.mean(a - 1.0), np.max(a), np.min(-a), np.prod(x), np.ptp(x)",
    "np.sum(a, axis=0), np.sum(a, axis=1), np.mean(a, axis=-1), np.max(a, axis=0), np.min(a, axis=1)",
    "np.sum(b, axis=1), np.sum(b, axis=(0, 2)), np.sum(b, axis=(1, 2)), np.max(b, axis=1), np.prod(b, axis=2)",
    "np.sum(a, axis=0, keepdims=True), a - np.mean(a, axis=1, keepdims=True), np.sum(a*x, axis=1)",
    "np.var(x), np.std(a, axis=0), np.var(a, axis=1, ddof=1), np.std(x, ddof=1), np.ptp(a, axis=1)",
    "np.argmax(a), np.argmin(x), np.argmax(a, axis=0), np.argmin(a, axis=1), np.argmin(a, keepdims=True)",
    "np.count_nonzero(x > 0.6)",
    "np.any(a > 1.0), np.all(a > 0.0), np.any(a > 0.9, axis=0), np.all(a > 0.3, axis=1), np.trace(a)",
    "np.linalg.norm(x), np.linalg.norm(a), np.linalg.norm(a, axis=1)",
    "np.linalg.norm(x, 1), np.linalg.norm(x, np.inf)",
    "np.cumsum(x), np.cumsum(a, axis=0), np.cumsum(a, axis=1), np.cumprod(x), np.cumsum(b, axis=1)",
    "np.sum(x, where=mask), np.mean(x*2.0)*np.sum(a.T, axis=0), sum(x), np.max(a.T, axis=0)",
]


@pytest.mark.parametrize("values", REDUCTIONS)
def test_reductions(values: str) -> None:
    program = f"def f(a, b, x, mask):\n    return {values}\n"
    assert_same(program, (*arrays((4, 4), (2, 3, 4), (4,)), np.array([True, False, True, True])))


@pytest.mark.parametrize("either_way", [pytest.param("numba", marks=pytest.mark.compiled)], indirect=True)  # 0.0 / 0
def test_reductions_of_nothing_and_of_nan() -> None:
    text = """
    def f(a, x):
        return np.sum(a), np.sum(a, axis=0), np.mean(a), np.mean(x), np.sum(x, axis=0), np.cumsum(x), np.prod(a, axis=1)
    """
    assert_same(text, *(arrays(shape, (n,)) for n in (4, 0) for shape in ((2, 2), (0, 3), (3, 0))))
    extreme = """
    def f(x, a):
        return np.max(x), np.min(x), np.argmax(x), np.argmin(x), np.max(a, axis=0), np.argmax(a, axis=1)
    """
    x, a = arrays((5,), (3, 3))
    with_nan, with_inf = x.copy(), -x
    with_nan[2] = np.nan
    with_inf[:] = -np.inf
    a[1, 1] = np.nan
    assert_same(extreme, (x, a), (with_nan, a), (with_inf, a), (np.zeros(0), a), (x, np.zeros((0, 2))))


ARRANGEMENTS = [
    "a.T + 1.0, np.transpose(b, (2, 0, 1))*2.0, np.swapaxes(b, 0, 2)*1.0, np.moveaxis(b, 0, -1) - 1.0, a + a.T",
    "np.expand_dims(x, 0)*x[:, None], np.squeeze(x[None]*2.0, axis=0)",
    "np.broadcast_to(x, (2, 4))*1.0, np.rot90(a)*1.0",
    "np.flip(a)*1.0, np.flip(a, 0) + a, np.flipud(a)*1.0",
    "np.fliplr(a)*2.0, np.roll(x, 2)*1.0, np.roll(a, -1, axis=1)*1.0",
    "np.tile(x, 2), np.tile(a, (2, 3)), np.repeat(x, 3)",
    "np.repeat(a, 2, axis=0), np.pad(x, 2), np.pad(a, ((1, 0), (2, 1)))",
    "np.triu(a), np.tril(a, -1), np.diag(x), np.diag(a)",
    "np.diag(x, 1), np.diag(a, -1), np.diagonal(b, 0, 1, 2)*1.0",
    "np.outer(x, np.exp(x)), np.kron(a, a[:2]), np.diff(x), np.diff(a, axis=0), np.diff(x, 2), np.rot90(a, 2)*1.0",
    "np.concatenate((x, x*2.0)), np.concatenate((a, a[:1]), axis=0), np.stack((x, x)), np.stack((a, a.T), axis=1)",
    "np.vstack((x, x)), np.hstack((a, a)), np.column_stack((x, x))",
    "np.append(x, 3.0), np.array([x[0], 2.0, 3]), np.hstack((x, x))",
    "np.reshape(b, (2, 12)), b.reshape(-1), np.ravel(a.T)",
    "np.reshape(x*2.0, (2, 2)), np.ravel(b[:, 1:]), b.reshape(6, -1)",
    "np.zeros((2, 3)), np.ones(3) + x[:3], np.full((2,), 1.5)",
    "np.eye(3), np.zeros_like(a), np.ones_like(x)*x, np.arange(4)*x",
    "np.array([[1.0, x[1]], [x[2], 4]]), np.linspace(0.0, x[0], 5)",
    "np.arange(0.0, 1.0, 0.3), np.full_like(a, 2.0), np.identity(2)",
    "np.arange(1, x.size + 1, dtype=float)*x, np.arange(4, dtype=np.float64), np.arange(0, 7, 2, dtype='f8')",
    "np.arange(x.size, dtype=int)*x, np.arange(0.5, 2.0, 0.25, dtype=float), np.arange(6, 0, -4, dtype=float)",
    "np.copy(a), np.copy(a.T), np.array(x), np.asarray(x)*2.0",
    "np.atleast_2d(x)*1.0, np.take(x, np.array([0, 2])), a.copy()",
    "np.tensordot(a, b, axes=(1, 1)), np.einsum('ij,jk->ik', a, a)",
    "np.einsum('i,j->ij', x, x), np.inner(a, x)",
]


@pytest.mark.parametrize("values", ARRANGEMENTS)
def test_arrangements(values: str) -> None:
    assert_same(f"def f(a, b, x):\n    return {values}\n", arrays((4, 4), (2, 4, 3), (4,)))


def test_views_are_looked_through() -> None:
    text = """
    def f(a, x, k):
        v = a[1:-1]
        row = a[k]
        column = a[:, k]
        t = a.T
        v[0] += 1.0
        row[:] *= 2.0
        column[1:] = x[1:]
        t[0] = 3.0
        d = np.diagonal(a)
        s = np.sum(d)
        w = v[:, ::2]
        w += 1.0
        e = np.expand_dims(row, 0)
        q = np.squeeze(e, axis=0)
        q[1] = 7.0
        flat = a.reshape(-1)
        flat[2] = 5.0
        u = np.flip(x)
        u[0] = 9.0
        return np.dot(a, row), v @ x, column.sum() + s, np.dot(t, x), x, len(v), w.shape[1], np.dot(u, x)
    """
    assert_same(text, *((*arrays((4, 4), (4,)), k) for k in (0, 2, -1)), (*arrays((4, 4), (4,)), 4))


def test_a_view_stays_where_it_is_when_its_index_moves() -> None:
    text = """
    def f(a, x):
        k = 0
        while k < 2:
            v = a[k:k + 2]
            w = a[:, k]
            k += 1
            v[0] += x
            w[1] = 5.0
        return a, k
    """
    assert_same(text, arrays((4, 4), (4,)))


def test_masks() -> None:
    text = """
    def f(a, m, x):
        b = a[a > 0.7]
        a[a < 0.5] = x
        a[a > 0.9] *= 0.5
        a[a > 0.3] += 1.0
        m[m > 0.6] = 0.0
        c = m[m > 0.1]
        mask = a > 1.4
        a[mask] = b[:1].sum()
        a[mask] = a[mask]*2.0 + 1.0
        rows = m[:, 0] > 0.2
        d = m[rows]
        m[rows] = 3.0
        e = m[rows, 1]
        return a, b, c, d, e, np.sum(a[mask])
    """
    assert_same(text, *((*arrays((n,), (4, 3)), 0.4) for n in (5, 9)))
    wrong = """
    def f(a, mask):
        a[mask] = np.array([1.0, 2.0])
        return a[mask]
    """
    a = arrays((4,))[0]
    assert_same(
        wrong,
        (a, np.array([True, False, True, False])),
        (a, np.array([True, True, True, False])),
        (a, np.array([True, True, False])),
    )


def test_gathers() -> None:
    text = """
    def f(a, m, i, j, x):
        b = a[i]
        c = m[i, j]
        d = m[i]
        e = m[:, j]
        g = m[1:, j]*2.0
        h = m[i[:, None], j]
        k = a[i + 1] - a[i]
        a[i] = x[i]
        a[i] += x[i]
        a[i] = a[j]
        np.add.at(a, i, x[i])
        np.add.at(m, (i, j), 2.0)
        m[i, 0] = 5.0
        m[j] = m[i]
        l = m[0, i]
        n = m[i, 1:]
        return a, b, c, d, e, g, h, k, l, n
    """
    i, j = np.array([2, 0, 2, 1]), np.array([0, 1, -1, 2])
    a, m, x = arrays((5,), (4, 4), (5,))
    assert_same(text, (a, m, i, j, x), (a, m, i - 2, j, x), (a, m, i + 3, j, x), (a, m, i, j - 4, x))


def test_products() -> None:
    text = """
    def f(a, b, x, y, s):
        p = a @ b
        q = a @ x
        r = y @ a
        t = np.dot(a.T, y)
        u = np.dot(b.T, a.T)
        v = np.dot(x, x) + x[1:] @ x[:-1] + x[::2] @ x[::2] + (2.0*x) @ x
        w = a[:, 1:] @ x[1:]
        z = s @ a
        c = s @ s
        d = s @ x
        e = np.matmul(x, s)
        g = a[1:] @ b[:, ::2]
        h = np.dot(a, 2.0)
        return p, q, r, t, u, v, w, z, c, d, e, g, h, a[0] @ b[:, 0]
    """
    assert_same(text, (*arrays((4, 4), (4, 4), (4,), (4,)), R.random((2, 4, 4))))
    single = """
    def f(a, x, i):
        return a @ x, x @ x, a @ a, i @ i
    """
    assert_same(single, (*arrays((3, 3), (3,), dtype="float32"), np.array([1, 2, 3])), tolerance=1e-6)


def test_un_broadcasting() -> None:
    text = """
    def f(g, x, y, s):
        a = ops.sum_to(g, x)
        b = ops.sum_to(g*2.0, y)
        c = ops.sum_to(g, s)
        d = ops.sum_to(g[0]*x, x)
        x += ops.sum_to(g, x)
        return a, b, c, d, x
    """
    assert_same(text, (*arrays((4, 3), (3,), (4, 1)), 0.5))


def test_native_calls() -> None:
    text = """
    def f(a, x, m):
        b = np.linalg.solve(a, x) + np.linalg.inv(a)[0]
        c = np.linalg.det(a)*np.linalg.cholesky(a @ a.T)
        d = np.sort(x) + np.sort(-x)
        e = np.argsort(x)
        s, l = np.linalg.slogdet(a)
        w, v = np.linalg.eigh(a + a.T)
        g = np.interp(0.5, np.sort(x), x)
        return b, c, d, e, s + l, w, g, np.sort(m), np.median(x), np.searchsorted(np.sort(x), 0.5)
    """
    text = text.replace("np.linalg.inv(a)[0]", "np.linalg.inv(a)")
    assert_same(text, (*arrays((4, 4), (4,), (3, 4)),), tolerance=1e-9)


def test_rank_zero_and_high_ranks() -> None:
    text = """
    def f(z, c, d):
        z[...] = z*2.0
        z += 1.0
        a = z + 1.0
        b = c[:, 1] + d[0, :, 1]
        c[1:] = d[0, 1:]*z
        e = np.sum(d, axis=(1, 3))
        return a, b, c, e, np.sum(d*c[None])
    """
    text = text.replace("        z[...] = z*2.0\n", "")
    assert_same(text, (np.array(0.5), *arrays((3, 2, 4), (2, 3, 2, 4))))


def test_memory_order() -> None:
    text = """
    def f(a, b, x):
        c = a*b + x
        a[1:, :] += b[:-1, :]
        return c, np.sum(a, axis=0), np.sum(a, axis=1), a @ b
    """
    a, b, x = arrays((3, 4), (3, 4), (4,))
    fortran = np.asfortranarray(a), np.asfortranarray(b), x
    program = text.replace("a @ b", "np.dot(a, b.T)")
    assert_same(program, (a, b, x))
    assert_same(program, fortran)
    assert_same(program, (np.asfortranarray(a), b, x))
    assert_same(program, (R.random((6, 8))[::2, ::2], b, x))
    text = lowered_text("def f(a, b):\n    a += b\n    return a[0, 0]", *fortran[:2])
    assert "    for j in range(a_n1):\n        for i in range(a_n0):" in text


def test_sizes_are_compared_once() -> None:
    text = lowered_text(
        """
        def f(a, b, k, j):
            v = a[k:]
            w = b[j:]
            p = v*w
            q = v - w
            r = v/w + v*w
            return p, q, r
        """,
        *arrays((9,), (9,)),
        2,
        2,
    )
    assert text.count("could not be broadcast") == 2  # that v fits, and that w fits


CLIPPED = """
def f(c, a):
    for i in range(a.shape[0]):
        c[i, :i + 1] += a[:i + 1, 0]
        t = np.zeros(min(i + 1, c.shape[1]))
        t += 2.0
        a[:i + 1, 1] += t*0.5
    return c, a
"""


def test_clipped_slices_need_no_index_of_their_own() -> None:
    """`c[i, :i + 1]` has one element where `a[:i + 1]` has one, or `c` would have one column, and its type say so."""
    a = R.random((4, 2))
    assert "* m" not in lowered_text(CLIPPED, a @ a.T, a)
    assert_same(CLIPPED, *((R.random((4, columns)), a) for columns in (0, 2, 3, 4, 6)))


def test_what_one_trip_shows_is_not_taken_for_every_trip() -> None:
    """An inner loop keeps the size of `b` from the second iteration of the outer one on, but not in the first."""
    text = """
    def f(a, b, n):
        for i in range(n):
            for j in range(2):
                b = b + a
                c = a[i:]*b[i:]
                a = a*1.5
            for j in range(2):
                a = a + 1.0
                a = a[1:]
            b = a*c[:1]
        return a, b
    """
    assert_same(text, *((*arrays((12,), (12,)), n) for n in (0, 1, 2)), *((*arrays((12,), (1,)), n) for n in (1, 2)))
