"""Keyword variants of NumPy calls that no rule covers, decomposed into other calls."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.handlers import PASSED_ON, handles
from tapegen.frontend.calls.library_calls import call_library
from tapegen.frontend.calls.resolve import call_value
from tapegen.frontend.expressions.subscripts import Place, load_place
from tapegen.frontend.library.builtins import Args, Hint, Kwargs
from tapegen.frontend.library.output_arrays import write_result
from tapegen.frontend.lowering.emit import emit_call
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import operand, static, struct_of, type_of
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import SliceValue, known_value
from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const
from tapegen.ir.types import BOOL, INT, Array, is_complex, is_floating
from tapegen.rules.linalg import contractions, factorizations
from tapegen.rules.numpy import decompositions, polynomials

_PADDED = frozenset({"mean", "median", "maximum", "minimum", "linear_ramp"})


def is_decomposed(mode: Any) -> bool:
    """Whether `np.pad` has no rule for a mode and is decomposed."""
    return isinstance(mode, str) and mode in _PADDED


@handles(np.pad, takes=PASSED_ON)
def _pad(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    mode = args[2] if len(args) > 2 else kwargs.get("mode", StaticValue("constant"))
    type_ = type_of(args[0]) if args else None
    how = known_value(mode)
    if type_ is not None and is_floating(type_):
        if is_decomposed(how) or (how == "constant" and _varies(kwargs.get("constant_values"))):
            return cx.call(cx, StaticValue(decompositions.padded), tuple(args), kwargs)
        turned = known_value(kwargs.get("reflect_type")) if how in ("reflect", "symmetric") else None
        if turned == "even":
            kwargs = {name: value for name, value in kwargs.items() if name != "reflect_type"}
        if turned == "odd":
            named = {name: value for name, value in kwargs.items() if name != "reflect_type"}
            return cx.call(cx, StaticValue(decompositions.padded_odd), tuple(args), named)
    return call_library(cx, np.pad, args, kwargs, hint)


def _varies(value: Any) -> bool:
    """Whether a value, or one of a tuple, is a float that the program computes."""
    if isinstance(value, Struct):
        return any(map(_varies, value.children))
    return isinstance(value, Leaf) and is_floating(value.type) and known_value(value) is UNKNOWN


@handles(np.diff, takes=PASSED_ON)
def _diff(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    times = args[1] if len(args) > 1 else kwargs.get("n", StaticValue(1))
    if known_value(times) == 0 and args and isinstance(args[0], Leaf) and isinstance(args[0].type, Array):
        return args[0]  # NumPy returns the array itself, and ignores other arguments
    if len(args) > 3 or "prepend" in kwargs or "append" in kwargs:
        given = [value if type_of(value) is not None else emit_call(cx, np.array, (value,)) for value in args[3:]]
        return cx.call(cx, StaticValue(decompositions.differences), (*args[:3], *given), kwargs)
    return call_library(cx, np.diff, args, kwargs, hint)


@handles(np.reshape, takes=PASSED_ON)
def _reshape(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`order` as a keyword: the call is printed as a method, which takes sizes by position."""
    if len(args) > 2:
        args, kwargs = args[:2], {"order": args[2], **kwargs}
    copy = known_value(kwargs["copy"]) if "copy" in kwargs and args else False
    if copy is True or copy is None:
        named = {name: value for name, value in kwargs.items() if name != "copy"}
        x = call_library(cx, np.copy, args[:1], {}) if copy else args[0]
        return call_library(cx, np.reshape, [x, *args[1:]], named, hint)
    return call_library(cx, np.reshape, args, kwargs, hint)


