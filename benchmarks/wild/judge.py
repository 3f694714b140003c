"""One call of somebody else's function, judged by plain Python and by differences."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapegen as tg
from benchmarks.wild.calls import Call

STEPS = (1e-3, 5e-4)  # of the differences, relative to the size of the argument
AGREE = 1e-6  # two steps that differ by more, relative to the scale of the derivative, say nothing: a kink lies between
RIGHT = 1e-5
NOISE = 4.0  # times the disagreement of the two steps: both may be off


@dataclass(frozen=True)
class Verdict:
    """What came of a call.  `kind` is one of right, refused, wrong, error, unusable."""

    function: str
    kind: str
    reason: str = ""


def judged(call: Call, backend: str) -> Verdict:
    """Value, gradient by reverse mode and derivative along a direction by forward mode against plain Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function = call.resolve()
            expected = _called(function, copy.deepcopy(call.args), copy.deepcopy(call.kwargs))
            reference = _reference(call)
        except Exception as error:
            return Verdict(call.function, "unusable", f"plain Python: {type(error).__name__}: {error}")
        if not reference.wrt:
            return Verdict(call.function, "unusable", "no floating arguments")
        try:
            found = _wrong(call, function, backend, expected, reference)
        except tg.TapegenError as refusal:
            return Verdict(call.function, "refused", f"{type(refusal).__name__}: {refusal.reason}")
        except Exception as error:
            return Verdict(call.function, "error", f"{type(error).__name__}: {error}")
    return Verdict(call.function, "wrong" if found else "right", found)


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of plain Python; of a generator, the list of what it yields."""
    result = function(*args, **kwargs)
    return list(result) if inspect.isgenerator(result) else result


@dataclass(frozen=True)
class _Reference:
    """The weighted sum of all floating results, and its derivatives by differences (NaN where these say nothing).

    `noise` is how far two steps disagree: where numbers of the size of the earth cancel, rounding is most of it.
    """

    wrt: tuple[int, ...]
    weights: Callable[[Any], Any]
    gradient: tuple[np.ndarray, ...]
    noise: tuple[np.ndarray, ...]


def _reference(call: Call) -> _Reference:
    function = call.resolve()
    wrt = tuple(i for i, arg in enumerate(call.args) if _is_floating(arg))

    def weighted(*args: Any) -> float:
        result = _called(function, copy.deepcopy(args), copy.deepcopy(call.kwargs))
        total = 0.0
        for leaf, weight in zip(_leaves(result), _leaves(_weights(result))):
            if _differentiable(leaf):
                total += float(np.sum(np.real(np.conj(weight) * leaf)))
        return total

    found = [_differences(weighted, call.args, position) for position in wrt]
    return _Reference(wrt, _weights, tuple(gradient for gradient, _ in found), tuple(noise for _, noise in found))


def _wrong(call: Call, function: Callable[..., Any], backend: str, expected: Any, reference: _Reference) -> str:
    derived = tg.differentiable(wrt=reference.wrt, backend=backend)(function)
    value, pullback = derived.vjp(*copy.deepcopy(call.args), **copy.deepcopy(call.kwargs))
    if not _same(value, expected):
        return f"value {value!r}, not {expected!r}"
    gradients = pullback(reference.weights(expected))
    along = 0.0
    for position, gradient, wanted, noise in zip(reference.wrt, gradients, reference.gradient, reference.noise):
        flat = np.concatenate([np.ravel(leaf) for leaf in _leaves(gradient)])
        known = np.isfinite(wanted)
        scale = max(1e-3, float(np.max(np.abs(wanted[known]), initial=0.0)))
        if flat.shape != wanted.shape or np.any(~(np.abs(flat - wanted) <= RIGHT * scale + NOISE * noise)[known]):
            return f"gradient of argument {position} is {flat}, differences give {wanted}"
        along += float(np.sum(np.real(flat)))
    tangents = [_ones(arg) if i in reference.wrt else None for i, arg in enumerate(call.args)]
    _, tangent = derived.jvp(copy.deepcopy(call.args), tangents) if not call.kwargs else (None, None)
    if tangent is not None:
        pairs = zip(_leaves(expected), _leaves(reference.weights(expected)), _leaves(tangent))
        forward = sum(float(np.sum(np.real(np.conj(w) * t))) for leaf, w, t in pairs if _differentiable(leaf))
        if not np.isclose(forward, along, rtol=1e-8, atol=1e-8 * max(1.0, abs(along)), equal_nan=True):
            return f"forward mode gives {forward}, reverse mode {along}"
    return ""


def _differences(weighted: Callable[..., float], args: tuple[Any, ...], position: int) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives for one argument, and how far two steps disagree."""
    leaves = list(_leaves(args[position]))
    size = sum(np.size(leaf) for leaf in leaves)
    found, noise = np.empty(size), np.empty(size)
    for k in range(size):
        both = [_difference(weighted, args, position, k, step) for step in STEPS]
        noise[k] = abs(both[0] - both[1])
        found[k] = both[1] if noise[k] <= AGREE * max(1.0, abs(both[1])) else np.nan
    return found, noise


