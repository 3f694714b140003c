"""What generated code does not hold is not compared: text made of numbers, lists that grow."""

from __future__ import annotations

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.errors import TapegenError
from tests.judged import raises_as_python, right
from tests.sources import define

X = np.array([1.0, 2.0])

TEXT = [
    "f'{x[0]}' == '1.0'",
    "'%s' % x[0] != '1.0'",
    "str(x[0]) == '1.0'",
    "str(x[0]) in ('1.0',)",
    "'1' in f'{x[0]}'",
    "f'{x[0]}'.startswith('1')",
    "f'{x[0]}' < '2'",
    "str(x[0]) + 'a' == '1.0a'",
    "f'{x[0]}' == f'{x[1] - 1.0}'",
    "not str(x[0])",
    "(str(x[0]),) == ('1.0',)",
    "max(str(x[0]), '0') == '1.0'",
    "repr(x[0]) == 'np.float64(1.0)'",
    "f'k{x.size}' == 'k2'",
]
LISTS = [
    "[v * 1.0 for v in x] == [1.0, 2.0]",
    "[v for v in x] != [1.0, 2.0]",
    "[v for v in x] == [v for v in x]",
    "[v for v in x] == []",
    "([v for v in x],) == ([1.0, 2.0],)",
    "[(v, v) for v in x] == [(1.0, 1.0), (2.0, 2.0)]",
    "[f'{v}' for v in x] == ['1.0', '2.0']",
]


@pytest.mark.parametrize("test", TEXT + LISTS)
def test_refused(test: str) -> None:
    func = define(f"def f(x):\n    return 3.0 * x[0] if {test} else x[0]\n")
    with pytest.raises(TapegenError) as caught:
        differentiable(func, backend="python").grad(X)
    assert caught.value.span is not None
    assert caught.value.advice


KNOWN = ["str(x[0]) is not None", "isinstance(str(x[0]), str)", "[v for v in x] != None", "f'a{1}' == 'a1'"]


@pytest.mark.parametrize("test", KNOWN)
def test_known_whatever_the_numbers_are(test: str) -> None:
    right(define(f"def f(x):\n    return 3.0 * x[0] if {test} else x[0]\n"), X, backend="python")


def says(x: np.ndarray) -> float:
    print("a" + str(x[0]), f"{x[1]}" + str(x[0]), "p" + "q", str(x[0]) + "b" + f"{x[1]:.3f}")
    if x[0] < 0.0:
        raise ValueError("bad " + str(x[0]) + f" {x[1]}")
    return x[0] * x[1]


def test_text_that_is_put_together_is_that_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    says(X)
    said = capsys.readouterr().out
    differentiable(says, backend="python").value_and_grad(X)
    assert capsys.readouterr().out == said
    raises_as_python(says, -X, backend="python")
