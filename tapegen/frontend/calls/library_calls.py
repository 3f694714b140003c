"""Library calls: argument normalization (static arguments, conversion to arrays), and lookup of the rule."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tapegen.errors import BadArgument, MissingRule, NotDifferentiable, TapegenError
from tapegen.frontend.calls.opaque_calls import call_at_entry, call_foreign
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.library.output_arrays import check_type, drops_output, write_result
from tapegen.frontend.library.ufunc_at import apply_at
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.templates import ufunc_methods
from tapegen.frontend.values.captures import captured_shape
from tapegen.frontend.values.constant_shapes import extent
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import operand, run_list_of, static, struct_of, type_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import Captured, Ref, known_value
from tapegen.ir.printer import callable_text
from tapegen.ir.types import Array, Scalar, is_floating, python_class
from tapegen.rules.numpy import decompositions
from tapegen.rules.registry import rule_of
from tapegen.rules.rule import Rule, signature_of

_PACKAGES = frozenset({"numpy", "math", "cmath", "scipy", "operator", "_operator"})
_STATIC_NAMES = frozenset(
    "axis axes keepdims dtype order ord mode axis1 axis2 side kind full_matrices UPLO compute_uv indexing source "
    "destination indices_or_sections copy casting hermitian endpoint retstep sparse method subok like trim edge_order "
    "return_index return_inverse return_counts return_indices assume_unique rowvar bias ddof density full increasing "
    "include_initial equal_nan sorted trans type".split()
)
"""Parameters that must be compile-time constants, as they determine types or the generated code."""
_STATIC_COUNTS = {
    np.diff: "n",
    np.linalg.matrix_power: "n",
    np.vander: "N",
    np.expand_dims: "axis",
    np.rot90: "k",
    np.linalg.cond: "p",
}
_POSITIONAL: dict[Any, tuple[str, ...]] = {
    np.concatenate: ("arrays", "axis", "out"),
    np.array: ("object", "dtype"),
    np.asarray: ("a", "dtype"),
    np.zeros: ("shape", "dtype"),
    np.empty: ("shape", "dtype"),
    np.arange: ("start", "stop", "step", "dtype"),
    np.dot: ("a", "b", "out"),
    np.where: ("condition", "x", "y"),
    np.inner: ("a", "b"),
    np.vdot: ("a", "b"),
    np.einsum: ("subscripts",),
}
_SORTS = frozenset({None, "quicksort", "mergesort", "heapsort", "stable"})
HOW: dict[Any, dict[str, frozenset[Any] | None]] = {
    np.einsum: {"optimize": None},
    np.sort: {"kind": _SORTS, "stable": frozenset({None, False, True})},
    np.partition: {"kind": frozenset({"introselect"})},
}
"""Keywords that affect how a result is computed, not its value, with accepted values (None: any)."""
_HOW_ANYWHERE: dict[str, frozenset[Any] | None] = {
    "workers": frozenset({None, -1, *range(1, 65)}),
    "subok": None,  # subclasses of arrays are not supported
    "plan": frozenset({None}),
    "like": frozenset({None}),
    "device": frozenset({None, "cpu"}),
    **dict.fromkeys(("overwrite_x", "overwrite_input", "overwrite_a", "overwrite_b"), frozenset({False})),
}
"""The same, for every function that has such a parameter."""
_SEQUENCES = frozenset(
    {"arrays", "tup", "object", "xi", "shape", "new_shape", "reps", "choicelist", "condlist", "choices", "l_and_u"}
)
"""Parameters that take a sequence as a sequence; a list anywhere else becomes an array."""
_OF_ARRAYS = frozenset({"arrays", "tup", "condlist", "choicelist"})
"""Parameters that take a sequence of arrays: a list among its items becomes an array."""
_ANY_NUMBER = frozenset({np.meshgrid, np.broadcast_arrays, np.einsum, np.atleast_1d, np.atleast_2d, np.atleast_3d})
"""Functions of any number of arrays, without named parameters."""
_SHAPES = frozenset({"shape", "new_shape", "newshape", "reps"})
"""Sequences whose lengths determine the rank of the result."""
_KEPT = (
    _SEQUENCES
    | _STATIC_NAMES
    | {"s", "shift", "pad_width", "multi_index", "dims", "operands", "axes", "block", "repeats", "bins", "range"}
)


def is_library(func: Any) -> bool:
    """Whether a callable belongs to NumPy, scipy, math or operator."""
    if isinstance(func, np.ufunc):
        return True
    owner = getattr(func, "__self__", None)
    module = getattr(func, "__module__", None) or type(owner).__module__
    if isinstance(owner, np.ufunc):
        return True
    if isinstance(owner, (np.random.Generator, np.random.RandomState)):
        return False
    return isinstance(module, str) and module.partition(".")[0] in _PACKAGES


def call_library(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None = None) -> Any:
    """A call of a library function."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, np.ufunc):
        return _ufunc_method(cx, owner, func.__name__, args, kwargs, hint)
    args, kwargs = _outputs_by_name(cx, func, args, kwargs)
    _refuse_overwriting(cx, func, args, kwargs)
    args = _without_how(func, args)
    kwargs = {name: value for name, value in kwargs.items() if not _is_how(func, name, value)}
    if isinstance(func, np.ufunc) and func.nout == 1 and known_value(kwargs.get("order")) in ("C", "F"):
        return _in_order(cx, func, args, kwargs, hint)
    where = kwargs.pop("where", None)
    if where is not None and known_value(where) is True:
        where = None
    rule = rule_of(func)
    own = rule is not None and rule.body is not None and "initial" in signature_of(rule.body).parameters
    initial = None if own else kwargs.pop("initial", None)
    if where is not None and isinstance(func, np.ufunc):
        return _partly(cx, func, args, kwargs, where)
    if where is not None or initial is not None:
        return _some(cx, func, args, kwargs, where, initial, hint)
    casting: Any = "same_kind"
    if isinstance(func, np.ufunc):
        casting = known_value(kwargs.get("casting", StaticValue(casting)))
        if "dtype" in kwargs or "casting" in kwargs:
            args = _cast(cx, func, args, kwargs.pop("dtype", StaticValue(None)), kwargs.pop("casting", None))
    elif func in _TOLD and not kwargs.keys().isdisjoint(("dtype", "casting")):
        args, kwargs = _convert_to_dtype(cx, func, args, kwargs)
    out = kwargs.pop("out", None)
    if out is not None and drops_output(cx, func, {**dict(zip(_names_of(func), args)), **kwargs}):
        reason = f"np.fft.{func.__name__} leaves its 'out=' as it is."
        raise cx.refusal(NotDifferentiable, reason, "Assign the result: a[:] = ...")
    if func is np.clip:
        args = _bounds_of_clip(cx, args, kwargs)
    names = _names_of(func)
    while names[len(args) : len(args) + 1] and _is_operand(names[len(args)], kwargs):
        args.append(kwargs.pop(names[len(args)]))  # later passes expect arrays and shapes by position
    other = "array" if func in _ANY_NUMBER else ""
    args = [_prepared(cx, func, names[k] if k < len(names) else other, arg) for k, arg in enumerate(args)]
    kwargs = {name: _prepared(cx, func, name, value) for name, value in kwargs.items()}
    if rule is None and out is None:
        return call_foreign(cx, func, args, kwargs, hint)
    if rule is not None and rule.kind == "expands" and out is None and _is_refused(rule, args, kwargs):
        made = call_at_entry(cx, func, args, kwargs)
        if made is not None:
            return made
    result = emit_call(cx, func, args, kwargs, hint if out is None else None)
    return result if out is None else write_result(cx, func, out, result, (*args, *kwargs.values()), casting)


