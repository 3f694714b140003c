"""`try` and `with` that say nothing which generated code has to know, or that lowering decides; context managers."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable, UnsupportedSyntax

X = np.array([1.0, 2.0, 3.0])
TABLE = {"a": 2.0}
log: list = []


class Bag:
    def __init__(self):
        self.k = 2.0


bag = Bag()


def imports_what_there_is(x):
    try:
        from math import pi as factor
    except ImportError:
        factor = 3.0
    return np.sum(x) * factor


def imports_what_there_is_not(x):
    try:
        import no_such_module_at_all as module
    except ImportError:
        module = None
    return np.sum(x) * (2.0 if module is None else 3.0)


def names_an_array(x):
    y = x * 2.0
    try:
        y.name = "y"
    except AttributeError:
        y = y * 3.0
    return np.sum(y * y)


def looks_up(x):
    try:
        k = TABLE["b"]
    except KeyError:
        k = TABLE["a"]
    return np.sum(x) * k


def returns_from_both(x):
    try:
        return np.sum(x) * bag.missing
    except AttributeError:
        return np.sum(x * x) * bag.k


def keeps_what_was_done_before(x):
    y = x * 1.0
    try:
        y[0] = 5.0
        bag.nothing.there = 1.0
    except (AttributeError, KeyError):
        y[1] = y[0] * x[2]
    return np.sum(y * y)


def raises_another_error(x):
    try:
        y = np.linalg.solve(np.diag(x), x * x)
    except np.linalg.LinAlgError as error:
        raise ValueError("singular") from error
    return np.sum(y)


def cleans_up(x):
    log.append("in")
    try:
        y = x * x
        return np.sum(y)
    finally:
        log.append("out")


def goes_on_under_else(x):
    try:
        y = x * x
    except ValueError as error:
        raise TypeError("no") from error
    else:
        y = y * 3.0
    return np.sum(y)


def cannot_raise(x):
    try:
        y = np.exp(x[0] * 2.0) if False else x * 2.0
    except ValueError:
        y = x
    return np.sum(y * x)


def quiet(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.sqrt(x)
    return np.sum(y)


@pytest.mark.parametrize(
    "function",
    [
        *(imports_what_there_is, imports_what_there_is_not, names_an_array, looks_up, returns_from_both),
        *(keeps_what_was_done_before, raises_another_error, cleans_up, cannot_raise, quiet, goes_on_under_else),
    ],
    ids=lambda function: function.__name__,
)
def test_as_plain_python(function: Callable[..., Any]) -> None:
    log.clear()
    expected, expected_log = function(X.copy()), log[:]
    log.clear()
    value, gradient = tg.value_and_grad(function, backend="python")(X.copy())
    assert value == expected
    assert log == expected_log
    differences = [(function(X + 1e-6 * e) - function(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert np.allclose(gradient, differences, rtol=1e-6)


def of_numbers_or_arrays(e):
    try:
        e[abs(e) < 2.0] = 0.0
    except TypeError:
        if abs(e) < 2.0:
            e = 0.5 * e
    return np.sum(e * e)


def of_the_precision(x):
    try:
        limit = np.finfo(np.asarray(x).dtype).eps * 4
    except ValueError:
        limit = 1e-6
    return np.sum(x * x) if x[0] > limit else 0.0


def of_no_index(x):
    try:
        y = np.where(x > 1.5, x / (1 + x), np.arctan(x))
    except (IndexError, ZeroDivisionError):
        y = x
    return np.sum(y)


def scales(e):
    e[0] = 0.0
    return np.sum(e)


@pytest.mark.parametrize(
    ("function", "x", "gradient"),
    [
        (of_numbers_or_arrays, 1.5, 0.75),
        (of_numbers_or_arrays, np.float64(3.0), 6.0),
        (of_numbers_or_arrays, np.array([1.0, 3.0]), [0.0, 6.0]),
        (of_the_precision, X, 2 * X),
        (of_no_index, X, [0.5, 1 / 9, 1 / 16]),
    ],
)
def test_an_error_that_types_tell_is_decided(function: Callable[..., Any], x: Any, gradient: Any) -> None:
    value, found = tg.value_and_grad(function, backend="python")(np.copy(x)[()])
    assert value == function(np.copy(x)[()])
    assert np.allclose(found, gradient, rtol=1e-12)


@pytest.mark.parametrize("number", [1.5, np.float64(1.5), np.float32(1.5)])
def test_a_store_into_a_number_raises_as_in_python(number: Any) -> None:
    with pytest.raises(TypeError) as known:
        scales(number)
    with pytest.raises(TypeError) as found:
        tg.grad(scales, backend="python")(number)
    assert str(found.value) == str(known.value)


def test_the_error_is_that_of_the_handler() -> None:
    with pytest.raises(ValueError, match="singular"):
        tg.grad(raises_another_error, backend="python")(np.zeros(3))


def divides(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return 0.0


def loads(x):
    try:
        y = x[7]
    except IndexError:
        y = 0.0
    return np.sum(x) + y


def of_two_shapes(x):
    try:
        y = x + np.ones(4)
    except ValueError:
        y = x
    return np.sum(y)


def of_two_sizes(x):
    y = x[1:]
    try:
        y = x + y
    except ValueError:
        y = x * 2.0
    return np.sum(y)


def anything(x):
    try:
        y = float(x[0]) ** 0.5
    except Exception:
        y = 0.0
    return y


def leaves_a_finally(x):
    y = x * 1.0
    try:
        try:
            y = y * bag.missing
        finally:
            y[0] = 2.0
    except AttributeError:
        y[1] = 3.0
    return np.sum(y * y)


def handles_warnings(x):
    try:
        return makes_errors(x)
    except RuntimeWarning:
        return 0.0 * np.sum(x)


def warns(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if x[0] > 100.0:
            warnings.warn("large", stacklevel=2)
        return np.sum(x)


def divides_integers(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.sum(x * (np.arange(len(x)) // np.arange(1, len(x) + 1)))


def casts(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.sum(x * x.astype(int))


def makes_some_errors(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        return np.sum(np.sqrt(x))


def leaves_where_warnings_are_errors(x):
    if np.sum(x) > 100.0:
        with np.errstate(divide="raise"):
            return np.sum(1.0 / x)
    total = 0.0
    for k in range(len(x)):
        with np.errstate(invalid="raise"):
            if x[k] < -50.0:
                break
            total = total + np.sqrt(x[k])
        total = total * np.prod(np.cumsum(x))
    return total


def keeps_warnings(x):
    with warnings.catch_warnings(record=True) as caught:
        y = np.sum(np.sqrt(x))
    return y * len(caught)


def makes_errors(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.sum(np.sqrt(x))


@pytest.mark.parametrize(
    "function", [divides, loads, of_two_shapes, of_two_sizes, anything], ids=lambda function: function.__name__
)
def test_what_depends_on_the_run_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedSyntax, match=r"the body of 'try' raises .* depends on the run"):
        tg.grad(function, backend="python")(1.5 if function is divides else X)


@pytest.mark.parametrize("backend", ["python", "auto"])
def test_runs_that_would_warn_are_refused_where_warnings_are_errors(backend: str) -> None:
    gradient = tg.grad(makes_errors, backend=backend)
    assert np.allclose(gradient(X), 0.5 / np.sqrt(X))
    with pytest.raises(RuntimeWarning, match="invalid value"):
        gradient(-X)
    handled = tg.grad(handles_warnings, backend=backend)
    assert np.allclose(handled(X), 0.5 / np.sqrt(X))
    with pytest.raises(BadArgument, match="not finite where warnings are errors"):
        handled(-X)


@pytest.mark.parametrize("function", [warns, divides_integers, casts], ids=lambda function: function.__name__)
def test_warnings_of_other_kinds_are_refused_where_they_are_errors(function: Callable[..., Any]) -> None:
    with pytest.raises(NotDifferentiable, match="warnings are errors here, and whether"):
        tg.grad(function, backend="python")(X)


@pytest.mark.parametrize("backend", ["python", "auto"])
def test_paths_that_leave_where_warnings_are_errors(backend: str) -> None:
    for x in (X, X[:1], X[:2]):
        tg.check_grads(leaves_where_warnings_are_errors, x, backend=backend)


@pytest.mark.parametrize("function", [makes_some_errors, keeps_warnings], ids=lambda function: function.__name__)
def test_other_filters_of_warnings_are_refused_where_they_are_reached(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedSyntax, match="makes errors of some") as caught:
        tg.grad(function, backend="python")(X)
    assert caught.value.span is not None
    assert caught.value.span.lines[0].lstrip().startswith("with warnings.catch_warnings")


def test_an_error_through_a_finally_is_refused() -> None:
    with pytest.raises(UnsupportedSyntax, match="leaves a 'try' inside of this one"):
        tg.grad(leaves_a_finally, backend="python")(X)


# ---- context managers ----------------------------------------------------------------------------------------------


class Meter:
    """Counts, and writes into its caller's arrays, where a `with` begins and ends."""

    def __init__(self, step=1):
        self.begun = 0
        self.ended = 0
        self.step = step

    def __enter__(self):
        self.begun += self.step
        return self

    def __exit__(self, kind, error, trace):
        self.ended += 1
        if kind is not None:
            return False

    @contextlib.contextmanager
    def doubled(self, x, *, by=2.0):
        before = self.begun
        with self:
            yield x * by
        before += 5
        self.begun = before


