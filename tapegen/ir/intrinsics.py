"""Intrinsics: marker callables that stand for Python syntax in an IR Call.

Each one computes what the syntax computes (without short-circuit), so IR can be interpreted in tests.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import logging
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from tapegen.ir.progress_bars import PROGRESS

Func = TypeVar("Func")


@dataclasses.dataclass(frozen=True)
class StandardStream:
    """`sys.stdout` or `sys.stderr` as a constant: the file that has this name when the program runs."""

    name: str


def and_(a: Any, b: Any) -> Any:
    """`a and b` (printed as such; short-circuits when run)."""
    return a and b


def or_(a: Any, b: Any) -> Any:
    """`a or b`."""
    return a or b


def ifelse(test: Any, a: Any, b: Any) -> Any:
    """`a if test else b`."""
    return a if test else b


def dim(array: Any, axis: int) -> int:
    """`array.shape[axis]`."""
    return array.shape[axis]


def shape(array: Any) -> tuple[int, ...]:
    """`array.shape`."""
    return array.shape


def dtype_of(array: Any) -> Any:
    """`array.dtype`."""
    return array.dtype


def is_c_contiguous(array: Any) -> bool:
    """`array.flags.c_contiguous`."""
    return bool(array.flags.c_contiguous)


def is_f_contiguous(array: Any) -> bool:
    """`array.flags.f_contiguous`."""
    return bool(array.flags.f_contiguous)


def item(sequence: Sequence[Any], index: int) -> Any:
    """`sequence[index]` of a tuple or a run-time list."""
    return sequence[index]


def set_item(sequence: list[Any], index: int, value: Any) -> None:
    """`sequence[index] = value` of a run-time list."""
    sequence[index] = value


def append(sequence: list[Any], value: Any) -> None:
    """`sequence.append(value)`."""
    sequence.append(value)


def pop(sequence: list[Any]) -> Any:
    """`sequence.pop()`: the last item."""
    return sequence.pop()


def new_list(*items: Any) -> list[Any]:
    """`[a, b, ...]` as a run-time list; with no items the Call's type (ListOf) gives the item type."""
    return list(items)


def zero_items(sequence: list[Any]) -> list[Any]:
    """`[np.zeros_like(item) for item in sequence]`: the first tangent of a run-time list of arrays."""
    return [np.zeros_like(item) for item in sequence]


def zeros_beside(a: np.ndarray) -> np.ndarray:
    """Zeros with the axis order and stride signs of `a`: a reshape copies both arrays or neither."""
    return np.zeros_like(a)[tuple(slice(None, None, -1 if step < 0 else 1) for step in a.strides)]


