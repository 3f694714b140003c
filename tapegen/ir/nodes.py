"""IR nodes: expressions, statements and functions.  Nodes are frozen; statements compare by identity."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from tapegen.errors import Span
from tapegen.ir.types import BOOL, FLOAT, INT, STATIC, Scalar, TupleOf, Type


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(*, eq: bool = True) -> Callable[[type], type]:
    """A dataclass that is frozen for the type checker only: at run time that makes construction three times faster."""
    return dataclass(slots=True, eq=eq)


@node()
class Remembered:
    """Cached facts about an expression.  They are not part of its value.

    Attributes
    ----------
    occurring : tuple of Var or None
        The Vars in it, with repetitions (`traversal.occurrences`).
    mentioned : frozenset of Var or None
        The Vars in it (`traversal.free_vars`).
    hashed : int or None
        Its hash.
    below : tuple or None
        Itself and all its subexpressions (`traversal.subexpressions`), unless there are too many.
    called : frozenset or None
        The functions that it calls (`traversal.callees`).
    linear : object
        Its linear form (`affine.linear`), False where it is an atom.
    """

    occurring: tuple[Var, ...] | None = field(init=False, default=None, compare=False, repr=False)
    mentioned: frozenset[Var] | None = field(init=False, default=None, compare=False, repr=False)
    hashed: int | None = field(init=False, default=None, compare=False, repr=False)
    below: tuple[Any, ...] | None = field(init=False, default=None, compare=False, repr=False)
    called: frozenset[Any] | None = field(init=False, default=None, compare=False, repr=False)
    linear: Any = field(init=False, default=None, compare=False, repr=False)


@node(eq=False)
class RememberedBlocks:
    """Cached facts about a statement, nested statements included: its reads, assignments, calls and nested statements.

    `touches` are its element accesses (`dependence.in_loops`), False where it does more than access elements.
    Each statement has `targets`, the Vars that it assigns itself, `headers`, the expressions and index items that it
    evaluates itself, and `blocks`, the statements in it.
    """

    occurring: tuple[Var, ...] | None = field(init=False, default=None, repr=False)
    mentioned: frozenset[Var] | None = field(init=False, default=None, repr=False)
    valued: frozenset[Var] | None = field(init=False, default=None, repr=False)
    assigned: frozenset[Var] | None = field(init=False, default=None, repr=False)
    called: frozenset[Any] | None = field(init=False, default=None, repr=False)
    nested: tuple[Stmt, ...] | None = field(init=False, default=None, repr=False)
    touches: Any = field(init=False, default=None, repr=False)


# ---- expressions ---------------------------------------------------------------------------------------------------


class Var:
    """A variable: a value or memory location.

    There is one object for each name and type: Vars are compared and hashed as objects.
    """

    __slots__ = ("__weakref__", "name", "type")
    __match_args__ = ("name", "type")

    name: str
    type: Type

    def __new__(cls, name: str, type: Type) -> Var:
        with _VARS_LOCK:
            var = _VARS.get((name, type))
            if var is None:
                var = _VARS[name, type] = super().__new__(cls)
                var.name, var.type = name, type
            return var

    def __reduce__(self) -> tuple[Any, ...]:
        return Var, (self.name, self.type)

    def __repr__(self) -> str:
        return f"Var(name={self.name!r}, type={self.type!r})"


_VARS: weakref.WeakValueDictionary[tuple[str, Type], Var] = weakref.WeakValueDictionary()
_VARS_LOCK = threading.Lock()


@node()
class Const:
    """A compile-time constant: a number, None, str, dtype, or a function passed as an argument."""

    value: object

    @property
    def type(self) -> Type:
        return _CONST_TYPES.get(type(self.value), STATIC)

    def __eq__(self, other: object) -> bool:  # 1 == 1.0 == True and 0.0 == -0.0, but the constants differ
        if type(other) is not Const or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        return self.value == other.value if type(self.value) is int else repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(self.value if type(self.value) is int else repr(self.value))


_CONST_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    complex: Scalar("complex128"),
    np.float32: Scalar("float32", python=False),
}


@node()
class Call(Remembered):
    """`func(*args, **kwargs)`.

    `func` is the Python object itself: `operator.mul` for `a * b`, `np.sin`, `math.exp`, `abs`, or one of the marker
    functions of `tapegen.ir.intrinsics` for what Python writes as syntax (`and`, `or`, ternary, `x.shape[k]`, casts).
    Methods are normalized to functions (`x.sum()` is `Call(np.sum, (x,))`).
    """

    func: Callable
    args: tuple[Expr, ...]
    kwargs: tuple[tuple[str, Expr], ...] = ()
    type: Type = FLOAT

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Call or self.func != other.func:
            return False
        if self.args != other.args or self.kwargs != other.kwargs:
            return False
        return self.type is other.type or self.type == other.type

    def __hash__(self) -> int:
        if self.hashed is None:
            for arg in self.args:
                if type(arg) is Call:  # the tuple would hash it from C, whose recursion limit is 1500 in Python 3.12
                    arg.__hash__()
            self.hashed = hash((self.func, self.args, self.kwargs))  # type: ignore[misc]
        return self.hashed


@node()
class Tuple(Remembered):
    """A tuple display: shape arguments, sequences given to np.stack, several results."""

    items: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return TupleOf(tuple(item.type for item in self.items))

    def __hash__(self) -> int:
        if self.hashed is None:
            self.hashed = hash(self.items)  # type: ignore[misc]
        return self.hashed


@node()
class Slice(Remembered):
    """`lo:hi:step` inside an index; None where the source leaves a part out."""

    lo: Expr | None = None
    hi: Expr | None = None
    step: Expr | None = None

    def __hash__(self) -> int:
        if self.hashed is None:
            self.hashed = hash((self.lo, self.hi, self.step))  # type: ignore[misc]
        return self.hashed


@node()
class Load(Remembered):
    """`array[index]`.

    `index` items are Slice, Const(None) for a new axis, integer scalars, or integer/boolean array Vars.  Ellipsis is
    expanded when lowered; trailing full slices may be left out.  With only integers and slices (and new axes) the
    result is a *view* (or a scalar when every axis has an integer); an array item makes a copy.
    """

    array: Var
    index: tuple[Index, ...]
    type: Type

    def __hash__(self) -> int:
        if self.hashed is None:
            self.hashed = hash((self.array, self.index))  # type: ignore[misc]
        return self.hashed


Expr = Var | Const | Call | Tuple | Load
Index = Expr | Slice

# ---- statements ----------------------------------------------------------------------------------------------------


@node(eq=False)
class Assign(RememberedBlocks):
    """`target = value`; several targets take the items of a tuple value at once (swap, divmod)."""

    targets: tuple[Var, ...]
    value: Expr
    origin: Span | None = None
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.value,)


@node(eq=False)
class Store(RememberedBlocks):
    """`array[index] = value`, or `+=` with `accumulate`.  An empty index means the whole array (or 0-d cell).

    With a repeated integer-array index `accumulate` adds every occurrence (`np.add.at`).
    """

    array: Var
    index: tuple[Index, ...]
    value: Expr
    accumulate: bool = False
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.array, *self.index, self.value)


@node(eq=False)
class Effect(RememberedBlocks):
    """A call made for its effect alone: `print(...)`, `ops.append(list, value)`."""

    call: Call
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.call,)


@node(eq=False)
class If(RememberedBlocks):
    test: Expr
    body: Block
    orelse: Block = ()
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.test,)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body, self.orelse)


@node(eq=False)
class For(RememberedBlocks):
    """`for target in range(start, stop, step)`.  `step` is a Const unless the user computed it."""

    target: Var
    start: Expr
    stop: Expr
    step: Expr
    body: Block
    origin: Span | None = None

    @property
    def targets(self) -> tuple[Var, ...]:
        return (self.target,)

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.start, self.stop, self.step)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)


@node(eq=False)
class While(RememberedBlocks):
    test: Expr
    body: Block
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.test,)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (self.body,)


@node(eq=False)
class Break(RememberedBlocks):
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()
    headers: ClassVar[tuple[Any, ...]] = ()


@node(eq=False)
class Continue(RememberedBlocks):
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()
    headers: ClassVar[tuple[Any, ...]] = ()


@node(eq=False)
class Return(RememberedBlocks):
    """The last statement of a function, and nowhere else."""

    values: tuple[Expr, ...]
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return self.values


@node(eq=False)
class Raise(RememberedBlocks):
    """`raise exception(message)`; the message is printed as it stands in the source."""

    exception: type[BaseException]
    message: tuple[Expr, ...] = ()
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return self.message


@node(eq=False)
class Push(RememberedBlocks):
    """Sweep only: record `value` on `tape`."""

    tape: str
    value: Expr
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()

    @property
    def headers(self) -> tuple[Any, ...]:
        return (self.value,)


@node(eq=False)
class Pop(RememberedBlocks):
    """Sweep only: take back what `Push` recorded, last in first out."""

    target: Var
    tape: str
    origin: Span | None = None
    blocks: ClassVar[tuple[Block, ...]] = ()
    headers: ClassVar[tuple[Any, ...]] = ()

    @property
    def targets(self) -> tuple[Var, ...]:
        return (self.target,)


@node(eq=False)
class Comment(RememberedBlocks):
    """A comment line of the generated text."""

    text: str
    origin: Span | None = None
    targets: ClassVar[tuple[Var, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()
    headers: ClassVar[tuple[Any, ...]] = ()


Stmt = Assign | Store | Effect | If | For | While | Break | Continue | Return | Raise | Push | Pop | Comment
Block = tuple[Stmt, ...]


def primal_origin(stmt: Stmt) -> Span | None:
    """The user's statement that this one is a part of; None for adjoints."""
    return None if stmt.origin is None or stmt.origin.adjoint else stmt.origin


