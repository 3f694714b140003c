"""Callable library objects: `np.vectorize`, `itemgetter`, frozen distributions of `scipy.stats`."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from tapegen.frontend.templates import builtin_functions
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import StaticValue, dict_of, tuple_of
from tapegen.frontend.values.state import Bound


def is_function_of_library(value: Any) -> bool:
    """Whether an object is a function that a library made, or a family of them (`scipy.stats.norm`)."""
    own_class = type(value).__module__.startswith("scipy.special.")  # wraps several ufuncs
    return isinstance(value, np.vectorize) or own_class or is_distribution(value) or _is_frozen(value)


def is_distribution(value: Any) -> bool:
    """Whether an object is a distribution of `scipy.stats`, whose methods take the parameters."""
    return type(value).__module__.startswith("scipy.stats.") and hasattr(value, "freeze")


def _is_frozen(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.stats.") and is_distribution(getattr(value, "dist", None))


def call_of_library_object(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    """A call of such an object; None if it is something else."""
    if isinstance(func, np.vectorize):
        options = {"otypes": StaticValue(func.otypes)} if func.otypes else {}
        if func.signature or func.excluded:
            options["signature"] = StaticValue(func.signature)
        made = cx.call(cx, StaticValue(np.vectorize), (StaticValue(func.pyfunc),), options)
        return cx.call(cx, made, args, kwargs, hint)
    if isinstance(func, operator.itemgetter | operator.attrgetter):
        read = builtin_functions.item_of if isinstance(func, operator.itemgetter) else getattr
        wanted: tuple[Any, ...] = func.__reduce__()[1]  # type: ignore[assignment]
        parts = [cx.call(cx, StaticValue(read), (*args, StaticValue(key)), {}) for key in wanted]
        return parts[0] if len(parts) == 1 else tuple_of(parts)
    if is_distribution(func):
        return Bound(StaticValue(func), tuple(args), kwargs)
    return None


def attribute_of_distribution(cx: Context, value: Any, name: str) -> Any:
    """A method of a frozen distribution; None if the value is something else."""
    if isinstance(value, Bound) and isinstance(value.func, StaticValue) and is_distribution(value.func.value):
        return _method(cx, value.func.value, name, tuple_of(value.args), value.kwargs)
    if isinstance(value, StaticValue) and _is_frozen(value.value):
        frozen = value.value
        family = getattr(sys.modules["scipy.stats"], frozen.dist.name, frozen.dist)  # frozen ones have their own copy
        given = {key: StaticValue(part) for key, part in frozen.kwds.items()}
        return _method(cx, family, name, tuple_of(map(StaticValue, frozen.args)), given)
    return None


def _method(cx: Context, family: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Bound:
    method = StaticValue(getattr(family, name))
    return Bound(StaticValue(builtin_functions.of_distribution), (method, args, cx.new_cell(dict_of(kwargs.items()))))
