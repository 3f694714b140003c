"""NumPy dispatch (`__array_function__`, `__array_ufunc__`): calls of NumPy functions with tensors in any structure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.calls.library_calls import HOW
from tapegen.frontend.library.numpy_variants import is_decomposed
from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.rules.saved_values import chosen
from tapegen.tape.engine import pytree
from tapegen.tape.engine.operations import Named, Operation, operation_of
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import STATE, Call, cut, flat_ids, is_complex, is_tracked
from tapegen.tape.tensors import indexing
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh, known_as, note, plain
from tapegen.tape.tensors.variable import convert_to_tensor

_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_SCANS: dict[Any, Callable[..., Any]] = {np.add: np.cumsum, np.multiply: np.cumprod}
_WRITING = frozenset({np.put, np.putmask, np.place, np.copyto, np.fill_diagonal, np.put_along_axis})
"""Functions that write into their first argument."""
_DESCRIBING = frozenset({np.shape, np.ndim, np.size, np.isscalar, np.result_type, np.iscomplexobj, np.isrealobj})
"""Functions whose results are not arrays."""

_BOUNDS = {"min": "a_min", "max": "a_max"}
"""Other names of the bounds of `np.clip`."""

_QUICKER: dict[Any, Callable[..., Any]] = {np.where: chosen}
"""Functions that return the same results."""
_ARRAYS = (np.ndarray, np.generic)
_FIXED = frozenset({int, bool, float, str, type(None)})
_TYPES = {"dtype", "casting"}
"""Keywords for the type of a result."""


def ufunc(func: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc or one of its methods on tensors."""
    outs = kwargs.get("out")
    if outs is not None and any(out is not None for out in outs):
        return _into(func, outs, getattr(func, method), inputs, kwargs)
    if method == "__call__":
        dtype = kwargs.pop("dtype", None)
        if dtype is not None:
            inputs = _in_types(func, inputs, dtype, kwargs.pop("casting", "same_kind"))
        return function(func, inputs, kwargs)
    kwargs.pop("out", None)
    if method == "reduce" and func in _REDUCTIONS:
        kwargs.setdefault("axis", 0)
        if kwargs.get("dtype", 0) is None:
            del kwargs["dtype"]
        return function(_REDUCTIONS[func], inputs, kwargs)
    if method == "accumulate" and func in _SCANS:
        kwargs.setdefault("axis", 0)
        return function(_SCANS[func], inputs, kwargs)
    if method == "outer":
        x, y = inputs
        return func(np.expand_dims(x, tuple(range(np.ndim(x), np.ndim(x) + np.ndim(y)))), y)
    if method == "at":
        return _into(func, inputs[:1], func.at, inputs, kwargs)
    return call(Operation(getattr(func, method), None), inputs, kwargs)


def _in_types(func: np.ufunc, inputs: tuple[Any, ...], dtype: Any, casting: Any) -> tuple[Any, ...]:
    """Operands in the types in which a ufunc computes where the type of its results is given."""
    given = [kind if (kind := type(x)) in (int, float, complex) else np.asarray(_bare(x)).dtype for x in inputs]
    wanted = (*(None,) * func.nin, *(dtype,) * func.nout)
    types = func.resolve_dtypes((*given, *(None,) * func.nout), signature=wanted, casting=casting)
    pairs = zip(inputs, types, strict=False)
    return tuple(indexing.astype(x, to) if isinstance(x, Traced) else np.asarray(x, to)[()] for x, to in pairs)