meter = Meter()


@contextlib.contextmanager
def scaled(x, k=2.0):
    meter.begun += 1
    y = x * k
    try:
        yield y
    finally:
        meter.ended += 1
        y[0] = 7.0 * x[1]
        k = y[0] * 2.0
        x[2] = k


@contextlib.contextmanager
def twice_said():
    sent = yield
    meter.ended += 1 if sent is None else 100


LEVEL = 1.0


@contextlib.contextmanager
def raised_level(by):
    global LEVEL
    old = LEVEL
    LEVEL = old + by
    try:
        yield
    finally:
        LEVEL = old


tools = types.SimpleNamespace(scaled=scaled, meter=meter)


def writes_behind(x):
    x = x * 1.0
    with scaled(x, k=3.0) as y:
        s = np.sum(y * y)
    return s + np.sum(y * x)


def of_a_class(x):
    with meter:
        y = x * x
    with Meter(2) as own:
        y *= own.step
    return np.sum(y) * own.begun * own.ended


def returns_inside(x):
    x = x * 1.0
    with meter.doubled(x) as y, scaled(y) as z:
        if x[0] > 0.0:
            return np.sum(z * y)
        y = y * 2.0
    return np.sum(y)


def returns_an_array_that_is_written(x):
    y = x * x
    with scaled(y):
        return y


