"""Abstract values as pytrees: leaves, static values and structures; flatten and unflatten.

A value is a `Leaf` (a scalar or array that the program computes), a `StaticValue` (known when compiling) or a `Struct`
of values: tuple, list, dict, named tuple, dataclass or simple object.  Only leaves reach the IR.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import logging
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from tapegen.errors import BadArgument
from tapegen.ir.nodes import Expr, Var
from tapegen.ir.protocols import is_opaque, recorder_of
from tapegen.ir.types import Array, RandomGenerator, Scalar, Type

# ---- values --------------------------------------------------------------------------------------------------------


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar, array or run-time list.

    Attributes
    ----------
    expr : Expr
        Its expression: a Var, a Const or an integer expression.
    known : object
        Its value where the program text fixes it (`n = 3`), else UNKNOWN.
    sample : object
        The value of an integer argument, or the shape of an array, in the call at hand.  Only used when it must be
        known at compile time.
    """

    expr: Expr
    known: Any = field(default=UNKNOWN, compare=False)
    sample: Any = field(default=UNKNOWN, compare=False)

    @property
    def type(self) -> Type:
        return self.expr.type


@dataclass(frozen=True, slots=True, eq=False)
class StaticValue:
    """A value known when compiling: None, str, bool, function, type, module, constant number.

    Two are equal when their types agree and their values do (`1`, `1.0` and `True` all differ).
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticValue) and same_static(self.value, other.value)

    def __hash__(self) -> int:
        value = self.value
        if isinstance(value, (slice, set)):
            return hash((type(value), repr(value) if isinstance(value, slice) else frozenset(value)))
        try:
            return hash((type(value), value))
        except TypeError:
            return hash((type(value), id(value)))


@dataclass(frozen=True, slots=True, eq=False)
class Itself:
    """An identity key: equal only for the same object, which it keeps alive."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def same_static(a: Any, b: Any) -> bool:
    """Whether two compile-time values are interchangeable."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and (all(map(operator.is_, a, b)) or all(map(same_static, a, b)))
    if isinstance(a, slice):
        return same_static((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, (set, frozenset)):
        return len(a) == len(b) and _typed(a) == _typed(b)
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)  # 0.0 and -0.0 differ, NaN is itself
    try:
        hash(a)
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def _typed(values: Iterable[Any]) -> set[tuple[type, Any]]:
    return {(type(value), value) for value in values}  # 1 == 1.0 == True


def snapshot(value: Any) -> Any:
    """A copy of a compile-time value, which later changes of the object do not affect."""
    return set(value) if type(value) is set else value


@dataclass(frozen=True, slots=True)
class Struct:
    """A container whose layout is known when compiling.

    Attributes
    ----------
    kind : str
        "tuple" (also named tuples), "list", "dict" or "object" (dataclasses and simple objects).
    keys : tuple
        Positions, dictionary keys or attribute names.
    children : tuple of Abstract
        The values, in the order of `keys`.
    cls : type
        The class to rebuild.
    whole : Expr or None
        An expression for the whole tuple (`x.shape`), where there is one.
    """

    kind: str
    keys: tuple[Any, ...]
    children: tuple[Any, ...]
    cls: type = tuple
    whole: Expr | None = field(default=None, compare=False)

    def get(self, key: Any) -> Any:
        return self.children[self.keys.index(key)]

    def with_child(self, key: Any, value: Any) -> Struct:
        """A copy in which `key` has another value; a new key comes last."""
        if key in self.keys:
            k = self.keys.index(key)
            return dataclasses.replace(self, children=(*self.children[:k], value, *self.children[k + 1 :]), whole=None)
        return dataclasses.replace(self, keys=(*self.keys, key), children=(*self.children, value), whole=None)


def with_items(content: Struct, items: Iterable[tuple[Any, Any]]) -> Struct:
    """A container with other values under some keys; new keys come last."""
    for key, value in items:
        content = content.with_child(key, value)
    return content


@dataclass(frozen=True, slots=True)
class Slot:
    """A leaf of a result: the position of its value in `Return.values`."""

    index: int


Abstract = Leaf | StaticValue | Struct


def tuple_of(children: Iterable[Any], cls: type = tuple, whole: Expr | None = None) -> Struct:
    children = tuple(children)
    keys = tuple(cls._fields) if hasattr(cls, "_fields") else tuple(range(len(children)))
    return Struct("tuple", keys, children, cls, whole)


def list_of(children: Iterable[Any], cls: type = list) -> Struct:
    children = tuple(children)
    return Struct("list", tuple(range(len(children))), children, cls)


def dict_of(items: Iterable[tuple[Any, Any]], cls: type = dict) -> Struct:
    pairs = dict(items)
    return Struct("dict", tuple(pairs), tuple(pairs.values()), cls)


# ---- from runtime values -------------------------------------------------------------------------------------------

DTYPES = "float64 float32 complex128 complex64 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
DTYPE_NAMES = {np.dtype(name): name for name in DTYPES}  # in the byte order of this machine; `dtype.name` is slow
_STATIC = (
    *(
        str,
        bytes,
        bool,
        np.bool_,
        type(None),
        type(Ellipsis),
        type,
        ModuleType,
        FunctionType,
        MethodType,
        np.dtype,
        range,
    ),
    *(slice, enum.Enum, set, frozenset, np.ufunc, np.random.Generator, np.random.RandomState, logging.Logger),
)


def children_of(value: Any) -> Struct | None:
    """A container as a Struct whose children are the runtime values themselves; None for anything else."""
    if isinstance(value, (tuple, list, dict)):
        kind = type(value)
        own = _own_methods(kind)
        if own:
            raise BadArgument(
                f"'{kind.__name__}' is a {kind.__mro__[-2].__name__} that defines '{own}', which is not followed.",
                "Pass a plain tuple, list or dict, or an object that holds one.",
            )
        if isinstance(value, tuple):
            return tuple_of(value, kind)
        return list_of(value, kind) if isinstance(value, list) else dict_of(value.items(), kind)
    if isinstance(value, _STATIC) or callable_from_c(value) or is_opaque(value):
        return None
    if dataclasses.is_dataclass(value):
        names = tuple(item.name for item in dataclasses.fields(value) if hasattr(value, item.name))
        names += tuple(name for name in getattr(value, "__dict__", ()) if name not in names)
        return Struct("object", names, tuple(getattr(value, name) for name in names), type(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    cls: Any = type(value)
    slots = _slots_of(cls)
    if hasattr(value, "__dict__") or slots:
        attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        attributes |= getattr(value, "__dict__", {})
        return Struct("object", tuple(attributes), tuple(attributes.values()), cls)
    return None


@functools.cache
def _own_methods(cls: type) -> str:
    """A method that a subclass of tuple, list or dict overrides in Python."""
    for base in cls.__mro__[:-2]:
        if "_fields" in vars(base) or base.__module__.partition(".")[0] in sys.stdlib_module_names:
            continue
        for name, found in vars(base).items():
            if isinstance(found, FunctionType) and name in vars(cls.__mro__[-2]) and name not in _HARMLESS:
                return name
    return ""


_HARMLESS = frozenset({"__init__", "__repr__", "__str__", "__format__", "__reduce__", "__reduce_ex__", "__copy__"})


@functools.cache
def _slots_of(cls: type) -> tuple[str, ...]:
    """The attributes that a class written in Python keeps in `__slots__`."""
    found: list[str] = []
    for base in reversed(cls.__mro__):
        names = vars(base).get("__slots__", ())
        if base.__module__.partition(".")[0] not in sys.stdlib_module_names:
            found += [names] if isinstance(names, str) else names
    return tuple(name for name in found if not name.startswith("__"))


def callable_from_c(value: Any) -> bool:
    """Whether a value is a function that is not written in Python (or an object wrapping a function)."""
    return callable(value) and (
        not hasattr(value, "__dict__")
        or hasattr(value, "__wrapped__")
        or hasattr(value, "func")
        or (inspect.isroutine(value) and not isinstance(value, (FunctionType, MethodType)))  # Cython's have a __dict__
    )


def abstract_of(value: Any, name: str = "argument", tails: Collection[tuple[Any, ...]] = ()) -> Abstract:
    """The abstract value of a runtime argument; the lists at the locations `tails` are only known to be lists.

    Raises
    ------
    BadArgument
        An unsupported dtype or container; the text says how to convert it.
    """
    return _abstract(value, name, (), ("argument", name), tails)


def _abstract(
    value: Any, name: str, around: tuple[int, ...], place: tuple[Any, ...], tails: Collection[tuple[Any, ...]]
) -> Abstract:
    type_ = leaf_type(value, name)
    if type_ is not None:
        sample = UNKNOWN
        if isinstance(type_, Array):
            sample = value.shape
        elif isinstance(type_, Scalar) and type_.dtype.startswith(("int", "uint")):
            sample = value
        return Leaf(Var(name, type_), sample=sample)
    refuse_foreign(value, name)
    if not isinstance(value, (tuple, list, dict)) and recorder_of((value,), {}) is not None:
        raise BadArgument(
            f"'{name}' is a tensor, as a default or in an object; only those among the arguments are recorded.",
            "Pass it as an argument of its own, or in a list, a tuple or a dict.",
        )
    if isinstance(value, (memoryview, bytearray)):
        raise BadArgument(f"'{name}' is a {type(value).__name__}.", f"Pass an array: np.asarray({name}).")
    struct = list_of((), type(value)) if isinstance(value, list) and place in tails else children_of(value)
    if struct is None:
        return StaticValue(snapshot(value))
    if id(value) in around:
        raise BadArgument(f"'{name}' contains itself.", "Pass a structure without cycles.")
    around = (*around, id(value))
    children = tuple(
        _abstract(child, _part_name(struct, name, k), around, (*place, struct.keys[k]), tails)
        for k, child in enumerate(struct.children)
    )
    return dataclasses.replace(struct, children=children)


def kind_of_result(result: Abstract, values: Sequence[Expr]) -> str:
    """What a function returns, in a message (`a tuple of 2 items`); Slots are positions in `values`."""
    if isinstance(result, Slot):
        type_ = values[result.index].type
        if isinstance(type_, Scalar):
            return {"i": "an integer", "u": "an integer", "b": "a bool"}.get(np.dtype(type_.dtype).kind, type_.dtype)
        return "an array" if isinstance(type_, Array) else "a list that grows"
    if isinstance(result, Struct):
        if result.kind == "object":
            return f"an object of class {result.cls.__name__}"
        return f"a {result.kind} of {len(result.keys)} item{'s' * (len(result.keys) != 1)}"
    value = getattr(result, "value", None)
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def package_of(value: Any) -> str:
    """The library that the class of a value belongs to."""
    return type(value).__module__.partition(".")[0]


_NATIVE = (np.ndarray, np.generic, str, bytes, int, float, complex, type(None), type)


def is_foreign(value: Any) -> bool:
    """Whether a value is an array of another library: it has a shape, and gives NumPy its elements or its memory."""
    cls: type = type(value)
    return _is_foreign_class(cls)


@functools.cache
def _is_foreign_class(cls: Any) -> bool:
    if issubclass(cls, _NATIVE) or hasattr(cls, "__tapegen_opaque__") or hasattr(cls, "__tapegen_call__"):
        return False
    return (hasattr(cls, "__array__") or hasattr(cls, "__dlpack__")) and hasattr(cls, "shape")


def refuse_foreign(value: Any, name: str) -> None:
    """Refuse arrays, tables and containers of other libraries where these are not taken.

    Raises
    ------
    BadArgument
        For such an object.
    """
    cls, package = type(value), package_of(value)
    kind = f"'{name}' is {'an' if cls.__name__[0] in 'AEIOU' else 'a'} {cls.__name__} of {package}"
    if cls.__module__.startswith("numba.typed."):
        advice = "a dict" if hasattr(value, "keys") else f"an array (np.array({name})) or a list"
        raise BadArgument(f"{kind}, which is not followed.", f"Pass {advice} of Python.")
    if is_foreign(value):
        text = f"{name}.to_numpy()" if hasattr(cls, "to_numpy") else f"np.asarray({name})"
        raise BadArgument(f"{kind}; arrays of other libraries are taken as arguments only.", f"Use {text}.")
    if cls.__module__.startswith("scipy.sparse") and hasattr(cls, "toarray"):
        raise BadArgument(f"{kind}.sparse, which is not followed.", f"Use {name}.toarray().")
    if package == "xarray":
        raise BadArgument(f"{kind}, which is not followed.", "Pass its variables one by one, or in a dict.")
    if package == "pandas":
        raise BadArgument(f"{kind}, which is no number or array.", "Pass numbers, or a Series or a DataFrame of them.")


def _part_name(struct: Struct, name: str, k: int) -> str:
    """The user's expression for an item of an argument; names of items are unique."""
    key = struct.keys[k]
    if struct.kind == "object" or hasattr(struct.cls, "_fields"):
        return f"{name}.{key}"
    return f"{name}[{key!r}]" if isinstance(key, bool | int | float | str | None) else f"{name}[key {k}]"


