"""Options of library functions: each documented value has the right derivative, or is refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import linalg, signal

import tapegen as tg
from tapegen.errors import NoCompiledForm, NotDifferentiable, TapegenError
from tapegen.frontend.source.synthesize import function_from_text
from tests.judged import both, raises_as_python, right
from tests.option_values import CALLS, Call
from tests.rule_cases import STACKED, values
from tests.rules.test_rule_programs import check_text_of, loops

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NONSENSE = "no such value"


def chosen() -> Iterator[tuple[Call, str, Any]]:
    for call in CALLS:
        for option, known in call.options.items():
            for value in known:
                yield call, option, value
            if any(isinstance(value, str) for value in known):
                yield call, option, NONSENSE


def named(call: Call, option: str, value: Any) -> str:
    return f"{call.func.__module__.partition('.')[0]}.{call.func.__name__}-{option}-{value}"


def program_of(call: Call, option: str, value: Any) -> tuple[Any, tuple[Any, ...]]:
    """The call as a function of its floats, and these."""
    floats: list[Any] = []
    captured: dict[str, Any] = {"func": call.func}

    def text(item: Any) -> str:
        if isinstance(item, tuple | list):
            return f"({''.join(f'{text(part)}, ' for part in item)})"
        if isinstance(item, float) or (isinstance(item, np.ndarray) and item.dtype.kind == "f"):
            floats.append(item)
            return f"x{len(floats) - 1}"
        if isinstance(item, str):
            return repr(item)
        captured[f"c{len(captured)}"] = item
        return f"c{len(captured) - 1}"

    parts = [text(item) for item in call.floats]
    parts += [f"{name}={text(item)}" for name, item in call.rest.items() if name != option]
    if isinstance(value, float | list):
        captured["value"] = value
    parts.append(f"{option}={'value' if 'value' in captured else repr(value)}")
    source = f"def program({', '.join(f'x{k}' for k in range(len(floats)))}):\n    return func({', '.join(parts)})\n"
    return function_from_text(source, captured), tuple(floats)


def check(call: Call, option: str, value: Any, *, text: bool = True) -> None:
    function, floats = program_of(call, option, value)
    derived = tg.differentiable(function, backend="python", wrt=tuple(range(len(floats))))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*(np.copy(x)[()] for x in floats))
        except Exception:
            with pytest.raises(Exception):  # noqa: B017, PT011
                derived.vjp(*floats)
            return
        try:
            tg.check_grads(function, *floats, modes=("forward", "reverse"), backend="python")
            if text:
                check_text_of(function, floats, loops)
        except (TapegenError, NoCompiledForm):
            return


WRONG_BEFORE = {
    *("trans-2", "trans-C", "mode-1", "boundary-pad", "type-l", "detrend-l", "overwrite_b-True", "overwrite_ab-True"),
    "axes-(0,)",
}
ALL = list(chosen())
SAMPLE = [one for k, one in enumerate(ALL) if k % 30 == 5 or named(*one).partition("-")[2] in WRONG_BEFORE]


@pytest.mark.parametrize(("call", "option", "value"), SAMPLE, ids=[named(*one) for one in SAMPLE])
def test_values(call: Call, option: str, value: Any) -> None:
    check(call, option, value, text=call.func in (np.convolve, linalg.solve_triangular))


@pytest.mark.whole
@pytest.mark.parametrize(("call", "option", "value"), ALL, ids=[named(*one) for one in ALL])
def test_all_values(call: Call, option: str, value: Any) -> None:
    check(call, option, value)


def transposed(a: np.ndarray, b: np.ndarray, trans: int) -> float:
    return np.sum(linalg.solve_triangular(a, b, trans=trans, check_finite=False) ** 2)


@both
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_an_option_that_is_an_argument(trans: int, backend: str) -> None:
    a, b = STACKED[0], values(3)
    derived = tg.differentiable(transposed, backend=backend, wrt=(0, 1))
    value, (a_bar, b_bar) = derived.value_and_grad(a, b, trans)
    assert value == pytest.approx(transposed(a, b, trans), rel=1e-13)
    system = np.triu(a).T if trans else np.triu(a)
    x = np.linalg.solve(system, b)
    expected = np.linalg.solve(system.T, 2.0 * x)
    np.testing.assert_allclose(b_bar, expected, rtol=1e-12)
    outer = -np.outer(expected, x)
    np.testing.assert_allclose(a_bar, np.triu(outer.T if trans else outer), rtol=1e-12)


def test_an_array_where_an_option_is_expected_is_refused() -> None:
    def smoothed(x: np.ndarray) -> np.ndarray:
        return signal.detrend(x, type=x)

    with pytest.raises(TapegenError):
        tg.differentiable(smoothed, backend="python").vjp(values(5))


def whole_numbers(x: np.ndarray) -> np.ndarray:
    return np.add(x, 1.5, dtype=int)


def in_no_other_dtype(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.add(x, y, casting="no")


def test_a_ufunc_casts_as_it_is_told() -> None:
    x = values(3)
    raises_as_python(whole_numbers, x, backend="python")
    raises_as_python(in_no_other_dtype, x, x.astype(np.float32), backend="python")
    right(lambda x: np.sum(np.add(x, 2, casting="no") * x), x, backend="python")
    right(lambda x: np.sum(np.multiply(x, x, dtype=np.float64, casting="safe")), x, backend="python")


def test_overwriting_is_refused_at_the_call() -> None:
    def middle(v: np.ndarray) -> float:
        return np.median(v, overwrite_input=True)

    with pytest.raises(NotDifferentiable, match=r"overwrite_input=True of np\.median writes into an argument"):
        tg.grad(middle, backend="python")(values(3))