def _in_order(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    """`np.sin(x, order="F")`: a copy in that order, unless the array for the result has one."""
    order = kwargs.pop("order")
    result = call_library(cx, func, args, kwargs, hint)
    type_ = type_of(result)
    if "out" in kwargs or not isinstance(type_, Array) or type_.rank < 2 or type_.layout == known_value(order):
        return result
    if known_value(order) == "C":
        return call_library(cx, np.copy, [result], {}, hint)  # printed as a method, whose result is in C order
    return call_library(cx, np.array, [result], {"order": order}, hint)


def _refuse_overwriting(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuse `overwrite_a=True`, which leaves unspecified contents in an argument."""
    for name, value in (*zip(_names_of(func), args), *kwargs.items()):
        if name.startswith("overwrite_") and known_value(value) is not False:
            raise cx.refusal(
                NotDifferentiable, f"{name}=True of {callable_text(func)} writes into an argument.", "Leave it out."
            )


def _is_refused(rule: Rule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether all arguments of a call are known, and the formula of the function refuses them."""
    assert isinstance(rule.body, FunctionType)
    values = [known_value(arg) for arg in args]
    named = {name: known_value(value) for name, value in kwargs.items()}
    if any(value is UNKNOWN for value in (*values, *named.values())):
        return False
    try:
        with np.errstate(all="ignore"):
            rule.body(*values, **named)
    except TapegenError:
        return True
    except Exception:  # the function raises it too
        return False
    return False


def _bounds_of_clip(cx: Context, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of `np.clip` by position: `a_min` and `a_max` are given both, or neither, as `min` and `max`."""
    names = ("a", "a_min", "a_max")
    bounds = dict(zip(names, args, strict=False))
    for name in names:
        if name in bounds and name in kwargs:
            cx.raise_(TypeError, f"clip() got multiple values for argument '{name}'")
        if name in kwargs:
            bounds[name] = kwargs.pop(name)
    if "a" not in bounds:
        cx.raise_(TypeError, "clip() missing 1 required positional argument: 'a'")
    array = bounds.pop("a")
    named = {f"a_{name}": kwargs.pop(name) for name in ("min", "max") if name in kwargs}
    if len(bounds) == 1:
        missing = "a_max" if "a_min" in bounds else "a_min"
        cx.raise_(TypeError, f"clip() missing 1 required positional argument: '{missing}'")
    if bounds and named:
        both = "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden."
        cx.raise_(ValueError, both)
    return [array, *((bounds | named).get(name, StaticValue(None)) for name in ("a_min", "a_max"))]


def _outputs_by_name(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict]:
    """`np.sum(x, 0, None, out)`: turn `out` and later positional arguments into keywords, and drop None."""
    if isinstance(func, np.ufunc):
        given = args[func.nin :]
        if given and "out" in kwargs:
            cx.raise_(TypeError, "cannot specify 'out' as both a positional and keyword argument")
        if given:
            args, kwargs = args[: func.nin], {**kwargs, "out": given[0] if len(given) == 1 else tuple_of(given)}
    else:
        names = _names_of(func)
        place = names.index("dtype" if func is np.trace else "out") if "out" in names else len(args)
        if place < len(names) < len(args):
            cx.raise_(
                TypeError, f"{func.__name__}() takes {len(names)} positional arguments but {len(args)} were given"
            )
        twice = [name for name in names[place : len(args)] if name in kwargs]
        if twice:
            cx.raise_(TypeError, f"{func.__name__}() got multiple values for argument '{twice[0]}'")
        args, kwargs = args[:place], {**dict(zip(names[place:], args[place:])), **kwargs}
    if "out" in kwargs and known_value(kwargs["out"]) is None:
        del kwargs["out"]
    return args, kwargs


def _is_operand(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether a keyword gives an array or a shape."""
    return name in kwargs and (name in ("shape", "fill_value") or _is_array(kwargs[name]))


def _is_array(value: Any) -> bool:
    return isinstance(value, Leaf) and (isinstance(value.type, Array) or is_floating(value.type))


def _without_how(func: Any, args: list[Any]) -> list[Any]:
    """Positional arguments without the last ones that affect only how the result is computed."""
    names = _names_of(func)
    while 1 < len(args) <= len(names) and _is_how(func, names[len(args) - 1], args[-1]):
        args = args[:-1]
    return args


@functools.cache
def _is_how(func: Any, name: str, value: Any) -> bool:
    """Whether a keyword affects only how the result is computed."""
    if name == "order" and isinstance(func, np.ufunc):
        return bool(known_value(value) == "K")  # the default
    table = HOW.get(func, {})
    if name not in table:
        table = _HOW_ANYWHERE
        parameters = ("subok",) if isinstance(func, np.ufunc) else _parameters_of(func)
        if name not in table or name not in parameters:
            return False
    values = table[name]
    return values is None or known_value(value) in values


def _parameters_of(func: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(func).parameters
    except (TypeError, ValueError):
        return {}


def _names_of(func: Any) -> tuple[str, ...]:
    """Names of the positional parameters."""
    if func in _POSITIONAL:
        return _POSITIONAL[func]
    if isinstance(func, np.ufunc):
        return tuple(f"x{k}" for k in range(func.nin))
    kinds = inspect.Parameter
    parameters = _parameters_of(func).values()
    return tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))


def _prepared(cx: Context, func: Any, name: str, value: Any) -> Any:
    """An argument in the form in which the function takes it."""
    value = _rows_as_arrays(cx, value)
    if name in _STATIC_NAMES or _STATIC_COUNTS.get(func) == name:
        known = static(cx, value, f"'{name}' of {callable_text(func)}")
        if name == "dtype" and known is not None:
            if isinstance(known, (tuple, list)) or np.dtype(known).fields is not None:
                raise cx.refusal(
                    BadArgument, "arrays of records have no derivatives.", "Use one array for each field, or a dict."
                )
            return StaticValue(np.dtype(known).type)
        return StaticValue(known)
    type_ = type_of(value)
    if name in _SHAPES and isinstance(type_, Array) and type_.rank == 1:
        array = Leaf(operand(cx, value))
        found = captured_shape(cx, array.expr)
        size = extent(cx, array.expr, 0) if found is None else StaticValue(found[0])
        count = static(cx, size, f"the length of '{name}' of {callable_text(func)}")
        return tuple_of(load_place(cx, Place(array, [StaticValue(k)])) for k in range(count))
    if name in _OF_ARRAYS and _is_sequence(cx, value):
        content = struct_of(cx, value)
        if content is not None and any(_is_sequence(cx, item) for item in content.children):
            return tuple_of(_prepared(cx, func, "array", item) for item in content.children)
    if name and name not in _KEPT and _is_sequence(cx, value):
        if any(isinstance(known_value(part), str) for part in getattr(struct_of(cx, value), "children", ())):
            return StaticValue(static(cx, value, f"'{name}' of {callable_text(func)}"))
        return emit_call(cx, np.array, (value,))
    return value


def _rows_as_arrays(cx: Context, value: Any) -> Any:
    """A list of growing lists, as a list of arrays."""
    content = struct_of(cx, value)
    if content is None or content.kind not in ("tuple", "list"):
        return value
    rows = [
        emit_call(cx, np.array, (row,)) if run_list_of(cx, row) is not None else _rows_as_arrays(cx, row)
        for row in content.children
    ]
    return value if all(map(operator.is_, rows, content.children)) else tuple_of(rows)


def _is_sequence(cx: Context, value: Any) -> bool:
    """Whether a value is a tuple or a list, of fixed length or growing."""
    if not isinstance(value, (Struct, Ref, Captured)) or type_of(value) is not None:
        return False
    content = struct_of(cx, value)
    return run_list_of(cx, value) is not None or (content is not None and content.kind in ("tuple", "list"))


# ---- methods of ufuncs ---------------------------------------------------------------------------------------------

_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_SCANS: dict[Any, Any] = {np.add: np.cumsum, np.multiply: np.cumprod}
_OF_DTYPE = {np.sum, np.prod, np.cumsum, np.cumprod}
_FOLDS = {
    "reduce": ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    "accumulate": ("array", "axis", "dtype", "out"),
    "reduceat": ("array", "indices", "axis", "dtype", "out"),
}
"""Parameters of ufunc methods."""


def _ufunc_method(
    cx: Context, ufunc: np.ufunc, name: str, args: list[Any], kwargs: dict[str, Any], hint: str | None
) -> Any:
    """`np.add.reduce`, `np.add.at`, `np.multiply.outer`, ..."""
    if name == "at" and len(args) == 1 + ufunc.nin and ufunc.nout == 1 and not kwargs:
        return apply_at(cx, ufunc, args[0], args[1], tuple(args[2:]))
    if name in _FOLDS and ufunc.nin == 2 and ufunc.nout == 1:
        return _folded(cx, ufunc, name, dict(zip(_FOLDS[name], args)) | kwargs, hint)
    if name == "outer" and len(args) == 2:
        a, b = (_as_array(cx, arg, of_numbers=True) for arg in args)
        rank = getattr(type_of(b), "rank", 0)
        for _ in range(rank):
            a = emit_call(cx, np.expand_dims, (a, StaticValue(-1)))
        return call_library(cx, ufunc, [a, b], kwargs, hint)
    raise _no_method(ufunc, name, cx)


def _folded(cx: Context, ufunc: np.ufunc, name: str, named: dict[str, Any], hint: str | None) -> Any:
    """`reduce`, `accumulate` and `reduceat`: as the equivalent function, else inlined from a template."""
    named.setdefault("axis", StaticValue(0))  # by default a ufunc reduces the first axis, the function all of them
    array = named.pop("array")
    table = {"reduce": _REDUCTIONS, "accumulate": _SCANS}.get(name, {})
    if "dtype" in named and (ufunc not in table or table[ufunc] not in _OF_DTYPE):
        array = _converted(cx, _as_array(cx, array), named.pop("dtype"))
    if ufunc in table:
        return call_library(cx, table[ufunc], [array], named, hint)
    out = named.pop("out", None)
    named = {key: value for key, value in named.items() if key != "where" or known_value(value) is not True}
    named = {key: value for key, value in named.items() if key == "axis" or known_value(value) is not None}
    if not named.keys() <= {"axis", "keepdims", "indices"}:
        raise _no_method(ufunc, name, cx, " with these keywords")
    first: Any = StaticValue(ufunc)
    written: Any = ufunc_methods.scanned if name == "accumulate" else ufunc_methods.folded
    if name == "reduce" and ufunc.identity is not None:
        named["identity"] = StaticValue(ufunc.identity)
    if name == "reduceat":
        named["indices"] = _as_array(cx, named["indices"])
        written = ufunc_methods.folded_between
        if ufunc in _REDUCTIONS:
            first, written = StaticValue(_REDUCTIONS[ufunc]), ufunc_methods.reduced_between
    if name != "accumulate" and ufunc not in _REDUCTIONS and not _folds(ufunc):
        reason = f"on this processor NumPy's vectorized np.{ufunc.__name__}.{name} skips elements."
        raise cx.refusal(NotDifferentiable, reason, "Write it as a loop.")
    result = cx.call(cx, StaticValue(written), (first, _in_dtype_of(cx, ufunc, array)), named)
    if out is None or known_value(out) is None:
        return result
    return write_result(cx, getattr(ufunc, name), out, result)


@functools.cache
def _folds(ufunc: np.ufunc) -> bool:
    """Whether `ufunc.reduce` applies the function to every element: loops that NumPy vectorizes (2.4) may not."""
    numbers = np.linspace(0.7, 1.2, 9)
    with np.errstate(all="ignore"):
        return bool(np.isclose(ufunc.reduce(numbers), functools.reduce(ufunc, numbers), equal_nan=True))


def _no_method(ufunc: np.ufunc, name: str, cx: Context, form: str = "") -> TapegenError:
    return cx.refusal(
        MissingRule,
        f"np.{ufunc.__name__}.{name} has no derivative rule{form}.",
        "Write it as a loop, or with np.sum, np.cumsum.",
    )


def _as_array(cx: Context, value: Any, of_numbers: bool = False) -> Any:
    """A list as an array; where asked for, also a number of Python, which then counts in the type of results."""
    type_ = type_of(value)
    is_array = type_ is not None and not (of_numbers and isinstance(type_, Scalar) and type_.python)
    return value if is_array else emit_call(cx, np.array, (value,))


def _in_dtype_of(cx: Context, ufunc: np.ufunc, value: Any) -> Any:
    """An array in the dtype in which a ufunc accumulates: bool for logical functions, float for quotients."""
    array = _as_array(cx, value)
    type_ = type_of(array)
    if not isinstance(type_, Array):
        return array
    dtype = np.dtype(type_.dtype)
    if ufunc in (np.add, np.multiply) and dtype.kind in "biu":
        kept = np.result_type(dtype, np.uintp if dtype.kind == "u" else np.intp)
    else:
        try:
            kept = ufunc.resolve_dtypes((None, dtype, None), reduction=True)[0]
        except TypeError:  # a ufunc whose result cannot be its operand: NumPy refuses it
            return array
    return array if kept == dtype else call_library(cx, np.astype, [array, StaticValue(kept.type)], {})


# ---- keywords: where, initial, dtype -------------------------------------------------------------------------------

_IDENTITIES: dict[Any, Any] = {
    **{np.sum: 0.0, np.prod: 1.0, np.any: False, np.all: True},
    **dict.fromkeys((np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd), np.nan),
}
"""The value that replaces a masked-out element in a reduction."""
_JOINED: dict[Any, Any] = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.max: np.maximum,
    np.min: np.minimum,
    np.amax: np.maximum,
    np.amin: np.minimum,
    np.nansum: np.add,
    np.nanprod: np.multiply,
    np.nanmax: np.fmax,
    np.nanmin: np.fmin,
}
"""How an initial value is combined with the result of a reduction."""
_EXTREMES = frozenset({np.max, np.min, np.nanmax, np.nanmin})
"""Reductions that have no value for empty arrays."""
_AVERAGES: dict[Any, Any] = {
    np.mean: ufunc_methods.mean_where,
    np.var: ufunc_methods.var_where,
    np.std: ufunc_methods.std_where,
}
_TOLD = frozenset({np.trace, np.linalg.trace, np.concatenate, np.stack, np.vstack, np.hstack, np.einsum})
"""Functions that convert their arguments to a given dtype."""


def _partly(cx: Context, func: np.ufunc, args: list[Any], kwargs: dict[str, Any], where: Any) -> Any:
    """`np.sqrt(x, where=..., out=y)`: elsewhere the array keeps its elements."""
    out = kwargs.pop("out", None)
    if not isinstance(out, Leaf) or not isinstance(out.type, Array):
        raise cx.refusal(
            NotDifferentiable,
            f"the result of {callable_text(func)} is undefined where 'where=' is false.",
            "Pass out= as well, or use np.where(...).",
        )
    casting = known_value(kwargs.get("casting", StaticValue("same_kind")))
    value = call_library(cx, func, args, kwargs)
    check_type(cx, func, out.type, value, casting)
    return write_result(cx, func, out, call_library(cx, np.where, [where, value, out], {}), casting="unsafe")


def _some(
    cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], where: Any, initial: Any, hint: str | None
) -> Any:
    """A reduction of the elements where a mask holds, starting from an initial value."""
    out = kwargs.pop("out", None)
    result = _some_of(cx, func, args, kwargs, where, initial, hint if out is None else None)
    return result if out is None else write_result(cx, func, out, result, args)