def leaf_type(value: Any, name: str = "argument") -> Type | None:
    """The type of a scalar or array, None for anything else.

    Raises
    ------
    BadArgument
        A dtype or kind of array that is refused.
    """
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, np.ndarray):
        return array_type(value, name)
    if isinstance(value, np.generic):
        return _numpy_scalar_type(value, name)
    if isinstance(value, int) and not isinstance(value, enum.Enum):
        if not -(2**63) <= value < 2**63:
            raise BadArgument(f"'{name}' is {value}, which does not fit into 64 bits.", "Pass a float, or scale it.")
        return Scalar("int64")
    if isinstance(value, float) and not isinstance(value, enum.Enum):
        return Scalar("float64")
    if type(value) in (np.random.Generator, np.random.RandomState):  # a class derived from them may draw otherwise
        return RandomGenerator(type(value).__name__)
    if isinstance(value, complex):
        return Scalar("complex128")
    return None


def _numpy_scalar_type(value: np.generic, name: str) -> Type:
    dtype = DTYPE_NAMES.get(value.dtype)
    if dtype is None:
        raise _bad_dtype(name, value.dtype)
    return Scalar(dtype, python=False)


def array_type(value: np.ndarray, name: str = "argument") -> Array:
    """The type of a runtime array: dtype, rank, layout, and which axes have size 1.

    Raises
    ------
    BadArgument
        A dtype or subclass that is refused.
    """
    if type(value) is not np.ndarray and not isinstance(value, np.memmap):
        if isinstance(value, np.ma.MaskedArray):
            advice = f"Pass the data and a weight array: {name}.filled(0.0) and ~np.ma.getmaskarray({name})."
            raise BadArgument(f"'{name}' is a masked array, whose mask would be lost.", advice)
        kind = type(value).__name__
        raise BadArgument(f"'{name}' is a {kind}, an array class with its own semantics.", f"Pass np.asarray({name}).")
    dtype = DTYPE_NAMES.get(value.dtype)
    if dtype is None:
        raise _bad_dtype(name, value.dtype)
    flags = value.flags
    if not flags.aligned:
        raise BadArgument(f"'{name}' is not aligned in memory.", f"Pass a copy: {name}.copy().")
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    unit = tuple(n == 1 for n in value.shape) if 1 in value.shape else ()
    return Array(dtype, value.ndim, layout, unit)


