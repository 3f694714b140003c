"""What is true of a program, found without tapegen: its outcome in plain Python, and differences with two steps."""

from __future__ import annotations

import copy
import dataclasses
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.grown.program import Kept, Loaded, load, unload
from tests.grown.values import is_real, leaves

STEPS = (1e-3, 2.5e-4)
NARROW_STEPS = (4e-2, 1e-2)  # in single precision, where smaller ones drown in rounding
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
AGREE = 1e-5  # differences with two steps; what differs more is no derivative
NARROW_AGREE = 1e-3
COMPLEX_STEP = 1e-30
MOST = 14


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A structure of the same form with other leaves."""
    if isinstance(value, dict):
        return {key: rebuilt(child, change) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([rebuilt(child, change) for child in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return type(value)(**{name: rebuilt(getattr(value, name), change) for name in names})
    return change(value)


def real_leaves(value: Any) -> list[Any]:
    """The floating numbers and arrays in a structure."""
    return [leaf for leaf in leaves(value) if is_real(leaf)]


def twin(leaf: Any) -> Any:
    """The same number, or an array of the same layout in memory of its own."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    if leaf.flags.c_contiguous or leaf.flags.f_contiguous or not leaf.size:
        return leaf.copy(order="K")
    holder = leaf
    while isinstance(holder.base, np.ndarray):
        holder = holder.base
    memory = holder.copy(order="K")
    offset = leaf.__array_interface__["data"][0] - holder.__array_interface__["data"][0]
    return np.ndarray(leaf.shape, leaf.dtype, memory, offset, leaf.strides)


def copied(args: Any) -> Any:
    """Arguments that share nothing with those given."""
    return rebuilt(args, twin)


@dataclasses.dataclass
class Outcome:
    """What plain Python does."""

    value: Any
    after: tuple[Any, ...]


def wide(text: str) -> str:
    """The program in double precision."""
    for narrow, double in (("np.float32", "np.float64"), ("'f4'", "'f8'"), ("complex64", "complex128")):
        text = text.replace(narrow, double)
    return text


def widened(leaf: Any) -> Any:
    """Single precision as double."""
    if isinstance(leaf, np.ndarray) and leaf.dtype == np.float32:
        return leaf.astype(np.float64)
    return np.float64(leaf) if isinstance(leaf, np.float32) else leaf