def sums_what_is_returned(x):
    return np.sum(returns_an_array_that_is_written(x) ** 2)


def breaks_inside(x):
    s = 0.0
    x = x * 1.0
    for k in range(3):
        with scaled(x, k + 1.0) as y:
            for value in y:
                if value > 100.0:
                    break
                s += value * x[0]
            else:
                if k == 0:
                    continue
            if s > 20.0:
                break
        s += y[0]
    return s + x[2]


def breaks_a_loop_inside(x):
    s = 0.0
    x = x * 1.0
    with scaled(x, 2.0) as y:
        for value in y:
            if value * value > 10.0:
                break
            s += value * x[0]
        s += y[1]
    return s * x[1]


def under_a_branch(x):
    y = x * 1.0
    if x[0] > 0.0:
        with tools.scaled(y) as z, np.errstate(all="ignore"):
            s = np.sum(z * z)
    else:
        s = 0.0
    return s + y[2]


def bound_before(x):
    manager = tools.meter.doubled(x, by=3.0)
    meter.begun += 1000
    with manager as (a, b, _):
        return a * b


def of_the_library(x):
    with contextlib.nullcontext(x * 3.0) as y, twice_said():
        return np.sum(y * x)


def under_a_try(x):
    try:
        y = returns_an_array_that_is_written(x)
        k = TABLE["b"]
    except KeyError:
        k = 3.0
    return np.sum(y) * k