def _some_of(
    cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], where: Any, initial: Any, hint: str | None
) -> Any:
    if where is not None and func in _AVERAGES and initial is None:
        named = dict(zip(("a", "axis", "dtype"), args, strict=False)) | kwargs
        if "correction" in named:
            named["ddof"] = named.pop("correction")
        if named.keys() <= {"a", "axis", "dtype", "ddof", "keepdims"}:
            if "dtype" in named:
                named["a"] = _converted(cx, named["a"], named.pop("dtype"))
            return cx.call(cx, StaticValue(_AVERAGES[func]), (), {**named, "where": where})
    instead = StaticValue(_IDENTITIES[func]) if func in _IDENTITIES else initial
    if (
        (func not in _JOINED and func not in _IDENTITIES)
        or instead is None
        or (initial is not None and func not in _JOINED)
    ):
        keyword = "initial" if where is None else "where"
        raise cx.refusal(
            NotDifferentiable, f"'{keyword}=' of {callable_text(func)} is not supported here.", "Use np.where(...)."
        )
    if where is not None:
        args = [call_library(cx, np.where, [where, args[0], instead], {}), *args[1:]]
    named = dict(zip(("a", "axis"), args, strict=False)) | kwargs
    if initial is not None and func in _EXTREMES and named.keys() <= {"a", "axis", "keepdims"}:
        first = StaticValue(func), StaticValue(_JOINED[func]), _as_array(cx, named.pop("a")), initial
        return cx.call(cx, StaticValue(decompositions.extreme_from), first, named)
    result = call_library(cx, func, args, kwargs, None if initial is not None else hint)
    if initial is not None:
        result = call_library(cx, _JOINED[func], [result, initial], {}, hint)
    return result