def same_start(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays start at the same address: is `a = np.ravel(b)` a view?"""
    return bool(a.ctypes.data == b.ctypes.data)


def fstring(*parts: Any) -> str:
    """`f"..."` of constant strings and values (only in messages and print)."""
    return "".join(str(part) for part in parts)


def tell(template: str, *values: Any) -> None:
    """Write a message (`loops.library.messages`); only compiled code does it so."""
    raise AssertionError("compiled code writes messages by a call of its own")


_LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")
_TELLING = frozenset({print, tell, warnings.warn, *PROGRESS, *(getattr(logging, name) for name in _LEVELS)})


def tells(func: Any) -> bool:
    """Whether a call only prints or warns: it changes nothing that the program reads."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, logging.Logger):
        return func.__name__ in _LEVELS
    return isinstance(func, Hashable) and func in _TELLING


def transpose_view(a: np.ndarray) -> np.ndarray:
    """`a.T`."""
    return a.T


def real_part(z: Any) -> Any:
    """`z.real` of a complex number or array (of an array a view)."""
    return z.real


def imaginary_part(z: Any) -> Any:
    """`z.imag` of a complex number or array (of an array a view)."""
    return z.imag


def of_parts(real: Any, imag: Any) -> Any:
    """The complex array of these parts; unlike `real + 1j * imag`, it multiplies no infinite values.

    The emitter prints it as a call of a helper function that the generated text itself defines.
    """
    z = np.empty(np.broadcast(real, imag).shape, np.result_type(real, imag, np.complex64))
    z.real, z.imag = real, imag
    return z


def sum_to(x: Any, target: Any) -> Any:
    """Sum `x` over the axes along which an array shaped as `target` was broadcast to make it.

    Created by the reverse transform where the shapes are not known to be equal; the emitter prints it as a call of a
    helper function that the generated text itself defines.
    """
    shape_ = np.shape(target)
    x = np.asarray(x)
    lead = x.ndim - len(shape_)
    x = x.sum(axis=tuple(range(lead))) if lead else x
    axes = tuple(k for k, n in enumerate(shape_) if n == 1 and x.shape[k] != 1)
    return x.sum(axis=axes, keepdims=True) if axes else x


def strong_mul(cotangent: Any, partial: Any) -> Any:
    """Strong-zero product: `cotangent * partial`, but 0 where the cotangent is 0 even if the partial is not finite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.equal(cotangent, 0.0), 0.0 * np.real(cotangent), np.multiply(cotangent, partial))[()]


def guarded(product: Any, used: Any) -> Any:
    """`product` where its value is used, 0 where a selection masked it out, even if a factor is not finite."""
    return np.where(used, product, 0.0)[()]


def exact(value: int) -> int:
    """An integer operation that raises where its result overflows 64 bits (compiled text only)."""
    return value


def grown(tape: np.ndarray) -> np.ndarray:
    """A copy with twice the capacity; the contents of the new half are undefined."""
    return np.concatenate((tape, np.empty_like(tape)))


def checkpoint_distance(segments: int, free: int) -> int:
    """How many segments after a checkpoint the next one is made, if so many are to be reversed, so many may be held.

    This is binomial checkpointing (Griewank and Walther, revolve): as few segments as possible run again.  There are at
    least two segments, of which the last one is reversed as soon as it is reached.
    """
    longest, shorter, runs = 1, 1, 0  # what can be reversed if no segment runs more often than this, and one less
    while longest < segments:
        runs += 1
        longest, shorter = longest * (free + runs) // runs, longest
    return min(shorter, segments - shorter * free // (free + runs - 1))


MOST_CHUNKS = 64
"""Largest number of chunks of a parallel loop."""


def run_chunks(function: Callable[..., None], chunks: int, *args: Any) -> None:
    """`function(chunk, chunks, *args)` for each chunk: in any order, or by several threads."""
    for chunk in range(chunks):
        function(chunk, chunks, *args)


def dots(*vectors: np.ndarray) -> tuple[Any, ...]:
    """Inner products of the first vector with the second, the third with the fourth, ... (compiled text only)."""
    return tuple(np.dot(a, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True))


def primal_as(value: Any, formula: Any) -> Any:
    """`value`, differentiated as `formula`: how a function whose rule is an expansion keeps its own primal."""
    return value


GENERATORS: dict[str, type] = {"Generator": np.random.Generator, "RandomState": np.random.RandomState}
"""The classes of generators of random numbers."""

DRAWS: frozenset[Any] = frozenset(
    value
    for kind in GENERATORS.values()
    for name, value in vars(kind).items()
    if callable(value) and not name.startswith("_")
)
"""Their methods: the first argument of a Call is the generator."""


@functools.cache
def parameters_of(draw: Any) -> tuple[str, ...]:
    """Parameter names of one of these methods."""
    return tuple(inspect.signature(draw).parameters)


BIT_GENERATORS: tuple[type, ...] = (
    *(np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64),
)
"""Bit generator classes."""


def copy_generator(generator: Any) -> Any:
    """A copy of a generator, in the same state."""
    return copy.deepcopy(generator)


def replay_draws(generator: Any, other: Any) -> None:
    """Set the state of a generator to that of the other."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = other.bit_generator.state
    else:
        generator.set_state(other.get_state(legacy=False))


MAKERS: frozenset[Any] = frozenset({np.random.default_rng, *GENERATORS.values(), *BIT_GENERATORS})
"""Functions that make a generator from a seed."""
CHANGING = DRAWS | MAKERS | {pop, copy_generator, replay_draws}
"""Functions with side effects."""


def acts(func: Func) -> Func:
    """Declare that a function has side effects which other processes see."""
    func.__tapegen_acts__ = True  # type: ignore[attr-defined]
    return func


def is_acting(func: Any) -> bool:
    """Whether other processes see what a call does: it cannot be undone, and a run cannot begin again."""
    return getattr(func, "__tapegen_acts__", False) is True


def changes(func: Any) -> bool:
    """Whether a call has side effects: it runs exactly once, in program order, and is never recomputed."""
    return isinstance(func, Hashable) and (func in CHANGING or is_acting(func))


def is_draw(func: Any) -> bool:
    """Whether a function is a method of a generator of random numbers."""
    return isinstance(func, Hashable) and func in DRAWS


def drawn_size(args: Sequence[Any], kwargs: Sequence[tuple[str, Any]], draw: Any) -> Any:
    """The argument of a draw that gives its shape; None if there is none."""
    return (dict(zip(parameters_of(draw), args, strict=False)) | dict(kwargs)).get("size")


VIEW_CALLS = frozenset(
    {
        transpose_view,
        real_part,
        imaginary_part,
        np.transpose,
        np.permute_dims,
        np.reshape,
        np.ravel,
        np.swapaxes,
        np.moveaxis,
        np.rollaxis,
        np.squeeze,
        np.expand_dims,
        np.diagonal,
        np.broadcast_to,
        np.lib.stride_tricks.sliding_window_view,
        np.flip,
        np.flipud,
        np.fliplr,
        np.rot90,
        np.real,
        np.asarray,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
        np.ascontiguousarray,
        np.matrix_transpose,
    }
)
"""Functions whose result may share memory with their first argument."""

READ_ONLY_VIEWS = frozenset(
    {np.diagonal, np.broadcast_to, np.lib.stride_tricks.sliding_window_view, real_part, imaginary_part}
)
"""Those whose view of a cotangent is read-only, or is not the cotangent of the view."""


def backward_sweep() -> None:
    """Marks the start of the backward sweep in derived text that is differentiated again."""
