"""Awkward arguments: layouts, sizes, kinds of numbers."""

from __future__ import annotations

import array
import logging
import textwrap
import warnings
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen import differentiable
from tapegen.errors import BadArgument, TapegenError
from tests.judged import both, raises_as_python, refused, right, same
from tests.sources import define

X = np.array([0.5, -1.5, 2.0, 0.7])


def wave(a: np.ndarray) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += (np.sin(a[i]) * a[i]).sum()
    return total + (a * a).sum()


def squares(a: np.ndarray) -> float:
    return (a * a).sum()


def doubled_in_place(a: np.ndarray) -> float:
    a *= 2.0
    return (a * a).sum()


# ---- memory --------------------------------------------------------------------------------------------------------


@both
def test_e63_layouts(backend: str) -> None:
    base = np.linspace(0.1, 2.0, 48).reshape(6, 8)
    derived = differentiable(wave, backend=backend)
    layouts = [base, np.asfortranarray(base), base[::2, 1::3], base[::-1, ::-2], base.T, base.T[::-1]]
    for a in layouts:
        value, gradient = derived.value_and_grad(a)
        assert value == pytest.approx(wave(a), rel=1e-13)
        assert gradient.shape == a.shape
        np.testing.assert_allclose(gradient, np.sin(a) + a * np.cos(a) + 2.0 * a, rtol=1e-13)
    assert len(derived._specializer._programs) <= 3  # C, Fortran, any


@both
def test_e64_read_only(backend: str) -> None:
    fixed = X.copy()
    fixed.flags.writeable = False
    np.testing.assert_allclose(differentiable(squares, backend=backend).grad(fixed), 2.0 * X, rtol=1e-15)
    raises_as_python(doubled_in_place, fixed, backend=backend, at="a *= 2.0")
    np.testing.assert_array_equal(fixed, X)


def moved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * b if a[0] > 9.0 else b[1:]