def _bad_dtype(name: str, dtype: np.dtype) -> BadArgument:
    if dtype.kind in "fciu" and not dtype.isnative:
        native = dtype.newbyteorder("=").name
        return BadArgument(
            f"'{name}' has dtype {dtype.str}, the byte order of other machines.", f"Pass {name}.astype(np.{native})."
        )
    if dtype.names is not None:
        fields = " and ".join(f"{name}[{field!r}]" for field in dtype.names[:2])
        return BadArgument(f"'{name}' holds records of dtype {dtype}.", f"Pass its fields as arrays: {fields}.")
    if dtype.kind in "mM":
        text = f"({name} - {name}.min())" if dtype.kind == "M" else name
        what = "dates" if dtype.kind == "M" else "durations"
        return BadArgument(
            f"'{name}' holds {what} ({dtype}), which have no derivatives.",
            f"Pass numbers of a unit: {text} / np.timedelta64(1, 's').",
        )
    if dtype.kind in "SUT":
        return BadArgument(f"'{name}' holds text ({dtype}).", "Pass numbers; text may be an argument of its own.")
    known = "complex128" if dtype.kind == "c" else "float64"
    return BadArgument(
        f"'{name}' has dtype {dtype}, for which there are no derivatives.", f"Pass {name}.astype(np.{known})."
    )


