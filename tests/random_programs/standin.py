"""A second reverse mode, of scalars on a tape, over residues.

It judges the judges: run in place of generated code, it must agree with the dual numbers exactly, program by program.
It shares nothing with either side but the field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tests.random_programs.field import FieldMath, FieldNumpy
from tests.random_programs.program import Program
from tests.random_programs.residues import PRIME, OutsideField, Residue, lift, residue


class Node(Residue):
    """A residue that remembers what it was made of: pairs of (node, partial derivative)."""

    __slots__ = ("bar", "parents")
    tape: ClassVar[list[Node]] = []

    def __init__(self, n: int, parents: tuple[tuple[Residue, Any], ...] = ()) -> None:
        super().__init__(n)
        self.parents = parents
        self.bar = 0
        self.tape.append(self)

    @staticmethod
    def plain(x: Residue) -> Residue:
        return Residue(x.n)


def _operation(
    name: str, partials: Callable[[Residue, Residue], tuple[Any, Any]]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    function = getattr(Residue, f"__{name}__")

    def both(a: Any, b: Any) -> Node:
        x, y = Residue(_residue(a)), Residue(_residue(b))
        by_x, by_y = partials(x, y)
        return Node(function(x, y).n, ((a, by_x), (b, by_y)))

    def forward(self: Node, other: Any) -> Any:
        return NotImplemented if residue(other) is None else both(self, other)

    def reflected(self: Node, other: Any) -> Any:
        return NotImplemented if residue(other) is None else both(other, self)

    return forward, reflected


def _residue(x: Any) -> int:
    n = residue(x)
    assert n is not None
    return n


def _function(name: str, partial: Callable[[Residue, Residue], Any]) -> Callable[[Node], Node]:
    function = getattr(Residue, name)

    def method(self: Node) -> Node:
        x = Residue(self.n)
        y = function(x)
        return Node(y.n, ((self, partial(x, y)),))

    return method


Node.__add__, Node.__radd__ = _operation("add", lambda x, y: (1, 1))
Node.__sub__, Node.__rsub__ = _operation("sub", lambda x, y: (1, -1))
Node.__mul__, Node.__rmul__ = _operation("mul", lambda x, y: (y, x))
Node.__truediv__, Node.__rtruediv__ = _operation("truediv", lambda x, y: (1 / y, -x / y / y))
Node.__mod__, Node.__rmod__ = _operation("mod", lambda x, y: (1, -(x // y)))
for _name, _partial in {
    "__neg__": lambda x, y: -1,
    "__abs__": lambda x, y: 0 if y == 0 else 1 if y == x else -1,
    "exp": lambda x, y: y,
    "expm1": lambda x, y: y + 1,
    "log": lambda x, y: 1 / x,
    "log1p": lambda x, y: 1 / (x + 1),
    "sqrt": lambda x, y: 1 / (2 * y),
    "cbrt": lambda x, y: 1 / (3 * y * y),
    "sin": lambda x, y: x.cos(),
    "cos": lambda x, y: -x.sin(),
    "tan": lambda x, y: 1 / (x.cos() * x.cos()),
    "sinh": lambda x, y: x.cosh(),
    "cosh": lambda x, y: x.sinh(),
    "tanh": lambda x, y: 1 / (x.cosh() * x.cosh()),
    "arcsin": lambda x, y: 1 / (1 - x * x).sqrt(),
    "arccos": lambda x, y: -1 / (1 - x * x).sqrt(),
    "arctan": lambda x, y: 1 / (x * x + 1),
    "arcsinh": lambda x, y: 1 / (x * x + 1).sqrt(),
}.items():
    setattr(Node, _name, _function(_name, _partial))


def _power(self: Node, exponent: Any) -> Any:
    if isinstance(exponent, np.ndarray):
        return NotImplemented
    if isinstance(exponent, Node):
        raise OutsideField("a power with a computed exponent")
    x = Residue(self.n)
    return Node((x**exponent).n, ((self, lift(exponent) * x ** (exponent - 1) if exponent else 0),))


def _arctan2(a: Any, b: Any) -> Node:
    y, x = Residue(_residue(a)), Residue(_residue(b))
    q = x * x + y * y
    return Node(y.arctan2(x).n, ((a, x / q), (b, -y / q)))


class NodeNumpy(FieldNumpy):
    arctan2 = np.frompyfunc(_arctan2, 2, 1)


class NodeMath(FieldMath):
    atan2 = staticmethod(_arctan2)


Node.__pow__ = _power
Node.hypot = lambda self, other: (self * self + other * other).sqrt()


def nodes(x: Any) -> list[Any]:
    """The floating numbers of a structure, one by one."""
    if isinstance(x, tuple | list):
        return [item for part in x for item in nodes(part)]
    if isinstance(x, np.ndarray):
        return list(x.ravel()) if x.dtype.kind in "fO" else []
    return [x] if isinstance(x, Residue | float | np.floating) else []


def pullback(program: Program, weights: Sequence[Residue]) -> list[Any]:
    """The gradient of the weighted sum of all floating results, in the shape of each `wrt` argument.

    `weights` are used in order and must be at least as many as the results.
    """
    Node.tape = []
    args = [lift(arg) if isinstance(arg, float) else arg for arg in program.arguments(FieldNumpy())]
    for k in program.wrt:
        if isinstance(args[k], np.ndarray):
            frozen = not args[k].flags.writeable
            args[k].setflags(write=True)
            for index in np.ndindex(args[k].shape):
                args[k][index] = Node(args[k][index].n)
            args[k].setflags(write=not frozen)
        else:
            args[k] = Node(_residue(args[k]))
    inputs = [args[k].copy() if isinstance(args[k], np.ndarray) else args[k] for k in program.wrt]
    names = {
        "__float__": lift,
        "float": lambda x=0.0: lift(x),
        "sum": lambda items: _total(items),
        "pow": lambda x, y: x**y,
    }
    result = program.load_with(NodeNumpy(), NodeMath(), names)(*args)
    for node, weight in zip(nodes(result), weights, strict=False):
        if isinstance(node, Node):
            node.bar = (node.bar + weight.n) % PRIME
    for node in reversed(Node.tape):
        for parent, partial in node.parents if node.bar else ():
            if isinstance(parent, Node):
                parent.bar = (parent.bar + node.bar * _residue(partial)) % PRIME
    return [_bars(x) for x in inputs]


def _bars(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return Residue(x.bar)
    out = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        out[index] = Residue(x[index].bar)
    return out


def _total(items: Any) -> Any:
    total: Any = 0
    for item in items:
        total = total + item
    return total