class Reference:
    """The truth about one program.

    Attributes
    ----------
    outcome : Outcome
        Value and arguments afterwards.
    weights : list
        One for each floating leaf of the result, of its shape; the result's scalar is their product.
    slopes : list of ndarray
        For each floating leaf of the arguments the derivatives of the scalar, NaN where there is none.
    doubts : list of ndarray
        How far the slopes may be off.
    narrow : bool
        Whether some of it is in single precision, so that less is expected.
    most : int
        So many numbers of the arguments are moved.
    """

    def __init__(self, text: str, kept: Kept | None = None, most: int = MOST) -> None:
        self.is_kept, self.most = kept is not None, most
        loading = load if kept is None else kept.load
        self.loaded: Loaded = loading(text)
        double = wide(text)
        self.double = loading(double) if double != text else self.loaded
        self.args = self.loaded.arguments()
        self.narrow = double != text
        given = copied(self.args)
        self.outcome = Outcome(self.loaded.function(*given), given)
        self.outcome = copy.deepcopy(self.outcome)
        rng = random.Random(7)
        found = real_leaves(self.outcome.value)
        self.is_number = (
            len(found) == 1 and not isinstance(self.outcome.value, list | tuple | dict) and np.ndim(found[0]) == 0
        )
        self.weights = [
            np.array(
                [1.0 if self.is_number else round(rng.uniform(0.5, 1.5), 2) for _ in range(np.size(leaf))]
            ).reshape(np.shape(leaf))
            for leaf in found
        ]
        self.wrt = tuple(k for k, arg in enumerate(self.args) if real_leaves(arg))
        self.base = rebuilt(self.args, widened)
        self.steps, self.agree = STEPS, AGREE
        if self.narrow and not self._same_in_double():
            # whether an array is copied, of which type a number is, or a branch depends on the precision
            self.close(self.double)
            self.double, self.base = self.loaded, self.args
            self.steps, self.agree = NARROW_STEPS, NARROW_AGREE
        self.doubts: list[np.ndarray] = []
        self.slopes = self._slopes()

    def close(self, *programs: Loaded) -> None:
        """Forget programs, all by default, that nobody keeps."""
        for loaded in programs or (self.loaded, self.double):
            if not self.is_kept:
                unload(loaded)

    def _same_in_double(self) -> bool:
        """Whether the program in double precision does what it does as it is, but for rounding."""
        given = copied(self.base)
        try:
            found = [*leaves((self.double.function(*given), given))]
            known = [*leaves((self.outcome.value, self.outcome.after))]
            return len(found) == len(known) and all(map(alike, found, known))
        except Exception:
            return False

    def contract(self, value: Any) -> Any:
        """The sum of a result's numbers, each times its weight."""
        found = real_leaves(value)
        if len(found) != len(self.weights):
            raise ValueError("a result of another form")
        return sum(float(np.sum(leaf * weight)) for leaf, weight in zip(found, self.weights, strict=True))

    def at(self, changes: dict[int, tuple[int, float]]) -> float:
        """The scalar with some numbers moved: leaf -> (flat position, by how much)."""
        counter = iter(range(10**6))

        def moved(leaf: Any) -> Any:
            if not is_real(leaf):
                return twin(leaf)
            k = next(counter)
            fresh = twin(leaf)
            if k in changes:
                position, by = changes[k]
                if isinstance(fresh, np.ndarray):
                    fresh[np.unravel_index(position, fresh.shape)] += by
                else:
                    fresh = type(fresh)(fresh + by)
            return fresh

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.contract(self.double.function(*rebuilt(self.base, moved)))
        except Exception:
            return float("nan")

    def _slopes(self) -> list[np.ndarray]:
        found = real_leaves(self.base)
        slopes = [np.full(np.shape(leaf), np.nan) for leaf in found]
        self.doubts = [np.full(np.shape(leaf), np.nan) for leaf in found]
        places = [(k, position) for k, leaf in enumerate(found) for position in range(np.size(leaf))]
        if len(places) > self.most:
            places = random.Random(3).sample(places, self.most)
        centre = self.at({})
        for k, position in places:
            slopes[k].flat[position], self.doubts[k].flat[position] = slope_and_doubt(
                lambda by, k=k, position=position: self.at({k: (position, by)}), centre, self.steps, self.agree
            )
        return slopes

    def complex_slope(self, k: int, position: int) -> float:
        """The derivative by a complex step; NaN where the program does not take complex numbers."""
        counter = iter(range(10**6))

        def moved(leaf: Any) -> Any:
            if not is_real(leaf):
                return twin(leaf)
            turned = np.asarray(leaf, dtype=complex)
            if next(counter) == k:
                turned = turned.copy()
                turned[np.unravel_index(position, turned.shape)] += 1j * COMPLEX_STEP
            return turned if isinstance(leaf, np.ndarray) else complex(turned)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                value = self.double.function(*rebuilt(self.base, moved))
                found = [leaf for leaf in leaves(value) if np.asarray(leaf).dtype.kind in "fc"]
                return float(
                    sum(np.sum(np.imag(leaf) * w) for leaf, w in zip(found, self.weights, strict=True)) / COMPLEX_STEP
                )
        except Exception:
            return float("nan")


def alike(mine: Any, known: Any) -> bool:
    """Whether two leaves are equal but for single precision."""
    if isinstance(known, np.ndarray | np.number | float | int | complex):
        return np.shape(mine) == np.shape(known) and np.allclose(mine, known, rtol=1e-4, atol=1e-4, equal_nan=True)
    return True


def slope(at: Callable[[float], float], centre: float) -> float:
    """The derivative at 0 by differences; NaN where there is none."""
    return slope_and_doubt(at, centre)[0]


def slope_and_doubt(
    at: Callable[[float], float], centre: float, steps: Sequence[float] = STEPS, agree: float = AGREE
) -> tuple[float, float]:
    """The derivative at 0 by five-point differences with two steps, and how far it may be off.

    NaN where the two, or its two sides, disagree.
    """
    found, bends = [], []
    for step in steps:
        values = {k: at(k * step) for k in (-2, -1, 1, 2)}
        found.append(sum(values[k] * factor for k, factor in STENCIL) / step)
        bends.append((values[1] - 2 * centre + values[-1]) / step)
    scale = max(1.0, abs(found[0]))
    doubt = abs(found[0] - found[1])
    if not all(np.isfinite(found)) or doubt > agree * scale:
        return float("nan"), float("nan")
    # the slopes of the two sides differ by the kink and a multiple of the step, which two steps tell apart
    kink = (steps[0] * bends[1] - steps[1] * bends[0]) / (steps[0] - steps[1])
    if abs(kink) > agree * scale * max(1.0, abs(centre)):
        return float("nan"), float("nan")
    return (found[1] if abs(found[1]) > 1e-7 else found[0]), doubt + 1e-9 * scale * max(1.0, abs(centre))


def along(slopes: Sequence[np.ndarray], tangents: Sequence[np.ndarray]) -> float:
    """The derivative along a direction; NaN where one that it needs is missing."""
    return float(sum(np.sum(s * t) for s, t in zip(slopes, tangents, strict=True)))
