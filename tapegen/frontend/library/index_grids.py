"""Index grids `np.mgrid[...]` and `np.ogrid[...]`: coordinates from slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import is_int
from tapegen.frontend.values.pytree import StaticValue, tuple_of
from tapegen.frontend.values.state import SliceValue, known_value


def _grid(grid: Any, text: Any) -> None:
    @handles(grid, takes="*key")
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if not all(isinstance(part, SliceValue) and part.hi is not None for part in args):
            raise cx.refusal(
                NotDifferentiable, "a grid is made of slices with an end.", "Write them out: np.mgrid[:rows, :columns]."
            )
        parts = [(part.lo or StaticValue(0), part.hi, part.step or StaticValue(1)) for part in args]
        real = not all(is_int(bound) for part in parts for bound in part)
        axes = [_axis(cx, *part, real) for part in parts]
        return axes[0] if len(axes) == 1 else cx.call(cx, StaticValue(text), [tuple_of(axes)], {})


def _axis(cx: Context, start: Any, stop: Any, step: Any, real: bool) -> Any:
    known = known_value(step)
    if isinstance(known, complex):
        return cx.call(cx, StaticValue(builtin_functions.axis_of_size), [start, stop, StaticValue(int(abs(known)))], {})
    return cx.call(cx, StaticValue(builtin_functions.axis_by_step), [start, stop, step, StaticValue(real)], {})


_grid(np.mgrid, builtin_functions.dense_grid)
_grid(np.ogrid, builtin_functions.open_grid)
