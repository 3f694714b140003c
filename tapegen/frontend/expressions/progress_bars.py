"""Loops over `tqdm(items)` and `trange(n)`: loops over the items, which tell a progress bar how far they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tapegen.errors import NotDifferentiable
from tapegen.frontend.expressions.iterables import ENDLESS, series_of
from tapegen.frontend.expressions.strings import standard_stream
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import static
from tapegen.frontend.values.pytree import StaticValue
from tapegen.frontend.values.state import Series


def shows_progress(func: Any) -> bool:
    """Whether a call makes a progress bar of tqdm."""
    tqdm = sys.modules.get("tqdm.std")
    if tqdm is None:
        return False
    is_range = str(getattr(func, "__module__", "")).partition(".")[0] == "tqdm"
    is_range = is_range and getattr(func, "__name__", "") in ("trange", "tnrange")
    return is_range or (isinstance(func, type) and issubclass(func, tqdm.tqdm))


def with_progress(cx: Context, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Series:
    """The items of a bar, with the options of the bar."""
    options = dict(kwargs)
    if isinstance(func, type):
        items = args[0] if args else options.pop("iterable", None)
        extra = args[1:]
    else:
        items, extra = cx.call(cx, StaticValue(range), tuple(args), {}), ()
        func = getattr(sys.modules[func.__module__], "tqdm", sys.modules["tqdm.std"].tqdm)
    if items is None or extra:
        raise cx.refusal(
            NotDifferentiable,
            "a progress bar without a loop of its own is not supported.",
            "Write the bar into the loop, with options by name: for i in tqdm(range(n), desc='fit').",
        )
    series = series_of(cx, items)
    given = {
        name: standard_stream(value) or static(cx, value, f"'{name}' of a progress bar")
        for name, value in options.items()
    }
    if given.get("disable"):
        return series
    given["bar"] = f"{func.__module__}:{func.__qualname__}"
    given.setdefault("total", None if series.length == ENDLESS else series.length)
    return replace(series, bar=tuple(given.items()))
