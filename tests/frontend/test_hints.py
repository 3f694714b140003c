"""What users commonly write that is not followed: the advice fits, and what it says to write works."""

from __future__ import annotations

import functools
import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegen import check_grads, differentiable
from tapegen.errors import TapegenError

X = np.array([0.3, 0.7, 1.1, 0.2])


def window(x: Any) -> Any:
    last, total = deque(maxlen=2), 0.0
    for v in x:
        last.append(v)
        total += sum(last) ** 2
    return total


def window_of_a_list(x: Any) -> Any:
    last, total = [], 0.0
    for v in x:
        last.append(v)
        total += sum(last[-2:]) ** 2
    return total


def queue(x: Any) -> Any:
    waiting, total = deque([0]), 0.0
    while waiting:
        k = waiting.popleft()
        total += x[k] ** 2
        if k + 2 < len(x):
            waiting.append(k + 2)
    return total


def queue_in_a_list(x: Any) -> Any:
    waiting, first, total = [0], 0, 0.0
    while first < len(waiting):
        k = waiting[first]
        first += 1
        total += x[k] ** 2
        if k + 2 < len(x):
            waiting.append(k + 2)
    return total


def totals(x: Any) -> Any:
    sums: Any = defaultdict(float)
    for key, v in zip("abab", x, strict=True):
        sums[key] += v
    return sums["a"] * sums["b"]


def counted(x: Any) -> Any:
    sums: Any = Counter()
    for key, v in zip("abab", x, strict=True):
        sums[key] += v
    return sums["a"] * sums["b"]


def totals_in_a_dict(x: Any) -> Any:
    sums: dict[str, Any] = {}
    for key, v in zip("abab", x, strict=True):
        sums[key] = sums.get(key, 0.0) + v
    return sums["a"] * sums["b"]


def groups(x: Any) -> Any:
    found: Any = defaultdict(list)
    for k, v in enumerate(x):
        found[k % 2].append(v)
    return sum(found[0]) * sum(found[1])


def groups_in_a_dict(x: Any) -> Any:
    found: dict[int, Any] = {key: [] for key in range(2)}
    for k, v in enumerate(x):
        found[k % 2].append(v)
    return sum(found[0]) * sum(found[1])


def least(x: Any) -> Any:
    heap: list[Any] = []
    for v in x:
        heapq.heappush(heap, v * v)
    return heapq.heapreplace(heap, 1.0)


def least_of_a_list(x: Any) -> Any:
    items = []
    for v in x:
        items.append(v * v)
    return min(items) + sorted(items)[1]


def seen_before(x: Any) -> Any:
    seen, total = set(), 0.0
    for k in range(len(x)):
        if k in seen:
            continue
        seen.add(2 * k)
        total += x[k] ** 2
    return total


def seen_in_flags(x: Any) -> Any:
    seen, total = np.zeros(2 * len(x), dtype=bool), 0.0
    for k in range(len(x)):
        if seen[k]:
            continue
        seen[2 * k] = True
        total += x[k] ** 2
    return total


def by_dict(x: Any) -> Any:
    class_ = Model
    model = class_(a=x[0], b=x[1])
    return model.a * model.b


class Model:
    a: Any
    b: Any

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Named:
    a: Any
    b: Any

    def __init__(self, **given: Any) -> None:
        for name, value in given.items():
            setattr(self, name, value)


def by_setattr(x: Any) -> Any:
    model = Named(a=x[0], b=x[1])
    return model.a * model.b


def remembered(x: Any) -> Any:
    @functools.cache
    def term(k: int) -> Any:
        return x[k] if k < 2 else term(k - 1) * term(k - 2)

    return term(4)


def not_remembered(x: Any) -> Any:
    def term(k: int) -> Any:
        return x[k] if k < 2 else term(k - 1) * term(k - 2)

    return term(4)


def first_large(x: Any) -> Any:
    return x[next(k for k, v in enumerate(x) if v > 0.5)] ** 2


def first_large_by_break(x: Any) -> Any:
    found = 0
    for k, v in enumerate(x):
        if v > 0.5:
            found = k
            break
    return x[found] ** 2


def labels(x: Any) -> Any:
    text = ""
    for k in range(len(x)):
        text += f"{k},"
    return x.sum() * len(text)


def division_tried(x: Any) -> Any:
    try:
        return 1.0 / float(x[0])
    except ZeroDivisionError:
        return 0.0


def division_asked(x: Any) -> Any:
    return 1.0 / x[0] if x[0] != 0.0 else 0.0


def factor_tried(x: Any) -> Any:
    try:
        return np.linalg.cholesky(np.outer(x, x) + np.eye(4))[1, 1]
    except np.linalg.LinAlgError:
        return 0.0


def factor(x: Any) -> Any:
    return np.linalg.cholesky(np.outer(x, x) + np.eye(4))[1, 1]


def several_tried(x: Any) -> Any:
    try:
        return math.exp(x[0])
    except (OverflowError, KeyError):
        return 0.0


def several_asked(x: Any) -> Any:
    return math.exp(x[0]) if x[0] < 700.0 else 0.0


CASES = [
    (window, "items[-n:]", window_of_a_list),
    (queue, "first += 1", queue_in_a_list),
    (totals, "d.get(key, 0.0) + value", totals_in_a_dict),
    (counted, "d.get(key, 0.0) + value", totals_in_a_dict),
    (groups, "{key: [] for key in keys}", groups_in_a_dict),
    (least, "min(items) or sorted(items)", least_of_a_list),
    (seen_before, "dtype=bool", seen_in_flags),
    (by_dict, "setattr(self, name, value)", by_setattr),
    (remembered, "Leave the decorator out", not_remembered),
    (first_large, "leave it by 'break'", first_large_by_break),
    (labels, "after the call", None),
    (division_tried, "if b != 0.0", division_asked),
    (factor_tried, "Catch it around the call", factor),
    (several_tried, "Test for the case beforehand", several_asked),
]


@pytest.mark.parametrize(("refused", "advice", "instead"), CASES, ids=lambda part: getattr(part, "__name__", None))
def test_the_advice_works(refused: Callable[..., Any], advice: str, instead: Callable[..., Any] | None) -> None:
    with pytest.raises(TapegenError) as caught:
        differentiable(refused, backend="python").grad(X)
    assert caught.value.span is not None
    assert advice in f"{caught.value.reason} {caught.value.advice}"  # of one kind of several, the reason tells it
    if instead is not None:
        made = differentiable(instead, backend="python")
        assert made.value_and_grad(X)[0] == pytest.approx(instead(X), rel=1e-14)
        check_grads(made, X)


def test_linear_algebra_raises_as_plain_python_does() -> None:
    def root(x: Any) -> Any:
        return np.linalg.cholesky(np.outer(x, x) - np.eye(4))[1, 1]

    with pytest.raises(np.linalg.LinAlgError):
        differentiable(root, backend="python").grad(X)