def _difference(weighted: Callable[..., float], args: tuple[Any, ...], position: int, k: int, step: float) -> float:
    """The eight-point rule, of eighth order."""
    size = abs(_get(args[position], k))
    h = step * (size if size > 0.0 else 1.0)
    coefficients = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    total = 0.0
    for j, coefficient in enumerate(coefficients, 1):
        ahead = weighted(*(_moved(arg, k, j * h) if i == position else arg for i, arg in enumerate(args)))
        behind = weighted(*(_moved(arg, k, -j * h) if i == position else arg for i, arg in enumerate(args)))
        total += coefficient * (ahead - behind)
    return total / h


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _differentiable(leaf: Any) -> bool:
    return isinstance(leaf, (float, complex, np.ndarray, np.generic)) and np.asarray(leaf).dtype.kind in "fc"


def _is_floating(arg: Any) -> bool:
    leaves = list(_leaves(arg))
    return bool(leaves) and all(_differentiable(leaf) for leaf in leaves)


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(function, item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(function, item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(function, item) for item in value)
    return function(value)


def _weights(result: Any) -> Any:
    """Cotangents of `result`: numbers of a seeded generator where it is floating."""
    random = np.random.default_rng(3)

    def weight(leaf: Any) -> Any:
        if not _differentiable(leaf):
            return leaf
        drawn = random.uniform(0.5, 1.5, np.shape(leaf))
        return drawn.astype(np.asarray(leaf).dtype) if isinstance(leaf, np.ndarray) else float(drawn)

    return _mapped(weight, result)


def _ones(arg: Any) -> Any:
    """A tangent of `arg` that is one everywhere."""
    return _mapped(lambda leaf: np.ones_like(leaf) if isinstance(leaf, np.ndarray) else 1.0, arg)


def _get(arg: Any, k: int) -> float:
    return float(np.concatenate([np.ravel(leaf) for leaf in _leaves(arg)])[k])


def _moved(arg: Any, k: int, by: float) -> Any:
    count = 0

    def move(leaf: Any) -> Any:
        nonlocal count
        first, count = count, count + np.size(leaf)
        if not first <= k < count:
            return leaf
        if not isinstance(leaf, np.ndarray):
            return leaf + by
        moved = leaf.copy()
        moved.reshape(-1)[k - first] += by
        return moved

    return _mapped(move, arg)


def _same(found: Any, expected: Any) -> bool:
    ours, theirs = list(_leaves(found)), list(_leaves(expected))
    if len(ours) != len(theirs):
        return False
    for a, b in zip(ours, theirs):
        if _differentiable(b):
            if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=1e-12, atol=1e-300, equal_nan=True):
                return False
        elif isinstance(b, np.ndarray):
            if not np.array_equal(a, b):
                return False
        elif type(b) in (int, bool, str) and a != b:
            return False
    return True


def summary(verdicts: list[Verdict]) -> str:
    """A table by package, and the refusals by reason."""
    kinds = ("right", "refused", "error", "wrong")
    usable = [verdict for verdict in verdicts if verdict.kind != "unusable"]
    packages = sorted({verdict.function.partition(".")[0] for verdict in usable})
    lines = ["| package | functions | right | refused | error | wrong |", "|---|--:|--:|--:|--:|--:|"]
    for package in [*packages, "all"]:
        own = [verdict for verdict in usable if package in ("all", verdict.function.partition(".")[0])]
        count = Counter(verdict.kind for verdict in own)
        lines.append(f"| {package} | {len(own)} | " + " | ".join(str(count[kind]) for kind in kinds) + " |")
    share = sum(verdict.kind == "right" for verdict in usable) / max(1, len(usable))
    lines += [
        "",
        f"{100 * share:.1f} % of {len(usable)} functions of {len(packages)} packages are right, unmodified.",
        "",
    ]
    for kind in kinds[1:]:
        lines += [
            f"* {kind}: `{verdict.function}`: {_line(verdict.reason)}" for verdict in usable if verdict.kind == kind
        ]
    return "\n".join(lines) + "\n"


def _line(reason: str) -> str:
    first = reason.strip().splitlines()[0] if reason.strip() else ""
    return first if len(first) <= 160 else first[:157] + "..."