def under_a_global(x):
    with raised_level(2.0):
        s = np.sum(x * x) * LEVEL
    return s + x[0] * LEVEL


def around_a_try(x):
    with meter:
        try:
            k = TABLE["b"]
        except KeyError:
            k = 3.0
    return np.sum(x) * k


@pytest.mark.parametrize(
    "function",
    [
        *(writes_behind, of_a_class, returns_inside, sums_what_is_returned, breaks_inside, under_a_branch),
        *(breaks_a_loop_inside,),
        *(bound_before, of_the_library, around_a_try, under_a_try, under_a_global),
    ],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("x", [X, -X], ids=["positive", "negative"])
def test_context_managers_as_in_plain_python(function: Callable[..., Any], x: np.ndarray) -> None:
    meter.begun = meter.ended = 0
    expected, state = function(x.copy()), (meter.begun, meter.ended)
    meter.begun = meter.ended = 0
    value, gradient = tg.value_and_grad(function, backend="python")(x.copy())
    assert value == expected
    assert (meter.begun, meter.ended) == state
    differences = [(function(x + 1e-6 * e) - function(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert np.allclose(gradient, differences, rtol=1e-6)


def raises_inside(x):
    with meter:
        if x[0] > 0.0:
            raise ValueError("positive")
    return np.sum(x)


def test_an_exception_leaves_state_as_in_plain_python() -> None:
    meter.begun = meter.ended = 0
    with pytest.raises(ValueError, match="positive"):
        tg.grad(raises_inside, backend="python")(X)
    assert (meter.begun, meter.ended) == (1, 1)


class Ends:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is ValueError


@contextlib.contextmanager
def catches():
    try:
        yield
    except ValueError:
        meter.ended += 1


@contextlib.contextmanager
def yields_in_a_branch(flag):
    if flag:
        yield 1.0
    else:
        yield 2.0


@contextlib.contextmanager
def returns_before(flag):
    if flag:
        return
    yield 2.0


def ends(x):
    with Ends():
        return np.sum(x)


def suppresses(x):
    with contextlib.suppress(ValueError):
        return np.sum(x)


def has_handlers(x):
    with catches():
        return np.sum(x)


def has_two_yields(x):
    with yields_in_a_branch(x[0] > 0.0) as k:
        return np.sum(x) * k


def may_not_yield(x):
    with returns_before(x[0] < 0.0) as k:
        return np.sum(x) * k


def runs_twice(x):
    manager = scaled(x * 1.0)
    with manager as y:
        x = x * y
    with manager as y:
        return np.sum(x * y)


def opens(x):
    with open("table") as file:
        return np.sum(x) * len(file.read())


def leaves_a_with(x):
    try:
        with meter:
            y = x * bag.missing
    except AttributeError:
        y = x
    return np.sum(y)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (ends, "may end what is raised under 'with'"),
        (suppresses, "may end what is raised under 'with'"),
        (has_handlers, "handles what is raised under its 'with'"),
        (has_two_yields, "not one part before it and one part after it"),
        (may_not_yield, "may return before it yields"),
        (runs_twice, "not known here, or has run"),
        (leaves_a_with, "leaves a 'try' inside of this one"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_managers_that_depend_on_the_run_are_refused(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(UnsupportedSyntax, match=reason):
        tg.grad(function, backend="python")(X)


def test_managers_without_python_code_are_refused() -> None:
    with pytest.raises(tg.errors.TapegenError):
        tg.grad(opens, backend="python")(X)