def _convert_to_dtype(
    cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """`np.stack(arrays, dtype=...)`: arrays in that dtype, where NumPy converts them to it."""
    dtype = static(cx, kwargs.get("dtype", StaticValue(None)), "the dtype")
    casting = known_value(kwargs.get("casting", StaticValue("same_kind")))
    count = len(args) if func is np.einsum else 1

    def converts(value: Any) -> bool:
        if isinstance(value, Struct):
            return all(map(converts, value.children))
        type_ = type_of(value)
        return not isinstance(type_, Array) or np.can_cast(type_.dtype, dtype, casting)

    def converted(value: Any) -> Any:
        if _is_sequence(cx, value):
            content = struct_of(cx, value)
            return value if content is None else tuple_of(map(converted, content.children))
        return _converted(cx, value, StaticValue(dtype)) if type_of(value) is not None else value

    if casting not in ("safe", "same_kind", "unsafe") or (dtype is not None and not all(map(converts, args[:count]))):
        return args, kwargs
    if dtype is not None:
        args = [*map(converted, args[:count]), *args[count:]]
    return args, {name: value for name, value in kwargs.items() if name not in ("dtype", "casting")}


def _cast(cx: Context, func: np.ufunc, args: list[Any], dtype: Any, casting: Any) -> list[Any]:
    """The operands of a ufunc, converted to those that give the requested dtype where its casting rule allows that."""
    args = [_as_array(cx, arg) for arg in args]
    known = static(cx, dtype, "the dtype")
    given: list[Any] = []
    for kind in map(type_of, args):
        assert isinstance(kind, (Array, Scalar))
        python = isinstance(kind, Scalar) and kind.python and kind.dtype != "bool"
        given.append(python_class(kind) if isinstance(kind, Scalar) and python else np.dtype(kind.dtype))
    told: dict[str, Any] = {}
    if known is not None:
        told["signature"] = (None,) * func.nin + (np.dtype(known),) * func.nout
    how: Any = "same_kind" if casting is None else static(cx, casting, "'casting'")
    try:
        resolved = func.resolve_dtypes((*given, *(None,) * func.nout), casting=how, **told)
    except (TypeError, ValueError) as error:
        cx.raise_(type(error) if type(error) is ValueError else TypeError, str(error))
    if known is None:
        return args
    return [_converted(cx, arg, StaticValue(kind)) for arg, kind in zip(args, resolved, strict=False)]


def _converted(cx: Context, value: Any, dtype: Any) -> Any:
    """An operand, converted to the dtype in which a ufunc computes."""
    known = static(cx, dtype, "the dtype")
    if known is None:
        return value
    if isinstance(value, Leaf) and isinstance(value.type, Array):
        return call_library(cx, np.astype, [value, StaticValue(np.dtype(known).type)], {})
    return cx.call(cx, StaticValue(np.dtype(known).type), (value,), {})