# ---- programs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """One program: flat parameters, a block that ends in Return."""

    name: str
    params: tuple[Var, ...]
    body: Block
    defaults: tuple[tuple[str, Expr], ...] = ()  # of trailing parameters
    doc: tuple[str, ...] = ()
    origin: Span | None = None
    globals: tuple[tuple[str, object], ...] = field(default=())  # extra globals of the text, e.g. opaque functions
    tapes: tuple[Var, ...] = ()  # arrays that the sweeps themselves index, never out of bounds
    shared: tuple[frozenset[Var], ...] = ()  # parameters that may share memory; all others are disjoint
    backward: bool = False  # a backward sweep alone
    inner: bool = False  # called by the program: arguments have known types, but any size may be 1
    computed: tuple[Var, ...] = ()  # parameters that are not the user's arguments: their sizes may be 1
    known: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)  # `traversal.once`
    tangents: tuple[tuple[Var, Var], ...] = ()  # (parameter, parameter with its tangent), of equal shapes
    deciding: frozenset[Var] = frozenset()  # variables on whose last bit control flow outside of it depends


@dataclass(eq=False, slots=True)
class Routine:
    """A recursive function, which the program calls by name: the `func` of such a Call.

    It changes none of its arguments: an array that the user's function writes is returned as a further result, which
    the caller stores.  A derivative of a routine is a routine as well.

    Attributes
    ----------
    name : str
        The user's name for it.
    function : Function or None
        Its program, once there is one.
    shares : tuple of frozenset of int
        For each result, the arguments that it may alias in the user's program (here it is a copy).
    source : Derivation or None
        For a derivative: the derivation that made it.
    derived : dict
        Its derivatives, by `Derivation`.
    by_chunks : bool
        Whether it is a chunk of a parallel loop, which writes into its arguments: a call stands for
        `intrinsics.run_chunks`, with the number of chunks first.
    """

    name: str
    function: Function | None = None
    shares: tuple[frozenset[int], ...] = ()
    source: Derivation | None = None
    derived: dict[Derivation, Routine] = field(default_factory=dict)
    by_chunks: bool = False

    @property
    def __name__(self) -> str:
        return self.name

    def derivative(self, kind: str, wrt: tuple[bool, ...], active: tuple[bool, ...]) -> Routine:
        """A derivative of this routine; its program is built later."""
        source = Derivation(self, kind, wrt, active)
        if source not in self.derived:
            self.derived[source] = Routine(f"{self.name.rstrip('_')}_{kind}", source=source)
        return self.derived[source]

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.name} is part of a program, and runs as its text")


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a routine is derived: with respect to which parameters, and which results are differentiated.

    A "jvp" takes the arguments and the tangents of those in `wrt`, and returns the results and the tangents of the
    active ones.  A "vjp" takes the arguments and the cotangents of the active results, and returns those of `wrt`.
    A "silent" one is the routine without its messages.
    """

    routine: Routine
    kind: str
    wrt: tuple[bool, ...]
    active: tuple[bool, ...]


def type_of(expr: Expr) -> Type:
    return expr.type