def _into(
    func: Callable[..., Any],
    outs: tuple[Any, ...],
    run: Callable[..., Any],
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Refuse writes into an array if a recorder tracks the tensors: they leave the tape."""
    if any(isinstance(out, Traced) for out in outs):
        raise NotDifferentiable(
            f"np.{func.__name__} cannot write into a tensor.",
            "Use the result: tensors are immutable.",
            user_span(),
        )
    if any(map(is_tracked, flat_ids(split((*inputs, *kwargs.values()))[1]))):
        raise NotDifferentiable(
            f"np.{func.__name__} writes a tensor that is being recorded into an array, which leaves the tape.",
            "Use the result instead (x = x + t, not x += t, for an array x), or use t.numpy().",
            user_span(),
        )
    return run(*(_bare(item) for item in inputs), **_bare(kwargs))


@cache
def _place_of_out(func: Callable[..., Any]) -> int | None:
    """The positional argument of a function that is the array for its result."""
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):
        return None
    if "out" not in parameters or parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY:
        return None
    return list(parameters).index("out")


def function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy function on tensors."""
    found = indexing.SPECIAL.get(func)
    if found is not None:
        return found(*args, **kwargs)
    if len(args) == 1 and type(args[0]) is Tensor and func is not np.clip:
        operation = operation_of(func)
        options = operation.options
        if options is not None and kwargs.keys() <= options and all(map(_is_fixed, kwargs.values())):
            return _of_one(operation, args[0], kwargs)
    if func in _WRITING:
        written = args[:1] or tuple(kwargs[name] for name in ("a", "arr", "dst") if name in kwargs)
        return _into(func, written, func, args, kwargs)
    place = _place_of_out(func)
    out = args[place] if place is not None and place < len(args) else kwargs.get("out")
    if out is not None:
        return _into(func, (out,), func, args, kwargs)
    return call(operation_of(func), args, kwargs)


def _is_fixed(option: Any) -> bool:
    kind = type(option)
    return kind in _FIXED or (kind is tuple and all(type(item) is int for item in option))


def _of_one(operation: Operation, x: Tensor, kwargs: dict[str, Any]) -> Any:
    """`call` for one tensor and options that are in its rule: reductions."""
    value, number = x._value, x._id
    out = operation.func(value, **kwargs)
    if not is_tracked(number):
        return _wrapped(operation, out)
    if not isinstance(out, _ARRAYS):
        return _recorded(operation, (value,), kwargs, (number,), out)
    result = fresh(out)
    note(Call(operation, (value,), kwargs, (number,), out, (result._id,)))
    return result


def call(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function on the values of its arguments and record the call."""
    if operation.signature is not None and operation.variadic is None and len(args) > len(operation.names):
        args, kwargs = _named(operation, args, kwargs)
    if kwargs:
        if kwargs.get("out", 0) is None:
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        if operation.func is np.clip:  # the bounds of its rule have no defaults
            kwargs = {_BOUNDS.get(name, name): value for name, value in kwargs.items()}
            kwargs = {**dict.fromkeys(("a", "a_min", "a_max")[len(args) :]), **kwargs}
        if operation.signature is not None and not operation.signature.parameters.keys() >= kwargs.keys():
            kwargs = _without_defaults(operation, kwargs)
        if operation.signature is not None and _holds_tensor(kwargs):
            args, kwargs = _positional(operation, args, kwargs)
        if operation.signature and not _TYPES & kwargs.keys() <= operation.signature.parameters.keys():
            return _converted(operation, args, kwargs)
    if any(isinstance(item, list | tuple) and _holds_tensor(item) for item in args):
        args = tuple(_as_one(operation, position, item) for position, item in enumerate(args))
    values: tuple[Any, ...]
    values, ids = split(args)
    bare = _bare(kwargs)
    tracked = bool(STATE.active) and any(map(is_tracked, flat_ids(ids)))
    if tracked and operation.kind == "expands" and not operation.of_complex and is_complex(values):
        operation = Named(operation, ())
    if tracked and operation.kind == "expands":
        return _expanded(operation, args, kwargs, values, bare, ids)
    if tracked and operation.func is np.pad and is_decomposed(values[2] if len(values) > 2 else bare.get("mode")):
        operation = Named(operation, ())
    out = _QUICKER.get(operation.func, operation.func)(*values, **bare)
    if (
        tracked
        and operation.kind == "inactive"
        and not operation.of_complex
        and is_complex(values)
        and _is_floating(out)
    ):
        operation = Named(operation, ())  # constant between integers, but not for complex numbers
    if any(type(value) is np.ndarray for value, number in zip(values, ids, strict=True) if not number):
        out = _without_plain_views(out, values, ids)
    if operation.kind == "inactive" or not tracked:
        if tracked and operation.func not in _DESCRIBING:
            how = "stopped" if operation.func is stop_gradient else "constant"
            result = _wrapped(operation, out)
            made = tuple(item._id for item in pytree.leaves(result) if isinstance(item, Tensor))
            for number in flat_ids(ids):
                cut(how, f"np.{operation.name}", number, made)
            return result
        return _wrapped(operation, out)
    if tracked and _holds_tracked(kwargs):
        operation = Named(operation, tuple(kwargs))
        values, ids = (*values, *bare.values()), (*ids, *(split((v,))[1][0] for v in kwargs.values()))
        bare = {}
    return _recorded(operation, values, bare, ids, out)


def _recorded(
    operation: Operation, values: tuple[Any, ...], bare: dict[str, Any], ids: tuple[Any, ...], out: Any
) -> Any:
    """The results of a call as tensors, recorded by those who track its arguments."""
    for name in HOW.get(operation.func, ()):
        bare = {key: value for key, value in bare.items() if key != name}
    if isinstance(out, tuple | list):
        made = [fresh(item) if isinstance(item, np.ndarray | np.generic) else item for item in out]
        note(Call(operation, values, bare, ids, tuple(out), tuple(getattr(item, "_id", 0) for item in made)))
        return _rebuilt(out, made)
    if isinstance(out, float | complex) and not isinstance(out, np.generic):  # of functions of Python objects
        out = np.array(out, object)
    if not isinstance(out, np.ndarray | np.generic):
        return out
    result = fresh(out)
    note(Call(operation, values, bare, ids, out, (result._id,)))
    return result


def _as_one(operation: Operation, position: int, item: Any) -> Any:
    """A list of tensors where a rule accepts one array, as this array: `np.dot([a, b], x)`."""
    if not isinstance(item, list | tuple) or not _holds_tensor(item) or operation.rule is None:
        return item
    shapes = operation.rule.shapes or ()
    declared = shapes[min(position, len(shapes) - 1)] if shapes else None
    if callable(declared):  # draws an example
        declared = np.shape(declared(np.random.default_rng(0)))
    is_array = operation.kind in ("linear", "pullback") and isinstance(declared, tuple)
    return convert_to_tensor(item) if is_array or operation.kind == "partials" else item


def _named(
    operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by name from where the rule does not accept them by position: `np.sum(x, 0, None, None)`."""
    try:
        names = list(inspect.signature(operation.func).parameters)
    except (TypeError, ValueError):
        return args, kwargs
    count = len(operation.names)
    return args[:count], {**dict(zip(names[count:], args[count:], strict=False)), **kwargs}


def _without_defaults(operation: Operation, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords that have an effect: `np.vstack(tup, dtype=None)` is `np.vstack(tup)`."""
    try:
        own = inspect.signature(operation.func).parameters
    except (TypeError, ValueError):  # a ufunc
        return kwargs
    known = operation.signature.parameters if operation.signature is not None else {}
    return {
        name: value
        for name, value in kwargs.items()
        if name in known or name not in own or own[name].default is not value
    }


def _is_floating(out: Any) -> bool:
    return getattr(out, "dtype", np.dtype(bool)).kind in "fc"


def _converted(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result in a requested type: `np.concatenate(parts, dtype=np.float32)`."""
    out = operation.func(*split(args)[0], **_bare(kwargs))
    rest = {name: value for name, value in kwargs.items() if name not in _TYPES}
    return _with_numbers_of(out, indexing.astype(call(operation, args, rest), out.dtype))


def _without_plain_views(out: Any, values: tuple[Any, ...], ids: tuple[Any, ...]) -> Any:
    """Results without views of plain arrays, which may be overwritten: tensors are immutable."""
    if isinstance(out, tuple | list):
        return _rebuilt(out, [_without_plain_views(item, values, ids) for item in out])
    if isinstance(out, np.ndarray):
        plain = (value for value, number in zip(values, ids, strict=True) if not number)
        if any(isinstance(value, np.ndarray) and np.may_share_memory(out, value) for value in plain):
            return out.copy()
    return out


def _expanded(
    operation: Operation,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    values: tuple[Any, ...],
    bare: dict[str, Any],
    ids: tuple[Any, ...],
) -> Any:
    """The function's own value, recorded as the formula of its rule."""
    assert operation.rule is not None and operation.rule.body is not None
    out = operation.func(*values, **bare)
    try:
        formula = operation.rule.body(*args, **kwargs)
    except Exception:  # the function accepts these arguments, its formula does not accept tensors or lists like this
        return _recorded(Named(operation, ()), values, bare, ids, out)
    return _with_numbers_of(out, formula)


def _with_numbers_of(out: Any, formula: Any) -> Any:
    """The function's own value, recorded as its formula."""
    if isinstance(out, tuple | list):
        return _rebuilt(out, [_with_numbers_of(*pair) for pair in zip(out, formula, strict=True)])
    if isinstance(formula, Traced):
        return known_as(out, formula._operand()[1])
    return fresh(out) if isinstance(out, np.ndarray | np.generic) else out


def _wrapped(operation: Operation, out: Any) -> Any:
    if operation.func in _DESCRIBING:
        return out
    if isinstance(out, tuple | list):
        return _rebuilt(out, [fresh(x) if isinstance(x, np.ndarray | np.generic) else x for x in out])
    return fresh(out) if isinstance(out, np.ndarray | np.generic) else out


def _rebuilt(like: Any, items: list[Any]) -> Any:
    """A tuple, list or named tuple (`np.linalg.eigh`) of new items."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*items)
    return type(like)(items)


def split(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Values and numbers of arguments; sequences of tensors become tuples of both."""
    values: list[Any] = []
    ids: list[Any] = []
    for item in args:
        if isinstance(item, Traced):
            value, number = item._operand()
            values.append(value)
            ids.append(number)
        elif isinstance(item, list | tuple) and _holds_tensor(item):
            inner, numbers = split(tuple(item))
            values.append(inner if isinstance(item, tuple) else list(inner))
            ids.append(numbers)
        else:
            values.append(plain(item))
            ids.append(0)
    return tuple(values), tuple(ids)


def _bare(item: Any) -> Any:
    """Arguments with values in place of tensors."""
    if isinstance(item, Traced):
        return item._operand()[0]
    if isinstance(item, dict):
        return {key: _bare(value) for key, value in item.items()}
    if isinstance(item, list | tuple) and _holds_tensor(item):
        return type(item)(map(_bare, item))
    return item


def _holds_tensor(item: Any) -> bool:
    if isinstance(item, dict):
        item = item.values()
    return any(isinstance(x, Traced) or (isinstance(x, list | tuple) and _holds_tensor(x)) for x in item)


def _holds_tracked(kwargs: dict[str, Any]) -> bool:
    return bool(kwargs) and any(map(is_tracked, flat_ids(split(tuple(kwargs.values()))[1])))


def _positional(
    operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Tensors given by keyword, at their positions."""
    assert operation.signature is not None
    try:
        bound = operation.signature.bind_partial(*args, **kwargs)
    except TypeError:
        return args, kwargs
    names = operation.names
    last = max((names.index(name) for name in kwargs if name in names and _holds_tensor((kwargs[name],))), default=-1)
    if last < len(args):
        return args, kwargs
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in names[: last + 1]), {
        name: value for name, value in kwargs.items() if name not in names[: last + 1]
    }
