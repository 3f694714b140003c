"""Templates of standard library functions: Python source that is inlined at their calls."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

# ---- itertools, functools, copy ----------------------------------------------------------------------------------


def choices(size: int, count: int) -> int:
    """The number of `itertools.combinations`."""
    number = 1
    for k in range(count):
        number = number * (size - k) // (k + 1)
    return number


def repeated_choices(size: int, count: int) -> int:
    """The number of `itertools.combinations_with_replacement`."""
    return choices(size + count - 1, count)


def arrangements(size: int, count: int) -> int:
    """The number of `itertools.permutations`."""
    number = 1
    for k in range(count):
        number = number * (size - k)
    return number


def chained(parts: Any) -> Any:
    """`list(itertools.chain(*parts))`."""
    made = []
    for part in parts:
        for item in part:
            made.append(item)
    return made


def accumulated(items: Any, func: Any) -> Any:
    """`list(itertools.accumulate(items, func))`."""
    made = []
    if len(items) > 0:
        total = items[0]
        made.append(total)
        for k in range(1, len(items)):
            total = func(total, items[k])
            made.append(total)
    return made


def accumulated_from(items: Any, func: Any, initial: Any) -> Any:
    """`list(itertools.accumulate(items, func, initial=initial))`."""
    total = initial
    made = [total]
    for item in items:
        total = func(total, item)
        made.append(total)
    return made


def copied_items(items: Any) -> Any:
    """`copy.deepcopy(items)` of a growing list."""
    made = []
    for item in items:
        made.append(copy.deepcopy(item))
    return made


def reduced(func: Any, items: Any, initial: Any) -> Any:
    """`functools.reduce(func, items, initial)`."""
    total = initial
    for item in items:
        total = func(total, item)
    return total


def reduced_from_first(func: Any, items: Any) -> Any:
    """`functools.reduce(func, items)`."""
    total = items[0]
    for item in items[1:]:
        total = func(total, item)
    return total


# ---- statistics --------------------------------------------------------------------------------------------------


def fmean(data: Any, weights: Any = None) -> Any:
    """`statistics.fmean(data, weights)`."""
    if weights is None:
        return math.fsum(data) / len(data)
    return math.fsum([value * weight for value, weight in zip(data, weights, strict=True)]) / math.fsum(weights)


def mean(data: Any) -> Any:
    """`statistics.mean(data)`."""
    return type(data[0])(math.fsum(data) / len(data))


def squares(data: Any, centre: Any) -> Any:
    """The sum of the squares of deviations."""
    around = mean(data) if centre is None else centre
    return math.fsum([(value - around) ** 2 for value in data])


def variance(data: Any, xbar: Any = None) -> Any:
    """`statistics.variance(data, xbar)`."""
    return type(data[0])(squares(data, xbar) / (len(data) - 1))


def pvariance(data: Any, mu: Any = None) -> Any:
    """`statistics.pvariance(data, mu)`."""
    return type(data[0])(squares(data, mu) / len(data))


def stdev(data: Any, xbar: Any = None) -> Any:
    """`statistics.stdev(data, xbar)`."""
    return math.sqrt(squares(data, xbar) / (len(data) - 1))


def pstdev(data: Any, mu: Any = None) -> Any:
    """`statistics.pstdev(data, mu)`."""
    return math.sqrt(squares(data, mu) / len(data))


def median(data: Any) -> Any:
    """`statistics.median(data)`."""
    ordered = np.sort(np.array(data))
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return type(data[0])(ordered[middle])
    return type(data[0])((ordered[middle - 1] + ordered[middle]) / 2)


# ---- bisect, heapq -----------------------------------------------------------------------------------------------


def place_right(items: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    """`bisect.bisect_right` of a list or array."""
    hi = len(items) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        if x < items[middle]:
            hi = middle
        else:
            lo = middle + 1
    return lo


def place_left(items: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    """`bisect.bisect_left` of a list or array."""
    hi = len(items) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        if items[middle] < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def pushed_on_heap(heap: Any, item: Any) -> None:
    """`heapq.heappush`."""
    heap.append(item)
    rise_in_heap(heap, 0, len(heap) - 1)


def popped_from_heap(heap: Any) -> Any:
    """`heapq.heappop`."""
    last = heap.pop()
    if len(heap) == 0:
        return last
    least = heap[0]
    heap[0] = last
    sink_in_heap(heap, 0)
    return least


def made_a_heap(items: Any) -> None:
    """`heapq.heapify`."""
    for place in range(len(items) // 2 - 1, -1, -1):
        sink_in_heap(items, place)


def rise_in_heap(heap: Any, start: Any, place: Any) -> None:
    """Move an item towards the front of a heap, past greater items."""
    item = heap[place]
    while place > start and item < heap[(place - 1) // 2]:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item


def sink_in_heap(heap: Any, start: Any) -> None:
    """Move an item down to a leaf of a heap, then up to its position, as `heapq` does."""
    place = start
    item = heap[place]
    child = 2 * place + 1
    while child < len(heap):
        if child + 1 < len(heap) and not heap[child] < heap[child + 1]:
            child = child + 1
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    rise_in_heap(heap, start, place)