# ---- flatten and unflatten -----------------------------------------------------------------------------------------


def flatten(value: Any) -> list[Any]:
    """The scalars and arrays of a runtime argument, in the order of the leaves of `abstract_of(value)`."""
    if leaf_type(value) is not None:
        return [value]
    struct = children_of(value)
    if struct is None:
        return []
    return [leaf for child in struct.children for leaf in flatten(child)]


def leaves_of(template: Any) -> Iterator[Leaf | Slot]:
    """The leaves of an abstract value, in order."""
    if isinstance(template, (Leaf, Slot)):
        yield template
    elif isinstance(template, Struct):
        for child in template.children:
            yield from leaves_of(child)


def unflatten(template: Any, leaves: Iterable[Any]) -> Any:
    """The runtime value of an abstract one.

    Parameters
    ----------
    template : Abstract
        Its Leaf nodes take `leaves` one after the other; a Slot takes the one at its index.
    leaves : iterable
        The scalars and arrays.
    """
    items = list(leaves)
    rest = iter(items)
    return map_leaves(template, lambda leaf: items[leaf.index] if isinstance(leaf, Slot) else next(rest))


def tangent_of_constant(value: Any) -> Any:
    """The tangent of a result that does not depend on the arguments: zero, or None of what has no tangent."""
    return type(value)(0.0) if isinstance(value, float | complex | np.inexact) else None


def map_leaves(template: Any, make: Callable[[Any], Any]) -> Any:
    """Build the runtime structure of an abstract value; `make` gives the value of each leaf."""
    if isinstance(template, (Leaf, Slot)):
        return make(template)
    if isinstance(template, StaticValue):
        return template.value
    children = [map_leaves(child, make) for child in template.children]
    return rebuild(template, children)


def rebuild(struct: Struct, children: list[Any]) -> Any:
    """A container of the class of `struct` with the given children."""
    cls = struct.cls
    if struct.kind == "tuple":
        return cls(*children) if hasattr(cls, "_fields") else tuple(children)
    if struct.kind == "list":
        return children
    if struct.kind == "dict":
        if cls is dict:
            return dict(zip(struct.keys, children, strict=True))
        made = cls()
        made.update(zip(struct.keys, children, strict=True))
        return made
    made = object.__new__(cls)  # the attributes are given, so the constructor is not called
    for key, child in zip(struct.keys, children, strict=True):
        object.__setattr__(made, key, child)
    return made
