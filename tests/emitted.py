"""Small functions of the program form, and the lines that the printer makes of them."""

from __future__ import annotations

from tapegen.backend.printer.module import emit
from tapegen.ir.nodes import (
    Assign,
    Call,
    Expr,
    Function,
    Slice,
    Stmt,
    Var,
)
from tapegen.ir.types import FLOAT, INT, Array, ListOf

VECTOR, MATRIX = Array("float64", 1), Array("float64", 2)
x, y, n, i, k = Var("x", FLOAT), Var("y", FLOAT), Var("n", INT), Var("i", INT), Var("k", INT)
a, b, m = Var("a", VECTOR), Var("b", VECTOR), Var("m", MATRIX)
cell = Var("cell", Array("float64", 0))
where = Var("where", Array("int64", 1))
mask = Var("mask", Array("bool", 1))
ALL = Slice()
STRANGE = ListOf(FLOAT)  # never printed as an augmented assignment


def call(func: object, *args: Expr, type_: object = FLOAT, **kwargs: Expr) -> Call:
    return Call(func, args, tuple(kwargs.items()), type_)  # type: ignore[arg-type]


def function(*body: Stmt, params: tuple[Var, ...] = (), name: str = "f", **more: object) -> Function:
    return Function(name, params, body, **more)  # type: ignore[arg-type]


def body_of(*statements: Stmt, decorator: str | None = None) -> str:
    """The lines of a function with this body, without its indentation."""
    text = emit(function(*statements), decorator=decorator).text
    lines = text[text.index("def f():\n") :].splitlines()[1:]
    return "\n".join(line.removeprefix("    ") for line in lines)


def text_of(expr: Expr) -> str:
    return body_of(Assign((Var("r", STRANGE),), expr)).removeprefix("r = ")
