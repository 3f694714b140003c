"""Checks of the arrays of a call: written ones share no memory, gradients have the shapes of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegen.errors import AliasError, BadArgument
from tapegen.runtime.calls.call_errors import CallErrors

_SHARING_EFFORT: Any = 10_000  # to decide whether two arrays share an element (int, but stubs know 0 and -1 only)


def check_shapes(errors: CallErrors, gradients: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> None:
    """Check shapes: tapegen's gradients have those of the arguments; the gradients of a user's rule may not."""
    for var, gradient, wanted in zip(errors.program.wrt_vars(), gradients, shapes, strict=True):
        found = np.shape(gradient)
        if found != wanted:
            raise BadArgument(
                f"the gradient with respect to '{var.name}' has shape {found}, the argument {wanted}.",
                f"A rule gives cotangents of the shape of the argument or the result: see {errors.own_rules()}.",
                errors.program.lowered.function.origin,
            )


def check_written(errors: CallErrors, leaves: Sequence[Any]) -> None:
    """Refuse arrays that are written and share memory with other arguments, or among their own elements."""
    arrays = [
        (param.name, leaf)
        for param, leaf in zip(errors.program.lowered.function.params, leaves, strict=False)
        if isinstance(leaf, np.ndarray)
    ]
    for name, leaf in arrays:
        if name not in errors.program.mutated:
            continue
        for other, array in arrays:
            if other != name and _share(leaf, array):
                raise AliasError(
                    f"'{name}' is written and shares memory with '{other}'.",
                    f"Pass a copy of one of them ({other}.copy()).",
                    errors.parameter(name),
                )
        is_repeated = leaf.size > 1 and 0 in [step for n, step in zip(leaf.shape, leaf.strides, strict=True) if n > 1]
        if is_repeated and leaf.flags.writeable:
            raise AliasError(
                f"'{name}' is written, and several of its elements are the same memory.",
                f"Pass a copy ({name}.copy()).",
                errors.parameter(name),
            )


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays share an element, or that is too expensive to decide."""
    try:
        return np.shares_memory(a, b, max_work=_SHARING_EFFORT)
    except np.exceptions.TooHardError:
        return True
