"""Times of a kernel and of its gradient, taken in turn in one process."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

import tapegen as tg
from tests.oracle import numerical_gradient

SAMPLE_SECONDS = 0.03  # a sample repeats the call until it lasts about this long
LEAST_OF = 9  # samples of which the least counts
PLACEMENTS = 5  # times that arrays are made anew: how fast they are read depends on where they lie


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What was measured of one kernel.  Times are in seconds; `ratio` is that of value and gradient to the primal."""

    name: str
    primal: float
    gradient: float
    ratio: float
    first_primal: float
    first_gradient: float
    recorded: int | None  # bytes on tapes; None where the iterations of a recording loop depend on values
    error: float
    first: float
    goal: float

    @property
    def allowed_first_call(self) -> float:
        """The limit for transform and compilation: twice what numba needs for the plain primal, plus a second."""
        return 2.0 * self.first_primal + 1.0


def plain_dispatcher(function: Callable[..., Any]) -> Any:
    """The kernel under `numba.njit`, its helper functions too, without touching the module."""
    namespace = dict(function.__globals__)

    def twin(own: Callable[..., Any]) -> Any:
        return numba.njit(types.FunctionType(own.__code__, namespace, own.__name__, own.__defaults__))

    namespace.update({name: twin(value) for name, value in namespace.items() if is_helper(value, function)})
    return twin(function)


def is_helper(value: Any, function: Callable[..., Any]) -> bool:
    """Whether a global is another plain function of the kernel's module."""
    return isinstance(value, types.FunctionType) and value.__module__ == function.__module__


def elapsed(call: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds for one call, averaged over `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def processor_time(call: Callable[[], Any], repeats: int = 1) -> float:
    """Seconds of this process for one call, averaged over `repeats`: what other programs do meanwhile is left out."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def least(calls: list[Callable[[], Any]]) -> list[float]:
    """The least processor time of each call, from samples that alternate: good on a busy machine too."""
    for call in calls:
        call()  # compiles it, which is no measure of how often it fits into a sample
    repeats = [max(1, int(SAMPLE_SECONDS / max(processor_time(call), 1e-9))) for call in calls]
    found = [math.inf for _ in calls]
    for _ in range(LEAST_OF):
        for k, (call, count) in enumerate(zip(calls, repeats, strict=True)):
            found[k] = min(found[k], processor_time(call, count))
    return found


def gradient_error(kernel: types.ModuleType, gradient: tuple) -> float:
    """The largest difference from extrapolated central differences, relative to the largest entry of each part."""
    estimate = numerical_gradient(kernel.f, kernel.small(), paths=[(position,) for position in kernel.WRT])
    worst = 0.0
    for position, part in zip(kernel.WRT, gradient, strict=True):
        want = estimate.value[(position,)]
        worst = max(worst, float(np.max(np.abs(want - part)) / max(1e-300, np.max(np.abs(want)))))
    return worst


def measure(kernel: types.ModuleType) -> Measurement:
    """Check the kernel's gradient at the small size, then time both at the full size."""
    plain = plain_dispatcher(kernel.f)
    ours = tg.differentiable(wrt=kernel.WRT)(kernel.f)
    small = kernel.small()
    first_primal = elapsed(lambda: plain(*small))
    first_gradient = elapsed(lambda: ours.value_and_grad(*small))
    value, gradient = ours.value_and_grad(*small)
    np.testing.assert_allclose(value, plain(*small), rtol=1e-10)
    error = gradient_error(kernel, gradient)
    placed = [kernel.args() for _ in range(PLACEMENTS)]
    times = [least([partial(plain, *args), partial(ours.value_and_grad, *args)]) for args in placed]
    primal, both = map(statistics.median, zip(*times, strict=True))
    ratio = statistics.median(gradient / own for own, gradient in times)
    recorded = ours.inspect(*placed[0]).report.recorded_bytes
    name = kernel.__name__.rsplit(".", 1)[-1]
    firsts = first_primal, first_gradient
    return Measurement(name, primal, both, ratio, *firsts, recorded, error, kernel.FIRST, kernel.GOAL)