@handles(np.poly, takes="seq_of_zeros")
def _poly(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    (given,) = (*args, *kwargs.values())
    if isinstance(type_of(given), Array):
        none = Call(operator.eq, (Call(np.size, (operand(cx, given),), (), INT), Const(0)), (), BOOL)
        cx.raise_if(none, ValueError, "np.poly of no zeros is a number, not an array")
    return call_library(cx, np.poly, args, kwargs, hint)


@handles(np.polyfit, takes="x, y, deg, rcond=None, full=False, w=None, cov=False")
def _polyfit(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    cov = args[6] if len(args) > 6 else kwargs.get("cov", StaticValue(False))
    if known_value(cov) is not False:
        reason = "np.polyfit(cov=) has no rule."
        raise cx.refusal(NotDifferentiable, reason, "Leave cov out, and compute the covariance from np.vander.")
    named = {name: value for name, value in kwargs.items() if name != "cov"}
    return call_library(cx, np.polyfit, args[:6], named, hint)


def _at_many(func: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        type_ = type_of(args[1] if len(args) > 1 else kwargs.get("q"))
        if not isinstance(type_, Array) or type_.rank < 2:
            return call_library(cx, func, args, kwargs, hint)
        out = kwargs.pop("out", None)
        found = cx.call(cx, StaticValue(decompositions.at_many), (StaticValue(func), *args), kwargs)
        return found if out is None or known_value(out) is None else write_result(cx, func, out, found, args)


_at_many(np.quantile)
_at_many(np.percentile)
_at_many(np.nanquantile)
_at_many(np.nanpercentile)


def _at_places(func: Any, parameters: str, at_slice: Any) -> None:
    @handles(func, takes=parameters)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if isinstance(args[1], SliceValue):
            return cx.call(cx, StaticValue(at_slice), tuple(args), kwargs)
        return call_library(cx, func, args, kwargs, hint)


_at_places(np.delete, "arr, obj, axis=None", decompositions.deleted)
_at_places(np.insert, "arr, obj, values, axis=None", decompositions.inserted)


@handles(np.nan_to_num, takes="x, copy=True, nan=0.0, posinf=None, neginf=None")
def _nan_to_num(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`np.nan_to_num`; with `copy=False` it stores into its argument."""
    named = dict(zip(("x", "copy", "nan", "posinf", "neginf"), args, strict=False)) | kwargs
    x = named.pop("x")
    copy = known_value(named.pop("copy", StaticValue(True)))
    own = copy is not UNKNOWN and not copy and isinstance(type_of(x), Array)
    if not named:
        result = call_library(cx, np.nan_to_num, [x], {"out": x} if own else {}, hint)
    else:
        result = cx.call(cx, StaticValue(decompositions.instead_of_missing), (x,), named)
        result = call_library(cx, np.positive, [result], {"out": x}) if own else result
    type_ = type_of(result)
    if own and isinstance(type_, Array) and not type_.rank:
        return load_place(cx, Place(result, []))  # NumPy returns `x[()]`
    return result


def _about(func: Any, text: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        named = dict(zip(("a", "axis"), args, strict=False)) | kwargs
        if "correction" in named and known_value(named.get("ddof", StaticValue(0))) == 0:
            named["ddof"] = named.pop("correction")
        if "mean" in kwargs and len(args) <= 2 and named.keys() <= {"a", "axis", "ddof", "keepdims", "mean"}:
            return cx.call(cx, StaticValue(text), (), named)
        return call_library(cx, func, args, kwargs, hint)


_about(np.var, decompositions.var_about)
_about(np.std, decompositions.std_about)
_about(np.nanvar, decompositions.nanvar_about)
_about(np.nanstd, decompositions.nanstd_about)


def _of_another_shape(like: Any, plain: Any) -> None:
    @handles(like, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        shape = kwargs.pop("shape", StaticValue(None))
        if known_value(shape) is None:
            return call_library(cx, like, args, kwargs, hint)
        names = ("a", "fill_value", "dtype", "order") if like is np.full_like else ("a", "dtype", "order")
        named = dict(zip((*names, "subok"), args, strict=False)) | kwargs
        named.pop("subok", None)  # an array of the base class either way
        others = {"device": (None, "cpu"), "order": (None, "C", "F", "A", "K")}
        understood = all(known_value(named[name]) in values for name, values in others.items() if name in named)
        if not understood or not named.keys() <= {*names, "device"}:
            reason = f"'shape=' of np.{like.__name__} has no rule with these keywords."
            raise cx.refusal(NotDifferentiable, reason, f"Use np.{plain.__name__}.")
        array = named["a"] if type_of(named["a"]) is not None else emit_call(cx, np.array, (named["a"],))
        dtype = named.get("dtype", StaticValue(None))
        if known_value(dtype) is None:
            dtype = StaticValue(np.dtype(type_of(array).dtype).type)  # type: ignore[union-attr]
        order = {"order": named["order"]} if known_value(named.get("order")) in ("C", "F") else {}
        filled = [named["fill_value"]] if like is np.full_like else []
        return call_value(cx, StaticValue(plain), [shape, *filled], {"dtype": dtype, **order}, hint)


_of_another_shape(np.empty_like, np.empty)
_of_another_shape(np.zeros_like, np.zeros)
_of_another_shape(np.ones_like, np.ones)
_of_another_shape(np.full_like, np.full)


@handles(np.transpose, takes="a, axes=None")
def _transpose(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """The one axis of a vector may be a number."""
    if len(args) > 1 and isinstance(axis := known_value(args[1]), int):
        args = [args[0], StaticValue((axis,))]
    if len(args) > 1 and known_value(args[1]) is None:
        args = args[:1]
    return call_library(cx, np.transpose, args, kwargs, hint)


@handles(np.diag_indices, takes="n, ndim=2")
def _diag_indices(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    size, ndim = [*args, StaticValue(2)][:2]
    rank = static(cx, ndim, "the number of axes")
    return tuple_of((call_value(cx, StaticValue(np.arange), [size], {}, hint),) * rank)


@handles(np.matmul, takes=PASSED_ON)
def _matmul(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    if len(args) == 2 and kwargs.keys() == {"axes"}:
        return cx.call(cx, StaticValue(decompositions.matmul_along), tuple(args), kwargs)
    return call_library(cx, np.matmul, args, kwargs, hint)


def _complex_in_any_case(func: Any, always: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if len(args) != 1 or kwargs:
            return call_library(cx, func, args, kwargs, hint)
        value = args[0] if type_of(args[0]) is not None else emit_call(cx, np.array, (args[0],))
        type_ = type_of(value)
        is_real = type_ is not None and is_floating(type_) and not is_complex(type_)
        return call_library(cx, always if is_real else func, [value], {}, hint)


_complex_in_any_case(np.linalg.eig, factorizations.eig_of_real)
_complex_in_any_case(np.linalg.eigvals, factorizations.eigvals_of_real)
_complex_in_any_case(np.roots, polynomials.roots_of_any)


def _one_or_several(func: Any) -> None:
    @handles(func, takes=PASSED_ON)
    def call(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
        if len(args) < 2 or kwargs:
            return call_library(cx, func, args, kwargs, hint)
        return tuple_of(call_library(cx, func, [arg], {}) for arg in args)


_one_or_several(np.atleast_1d)
_one_or_several(np.atleast_2d)
_one_or_several(np.atleast_3d)


@handles(np.linspace, takes=PASSED_ON)
def _linspace(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    named = dict(zip(("retstep", "dtype", "axis"), args[4:], strict=False)) | kwargs
    if known_value(named.get("retstep", StaticValue(False))) is False:
        named.pop("retstep", None)
    if known_value(named.get("axis", StaticValue(0))) == 0:
        named.pop("axis", None)
    dtype = known_value(named.get("dtype", StaticValue(None)))
    if dtype is None:
        named.pop("dtype", None)
    elif dtype is UNKNOWN or np.dtype(dtype).kind != "f" or not any(map(_varies, args[:2])):
        return call_library(cx, np.linspace, args[:4], named, hint)
    if named.keys().isdisjoint(("retstep", "axis", "dtype")):
        return call_library(cx, np.linspace, args[:4], named, hint)
    return cx.call(cx, StaticValue(decompositions.spaced), tuple(args[:4]), named)


@handles(np.meshgrid, takes=PASSED_ON)
def _meshgrid(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    named = {name: value for name, value in kwargs.items() if name != "copy" or known_value(value) is not True}
    if known_value(named.get("sparse")) is True and "copy" not in named:
        return cx.call(
            cx, StaticValue(decompositions.sparse_grid), tuple(args), {k: v for k, v in named.items() if k != "sparse"}
        )
    if known_value(named.get("sparse")) is False:
        named.pop("sparse")
    return call_library(cx, np.meshgrid, args, named, hint)


@handles(np.einsum, takes=PASSED_ON)
def _einsum(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    """`np.einsum`; a letter that occurs twice in one operand means its diagonal."""
    subscripts, operands = known_value(args[0]), args[1:]
    ranks = [getattr(type_of(given), "rank", None) for given in operands]
    if not isinstance(subscripts, str) or None in ranks or len(ranks) != subscripts.count(",") + 1:
        return call_library(cx, np.einsum, args, kwargs, hint)
    named: str = contractions.einsum_named(subscripts, tuple(ranks))  # type: ignore[no-untyped-call]
    inputs, arrow, result = named.partition("->")
    terms = inputs.split(",")
    if all(len(set(term)) == len(term) for term in terms):
        return call_library(cx, np.einsum, args, kwargs, hint)
    if not arrow:
        result = "".join(sorted(letter for letter in set(inputs) - {","} if inputs.count(letter) == 1))
    taken: list[Any] = []
    for k, given in enumerate(operands):
        while len(set(terms[k])) < len(terms[k]):
            terms[k], given = _diagonal(cx, terms[k], given)
        if len(terms) > 1 or len(result) < len(terms[k]):  # else it is a view
            given = call_library(cx, np.copy, [given], {})
        taken.append(given)
    if len(terms) == 1 and len(result) == len(terms[0]) and kwargs.keys() <= {"optimize"}:
        if result == terms[0]:
            return taken[0]
        order = tuple(map(terms[0].index, result))
        return call_library(cx, np.transpose, [*taken, StaticValue(order)], {}, hint)
    return call_library(cx, np.einsum, [StaticValue(f"{','.join(terms)}->{result}"), *taken], kwargs, hint)


@handles(sliding_window_view, takes="x, window_shape, axis=None, *, subok=False, writeable=False")
def _windows(cx: Context, args: Args, kwargs: Kwargs, hint: Hint) -> Any:
    x, shape, axis = [*args, StaticValue(None)][:3]
    for name in ("subok", "writeable"):
        if static(cx, kwargs.get(name, StaticValue(False)), f"'{name}'"):
            raise cx.refusal(
                NotDifferentiable, f"'{name}' of windows is not supported.", "Leave it out, and store into the array."
            )
    if not isinstance(type_of(x), Array):
        x = call_library(cx, np.array, [x], {})
    content = struct_of(cx, shape)
    sizes = shape if content is None else tuple_of(content.children)
    along = static(cx, axis, "the axis")
    axes = () if along is None else (StaticValue(tuple(along) if isinstance(along, list | tuple) else along),)
    return emit_call(cx, sliding_window_view, (x, sizes, *axes), {}, hint)


def _diagonal(cx: Context, term: str, operand: Leaf) -> tuple[str, Any]:
    """Take the diagonal over the first repeated letter; its axis comes last."""
    letter = next(letter for letter in term if term.count(letter) > 1)
    first = term.index(letter)
    second = term.index(letter, first + 1)
    assert isinstance(operand.type, Array)
    sizes = [Call(intrinsics.dim, (operand.expr, Const(axis)), (), INT) for axis in (first, second)]
    text = "np.einsum: axes with the same letter differ in size"
    cx.raise_if(Call(operator.ne, tuple(sizes), (), BOOL), ValueError, text)
    axes = [StaticValue(0), StaticValue(first), StaticValue(second)]
    return (
        "".join(other for k, other in enumerate(term) if k not in (first, second)) + letter,
        call_library(cx, np.diagonal, [operand, *axes], {}),
    )