def test_e64_read_only_arrays_need_no_code_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing is written into an argument and no part of one is returned, which then is read-only too."""
    caplog.set_level(logging.INFO, logger="tapegen")
    fixed = X.copy()
    fixed.flags.writeable = False
    view = differentiable(moved, backend="numba", cache=False)
    energy = differentiable(lambda a, b: np.sum(a * np.square(b)), wrt=(0, 1), backend="numba", cache=False)
    for a, b in ((X, fixed), (fixed, X), (fixed, fixed), (X, X)):
        for found, expected in zip(energy.grad(a, b), (X * X, 2.0 * X * X), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert found.flags.writeable
    assert len(energy._last_used().parts.built["joint"].signatures) == 4  # the same code under four types
    assert len([record for record in caplog.records if record.getMessage().startswith("compiled")]) == 1
    assert view(X, X).flags.writeable
    assert not view(X, fixed).flags.writeable
    assert not view(fixed, fixed).flags.writeable


# ---- sizes and kinds -----------------------------------------------------------------------------------------------


def largest(a: np.ndarray) -> float:
    return a.max()


def average(a: np.ndarray) -> float:
    return a.mean()


@both
def test_e65_no_elements(backend: str) -> None:
    for shape in ((0,), (3, 0, 2)):
        empty = np.zeros(shape)
        value, gradient = differentiable(squares, backend=backend).value_and_grad(empty)
        assert value == 0.0
        assert gradient.shape == shape
        raises_as_python(largest, empty, backend=backend, at="a.max()")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, gradient = differentiable(average, backend=backend).value_and_grad(empty)
        assert np.isnan(value)
        assert gradient.shape == shape


def cubed(x: Any) -> Any:
    return x * x * x


# ---- the same in all four places -------------------------------------------------------------------------------------

FORMS = {
    "at_top": "{}",
    "in_for": "for _ in range(2):\n{}",
    "in_while": "k = 0\nwhile k < 2:\n{}\n    k += 1",
    "in_branch": "if x is not None:\n{}",
}
in_all_places = pytest.mark.parametrize("place", FORMS)


def put(text: str, place: str, params: str = "x") -> Any:
    """A function that does this at top level, in a loop or in a branch, and returns `y`."""
    body = FORMS[place].format(text if place == "at_top" else textwrap.indent(text, "    "))
    body = textwrap.indent(f"y = 0.0\n{body}\nreturn y\n", "    ")
    return define(f"import array\nimport numpy as np\ndef f({params}):\n{body}")


EMPTY = ["x.sum()", "np.sort(x)[:1].sum()", "(x @ x)", "np.cumsum(x).sum()", "x[x > 0].prod()", "np.append(x, 2.0)[0]"]


@in_all_places
def test_e65_no_elements_anywhere(place: str) -> None:
    lines = "\n".join(f"y = y + {form}" for form in EMPTY)
    right(put(lines, place), np.zeros(0), backend="python")
    for form in ("x.max()", "x[0]", "np.argmin(x)", "np.percentile(x, 50)"):
        text = f"y = y + {form}"
        raises_as_python(put(text, place), np.zeros(0), backend="python", at=text)


@both
def test_e66_kinds_of_one_number(backend: str) -> None:
    for x in (1.5, np.float64(1.5), np.float32(1.5), np.array(1.5), np.array(1.5, np.float32)):
        derived = differentiable(cubed, backend=backend)
        value, gradient = derived.value_and_grad(x)
        same(value, cubed(x))
        same(gradient, type(x)(6.75) if not isinstance(x, np.ndarray) else np.array(6.75, x.dtype))


# ---- kinds of numbers ----------------------------------------------------------------------------------------------

DTYPES = [
    *((">f8", "astype"), (np.longdouble, "astype"), (object, "astype"), ("datetime64[s]", "np.timedelta64(1, 's')")),
    *(("U5", "Pass numbers"), ("S5", "Pass numbers"), ([("a", "f8")], "a['a']")),
]


@pytest.mark.parametrize(("dtype", "advice"), DTYPES, ids=str)
def test_e67_dtypes_without_machine_numbers(dtype: Any, advice: str) -> None:
    a = np.zeros(3, dtype)
    with pytest.raises(BadArgument) as caught:
        differentiable(squares).grad(a)
    assert str(a.dtype) in str(caught.value)
    assert advice in caught.value.advice


def test_e68_float16() -> None:
    refused(squares, np.ones(3, np.float16), error=BadArgument, match="float16")


def mixed(a: np.ndarray, k: float) -> float:
    b = a * k + 1.0
    return (np.sin(b) * a).sum() * 0.1


@both
def test_e69_float32(backend: str) -> None:
    a = np.linspace(0.1, 3.0, 1000, dtype=np.float32)
    derived = differentiable(mixed, backend=backend)
    value, gradient = derived.value_and_grad(a, 1.7)
    expected = mixed(a, 1.7)
    assert type(value) is type(expected) is np.float32
    assert value == pytest.approx(expected, rel=2e-6)
    assert gradient.dtype == np.float32
    wide = a.astype(np.float64)
    exact = 0.1 * (np.sin(1.7 * wide + 1.0) + 1.7 * wide * np.cos(1.7 * wide + 1.0))
    np.testing.assert_allclose(gradient, exact, rtol=2e-5, atol=1e-6)


def added(a: np.ndarray) -> Any:
    return a.sum()


@both
def test_e69_sums_are_as_accurate_as_those_of_numpy(backend: str) -> None:
    a = np.full(2**22, 0.1, np.float32)
    exact = float(np.float32(0.1)) * 2**22
    assert differentiable(added, backend=backend)(a) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("dtype", "held"), [(np.int64, "integers"), (np.uint8, "integers"), (np.bool_, r"truth values \(bool\)")]
)
def test_e70_integers_have_no_gradient(dtype: Any, held: str) -> None:
    with pytest.raises(BadArgument, match=f"'a' holds {held}, which have no gradient") as caught:
        differentiable(squares).grad(np.ones(3, dtype))  # of integers the result may hold no float either
    assert caught.value.advice == "Pass floats, or leave it out of wrt."
    with pytest.raises(BadArgument, match="'x' holds integers"):
        differentiable(cubed).grad(3)


def picked(a: np.ndarray, k: Any) -> float:
    return a[k] * a[k]


@both
def test_e71_indices(backend: str) -> None:
    for k in (np.uint64(2), -4, np.int8(-1), np.uint8(3)):
        right(picked, X, k, backend=backend)
    for k in (4, -5, 2**40, np.uint64(4), np.uint64(2**63), -(2**62)):
        raises_as_python(picked, X, k, backend=backend, at="a[k] * a[k]")


def truncates(x: np.ndarray, cells: np.ndarray) -> float:
    cells[0] = x[0]
    cells[1:] = x[1:] * 2.0
    return cells.sum() * x[0]


@both
def test_e72_float_into_an_array_of_integers(backend: str) -> None:
    cells = np.zeros(4, np.int64)
    with pytest.warns(UserWarning, match=r"test_unusual_arrays.py:\d+: 'cells' holds integers"):
        right(truncates, X + 0.37, cells, backend=backend)


def test_e73_complex() -> None:
    for function, point in ((squares, np.ones(3, complex)), (cubed, 1j)):
        for how in ("value_and_grad", "grad"):
            with pytest.raises(BadArgument, match="returns a complex number, which has no gradient") as caught:
                getattr(differentiable(function), how)(point)
            assert caught.value.span is not None and "vjp" in caught.value.advice


NARROW = {
    "object": "y = y + np.array(x, dtype=object)[0] * 1.0",
    "filled object": "z = np.empty(2, dtype=object)\nz[0] = x[0]\ny = float(z[0])",
    "float16": "y = y + float(x.astype('f2').sum())",
    "float16 store": "z = np.zeros(2, np.float16)\nz[0] = x[0]\ny = float(z[0])",
    "float16 sum": "y = y + float(np.sum(x * x, dtype=np.float16))",
    "one float16": "y = float(np.float16(x[0]) * x[1])",
    "longdouble": "y = float(x.astype(np.longdouble)[0])",
    "one longdouble": "y = float(np.longdouble(x[0]) * x[1])",
    "str": "y = float(x.astype(str)[0])",
    "record": "z = np.zeros(2, dtype=[('a', float)])\nz['a'] = x[:2]\ny = z['a'][0]",
}


@in_all_places
@pytest.mark.parametrize("kind", NARROW)
def test_e67_e68_dtypes_without_derivatives_inside(kind: str, place: str) -> None:
    """A number that went through such a dtype would have the gradient zero."""
    with pytest.raises(BadArgument, match=r"(dtype|records).* no derivatives") as caught:
        differentiable(put(NARROW[kind], place)).value_and_grad(X)
    assert caught.value.span is not None and caught.value.span.source_line().strip() in NARROW[kind]
    assert caught.value.advice


@in_all_places
def test_e73_complex_anywhere(place: str) -> None:
    z = np.array([0.3 + 0.4j, -1.0 + 0.2j])
    f = put("y = y + np.sum(x * np.conj(x) * x.real).real", place)
    once = 2.0 if place in ("in_for", "in_while") else 1.0
    value, gradient = differentiable(f, backend="python").value_and_grad(z)
    assert value == pytest.approx(once * np.sum(np.abs(z) ** 2 * z.real))
    step = 1e-6
    for k in range(2):
        for unit in (1.0, 1.0j):
            moved = np.where(np.arange(2) == k, step * unit, 0.0)
            slope = (f(z + moved) - f(z - moved)) / (2 * step)
            assert (gradient[k] * unit).real == pytest.approx(slope, rel=1e-7)
    with pytest.raises(BadArgument, match="returns a complex number, which has no gradient") as caught:
        differentiable(put("y = y + np.sum(x * x)", place)).grad(z)
    assert caught.value.span is not None


class Tagged(np.ndarray):
    """An array with something on it."""


def of_sequence(a: Any) -> float:
    return a[0] * a[0] + a[1] * 3.0


def test_e74_not_quite_arrays() -> None:
    assert differentiable(of_sequence).grad([2.0, 5.0]) == [4.0, 3.0]
    assert differentiable(of_sequence).grad((2.0, 5.0)) == (4.0, 3.0)
    for thing in (np.ma.masked_array([1.0, 2.0], [0, 1]), np.ones(2).view(Tagged)):
        refused(of_sequence, thing, error=BadArgument, match="masked array|Tagged")
        refused(of_sequence, {"a": thing}, error=BadArgument, match=r"'a\['a'\]'", at="def of_sequence(a")
    for thing in (memoryview(np.ones(2)), array.array("d", [1.0, 2.0]), range(2)):
        refused(of_sequence, thing, error=BadArgument, match=f"'a' is a {type(thing).__name__}", at="def of_sequence(a")


@pytest.mark.parametrize("thing", [None, {1.0}, "text", b"text"], ids=str)
def test_e74_what_is_no_array_is_named(thing: Any) -> None:
    kind = "None" if thing is None else f"a {type(thing).__name__}"
    for call in (differentiable(squares, backend="python").grad, tg.grad(squares)):
        with pytest.raises(BadArgument, match=f"'a' is {kind}, where a number or an array is needed") as caught:
            call(thing)
        assert caught.value.span is not None and caught.value.span.line == squares.__code__.co_firstlineno
    with pytest.raises(BadArgument, match=f"'k' is {kind}"):
        differentiable(scaled_by, backend="python").grad(np.ones(2), thing)
    with pytest.raises(TypeError) as plain:
        differentiable(squares, backend="python")(thing)
    assert not isinstance(plain.value, TapegenError)  # a plain call raises what Python raises


def scaled_by(a: np.ndarray, k: Any) -> float:
    return np.sum(a * k)


def test_e74_lists_of_numba() -> None:
    numba = pytest.importorskip("numba")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = numba.typed.List([2.0, 5.0])
        refused(of_sequence, values, error=BadArgument, match="'a' is a List of numba", at="def of_sequence(a")


MADE = {
    "np.matrix(x)[0]": "@",
    "np.ma.masked_where(x > 0, x)": "np.where",
    "memoryview(x)": "tuples, lists",
    "array.array('d', x)": "tuples, lists",
    "x.view(np.int64)": "astype",
    "x.tobytes()": "NumPy",
    "set(x)": "list",
}


@in_all_places
@pytest.mark.parametrize("made", MADE)
def test_e74_other_kinds_of_arrays_inside(made: str, place: str) -> None:
    with pytest.raises(TapegenError) as caught:
        differentiable(put(f"z = {made}\ny = y + z[0]", place)).grad(X)
    assert caught.value.span is not None and made in caught.value.span.source_line()
    assert MADE[made] in caught.value.advice


# ---- values, shapes, sizes -------------------------------------------------------------------------------------------


def weighted(a: np.ndarray, w: np.ndarray) -> float:
    b = np.exp(a) + a * w
    return b[0] * 2.0 + (b[1:] * a[1:]).sum()


@both
def test_e75_special_values(backend: str) -> None:
    derived = differentiable(weighted, backend=backend)
    w = np.array([1.0, 2.0, 3.0, 4.0])
    for special in (np.nan, np.inf, -np.inf, 5e-324, -0.0):
        a = X.copy()
        a[2] = special
        value, gradient = derived.value_and_grad(a, w)
        expected = weighted(a, w)
        assert value == expected or (np.isnan(value) and np.isnan(expected))
        np.testing.assert_allclose(gradient[[0, 1, 3]], derived.grad(X, w)[[0, 1, 3]], rtol=1e-15)
    # NaN in what is not differentiated reaches the gradient where the mathematics says so, and nowhere else
    w[2] = np.nan
    gradient = derived.grad(X, w)
    assert np.isnan(gradient[2])
    assert np.isfinite(gradient[[0, 1, 3]]).all()


def summed(a: np.ndarray, b: np.ndarray) -> float:
    return (a + b).sum()


def multiplied(a: np.ndarray, b: np.ndarray) -> float:
    return (a @ b).sum()


@both
def test_e76_shapes_that_do_not_fit(backend: str) -> None:
    raises_as_python(summed, np.ones(3), np.ones(4), backend=backend, at="(a + b).sum()")
    raises_as_python(summed, np.ones((2, 3)), np.ones((3, 2)), backend=backend, at="(a + b).sum()")
    raises_as_python(multiplied, np.ones((2, 3)), np.ones((2, 3)), backend=backend, at="(a @ b).sum()")


def spread(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    out = a * b + np.exp(c)
    out += b
    out *= c
    return (out * out).sum()


@both
def test_e77_broadcasting(backend: str) -> None:
    a = np.linspace(0.1, 1.2, 6).reshape(2, 3)
    right(spread, a, np.array([[0.3], [0.9]]), np.array([0.2, -0.4, 0.6]), backend=backend, wrt=(0, 1, 2))
    right(spread, a, np.array(0.7), np.array([[0.2, -0.4, 0.6]]), backend=backend, wrt=(0, 1, 2))


def allocates(x: float, n: int) -> float:
    a = np.empty(n)
    a[0] = x
    return a[0] * x


@both
def test_e78_more_than_memory(backend: str) -> None:
    right(allocates, 1.5, 3, backend=backend)
    raises_as_python(allocates, 1.5, -1, backend=backend, at="np.empty(n)")
    with pytest.raises(MemoryError) as caught:
        differentiable(allocates, backend=backend).grad(1.5, 2**50)
    assert "np.empty(n)" in "\n".join(caught.value.__notes__)


SIZED = ["np.zeros((2, n))", "np.full(n, x)", "np.linspace(0.0, x, n)", "np.ones_like(np.zeros(2), shape=(n,))"]


@in_all_places
def test_e78_sizes_anywhere(place: str) -> None:
    for form in SIZED:
        text = f"a = {form}\ny = y + a.ravel()[0] * x"
        raises_as_python(put(text, place, "x, n"), 1.5, -1, backend="python", at=f"a = {form}")
        with pytest.raises((MemoryError, ValueError)) as caught:
            differentiable(put(text, place, "x, n"), backend="python").grad(1.5, 2**50)
        assert f"a = {form}" in "\n".join(caught.value.__notes__)


def of_another_shape(x: np.ndarray, n: int) -> float:
    a = np.zeros_like(x, shape=(n, 2))
    a[n - 1] = x[:2]
    return (a * np.full_like(x, x[0], shape=2)).sum() * np.ones_like(x, shape=n).sum()


@both
def test_e78_another_shape(backend: str) -> None:
    right(of_another_shape, X, 5, backend=backend)


def last_of(a: np.ndarray, start: int) -> float:
    total = 0.0
    for i in range(start, a.shape[0]):
        total += a[i] * 2.0
    return total


@both
def test_e79_counters_of_64_bits(backend: str) -> None:
    huge = np.broadcast_to(np.int8(1), (2**33,))
    assert differentiable(lambda x, a, start: last_of(a, start) * x, backend=backend).value_and_grad(
        3.0, huge, 2**33 - 5
    ) == (30.0, 10.0)


SMALL = {
    "for i in range(n - 4, n):\n    y = y + x * (i - n)": 2**33,
    "for i in range(10 * n):\n    y = y + x * i\n    if i > 3:\n        break": 10**11,
    "i = n\nwhile i < 2**31 + 2:\n    i += 1\n    y = y + x * i": 2**31 - 3,
    "for v in n:\n    y = y + x * (int(v) * 4)": np.array([2**30, 3], np.int32),
    "y = y + x * n.sum()": np.full(4, 2**30, np.int32),
    "y = y + x * (n[1] - n[0])": np.array([2**31 - 3, 2**31 - 1], np.int32),
}


@in_all_places
def test_e79_no_counter_wraps(place: str) -> None:
    for text, n in SMALL.items():
        right(put(text, place, "x, n"), 1.5, n, backend="python")


def test_e80_unaligned_parts() -> None:
    records = np.zeros(3, dtype=[("flag", "i1"), ("b", "f8")])
    for part in (records["b"], np.zeros(17, np.uint8)[1:].view(np.int64), np.zeros(9, np.uint8)[1:].view("f4")):
        refused(lambda x: x["a"], {"a": 1.0, "b": part}, error=BadArgument, match="aligned", at="lambda x")
        refused(lambda x, u: x + u[0], 1.0, part, error=BadArgument, match="'u' is not aligned", at="lambda x, u")


def test_e80_unaligned() -> None:
    raw = np.zeros(33, np.uint8)
    a = raw[1:].view(np.float64)
    assert not a.flags.aligned
    refused(squares, a, error=BadArgument, match="'a' is not aligned in memory")


# ---- views without axes: they see what is stored later, which numbers do not -----------------------------------------


def seen_later(a: np.ndarray) -> Any:
    c = a * 1.0
    first = c[..., 0]
    c[0] = a[1] * 3.0
    return first * first * c[1, ...]


def stored_through(a: np.ndarray) -> Any:
    c = a * 1.0
    for i in range(c.size - 1):
        here = c[i, ...]
        here += c[i + 1] ** 2
    c.reshape(2, -1)[1, 0, ...][()] = a[0] ** 3
    return (c * a).sum()


def one_of_two_views(a: np.ndarray) -> Any:
    found = a[..., 0]
    if a.size > 4:
        found = a[..., 1]
    return found * found


def one_of_two_that_is_stored_over(a: np.ndarray) -> Any:
    c = np.outer(a, a)
    found = c[0, ..., 1]
    if a.size > 4:
        found = c[2, 3, ...]
    c[2, 3] *= a[0]
    c[0] += a[1]
    return found * found


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("function", [seen_later, stored_through, one_of_two_views, one_of_two_that_is_stored_over])
@pytest.mark.parametrize("size", [4, 6])
def test_views_without_axes(function: Any, size: int, backend: str) -> None:
    right(function, np.resize(X, size), backend=backend)


def merged_and_spread(x, n):
    total = np.sum(x)
    for _ in range(n):
        scale = np.asarray(total)
    scale /= 1.53
    x[...] = scale
    return np.sum(x * x)


def chosen_and_spread(x, n):
    scale = np.asarray(x[0] * x[1]) if n > 1 else np.asarray(x[2])
    scale *= 2.0
    y = np.ones_like(x)
    y[1:] = scale
    scale += y[3]
    return np.sum(y) * scale[()]


@pytest.mark.parametrize("function", [merged_and_spread, chosen_and_spread])
@both
def test_arrays_without_axes_stay_arrays(function: Any, backend: str) -> None:
    """Their cotangents are sums, which NumPy makes scalars, and are updated in place."""
    for n in (1, 2):
        right(function, X, n, backend=backend)


def converted_to_complex(x):
    x -= 0.5 * x
    pair = np.asarray(x, dtype=np.complex128)[:2]
    return np.sum(np.abs(pair[1]) ** 2)


def test_a_cotangent_that_is_a_part_of_a_complex_one() -> None:
    right(converted_to_complex, X, backend="python")
    with pytest.warns(tg.errors.PerformanceWarning, match="parts of complex numbers has no compiled form"):
        right(converted_to_complex, X, backend="auto", cache=False)
