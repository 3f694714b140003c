"""Overloads that numba resolves through callbacks: they make derivatives callable inside the user's compiled code."""

# mypy: disable-error-code="no-untyped-call, override, untyped-decorator"

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel.models import OpaqueModel
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import lower_constant, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, overload, register_model, typeof_impl
from numba.np.numpy_support import as_dtype

from tapegen.errors import BadArgument

Implementation = tuple[str, Mapping[str, Any]]
"""The body of a function as lines of source, and the names that it uses."""


def dispatcher(
    name: str, signature: inspect.Signature, implement: Callable[[Mapping[str, Any]], Implementation]
) -> Dispatcher:
    """A compiled function whose code depends on the types of its arguments.

    Parameters
    ----------
    name : str
        Its name.
    signature : inspect.Signature
        Its parameters, which can be passed by position, and their defaults.
    implement : callable
        Called with the numba type of each parameter, returns the code for them.
    """
    parameters = list(signature.parameters)
    listed = ", ".join(parameters)
    defaults = {
        f"default_{k}": parameter.default
        for k, parameter in enumerate(signature.parameters.values())
        if parameter.default is not parameter.empty
    }
    with_defaults = ", ".join(
        f"{parameter}=default_{k}" if f"default_{k}" in defaults else parameter
        for k, parameter in enumerate(parameters)
    )

    def choose(*given: Any) -> Callable[..., Any]:
        body, names = implement(dict(zip(parameters, given, strict=True)))
        text = f"def {name}({listed}):\n    of_this_process()\n{body}"
        return _defined(text, name, {**names, "of_this_process": _of_this_process})

    # an empty name: numba replaces it by the result of `choose`
    stub = _defined(f"def {name}({listed}):\n    pass\n", name, {})
    typed = _defined(f"def {name}({listed}):\n    return choose({listed})\n", name, {"choose": choose})
    overload(stub, strict=True)(typed)
    outer = _defined(f"def {name}({with_defaults}):\n    return stub({listed})\n", name, {"stub": stub, **defaults})
    return njit(outer)


def _defined(text: str, name: str, names: Mapping[str, Any]) -> Callable[..., Any]:
    namespace = {"__name__": f"tapegen.runtime.njit.{name}", **names}
    exec(compile(text, f"<tapegen native {name}>", "exec"), namespace)
    return namespace[name]


@intrinsic
def _of_this_process(typing_context: Any) -> Any:
    """Keeps numba from storing the code of its callers (`cache=True`), as for code with addresses.

    numba looks stored code up by the source of the caller alone, even if the differentiated function has changed.
    """

    def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = context.get_value_type(types.voidptr)
        mark = cgutils.add_global_variable(builder.module, pointer, "numba.dynamic.globals.tapegen")
        mark.linkage, mark.initializer = "weak", pointer(None)  # with that linkage it stays in every caller
        return context.get_dummy_value()

    return types.void(), mark


# ---- types ---------------------------------------------------------------------------------------------------------


def alternatives(type_: Any, name: str) -> list[tuple[str, Any]]:
    """Examples of the values of a numba type, each with the condition under which it represents a value.

    The code depends on axes of size 1 and booleans, so there is more than one.

    Raises
    ------
    BadArgument
        Values of the type cannot be passed from compiled code.
    """
    if isinstance(type_, types.Omitted):
        return [("", type_.value)]
    type_ = types.unliteral(type_)
    if isinstance(type_, types.NoneType):
        return [("", None)]
    if isinstance(type_, types.Boolean):
        return [(name, True), (f"not {name}", False)]
    if type_ in (types.float64, types.int64):
        return [("", 0.5 if type_ == types.float64 else 2)]
    if isinstance(type_, types.Integer | types.Float):
        return [("", as_dtype(type_).type(2))]
    if isinstance(type_, types.Array):
        return _arrays(type_, name)
    if isinstance(type_, types.NumPyRandomGeneratorType):
        return [("", np.random.default_rng(0))]
    raise BadArgument(
        f"'{name}' has the type {type_} in compiled code, which is not passed on.",
        "Pass numbers, arrays and generators; give options as defaults of the function.",
    )


def _arrays(type_: Any, name: str) -> list[tuple[str, Any]]:
    rank = type_.ndim
    found = []
    for bits in range(2**rank):
        shape = tuple(1 if bits >> axis & 1 else 2 for axis in range(rank))
        tests = [f"{name}.shape[{axis}] {'==' if n == 1 else '!='} 1" for axis, n in enumerate(shape)]
        found.append((" and ".join(tests), _array(type_, shape)))
    return found


def _array(type_: Any, shape: tuple[int, ...]) -> np.ndarray:
    dtype = as_dtype(type_.dtype)
    if type_.layout == "A":
        return np.zeros(tuple(2 * n + 1 for n in shape), dtype)[tuple(slice(0, 2 * n, 2) for n in shape)]
    return np.zeros(shape, dtype, order=type_.layout)


def is_read_only(type_: Any) -> bool:
    """Whether arrays of a type are read-only."""
    return isinstance(type_, types.Array) and not type_.mutable


@njit
def overlap(a: Any, b: Any) -> bool:
    """Whether the memory ranges from the first to the last element of two arrays overlap."""
    return a.size > 0 and b.size > 0 and _low(a) < _high(b) and _low(b) < _high(a)


@njit
def _low(a: Any) -> int:
    address = a.ctypes.data
    for size, stride in zip(a.shape, a.strides):
        address += min(0, (size - 1) * stride)
    return address


@njit
def _high(a: Any) -> int:
    address = a.ctypes.data + a.itemsize
    for size, stride in zip(a.shape, a.strides):
        address += max(0, (size - 1) * stride)
    return address


# ---- objects whose attributes are functions ------------------------------------------------------------------------


class _Object(types.Dummy):
    """The type of one object: compiled code reads its attributes at compile time."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(f"object({getattr(value, '__name__', 'function')}, {id(value)})")


register_model(_Object)(OpaqueModel)


def expose_attributes(cls: type, attributes: Sequence[str]) -> None:
    """Let compiled code read attributes of global objects of a class; their values are compiled functions."""

    @typeof_impl.register(cls)
    def typeof_object(value: Any, context: Any) -> Any:
        return _Object(value)

    @infer_getattr
    class Attributes(AttributeTemplate):
        key = _Object

        def generic_resolve(self, type_: Any, name: str) -> Any:
            return types.Dispatcher(getattr(type_.value, name)) if name in attributes else None


@infer_getattr
class _Variants(AttributeTemplate):
    """Compiled functions that have others as attributes."""

    key = types.Dispatcher

    def generic_resolve(self, type_: Any, name: str) -> Any:
        found = getattr(type_.dispatcher, "variants", {}).get(name)
        return None if found is None else types.Dispatcher(found)


@lower_constant(_Object)
def _constant(context: Any, builder: Any, type_: Any, value: Any) -> Any:
    return context.get_dummy_value()


@lower_getattr_generic(_Object)
def _of_object(context: Any, builder: Any, type_: Any, value: Any, name: str) -> Any:
    return context.get_dummy_value()


@lower_getattr_generic(types.Dispatcher)
def _of_dispatcher(context: Any, builder: Any, type_: Any, value: Any, name: str) -> Any:
    return context.get_dummy_value()


__all__ = ["alternatives", "dispatcher", "expose_attributes", "is_read_only", "overlap"]
