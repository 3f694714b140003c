"""IR dump: programs as text for debugging passes.  Generated code is printed by `tapegen.backend`."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.nodes import (
    Assign,
    Block,
    Break,
    Call,
    Comment,
    Const,
    Continue,
    Effect,
    Expr,
    For,
    Function,
    If,
    Load,
    Pop,
    Push,
    Raise,
    Return,
    Slice,
    Stmt,
    Store,
    Tuple,
    Var,
    While,
)
from tapegen.ir.types import Array, ListOf, RandomGenerator, Scalar, TupleOf, Type

_INFIX = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    intrinsics.and_: "and",
    intrinsics.or_: "or",
}
_PREFIX = {operator.neg: "-", operator.pos: "+", operator.not_: "not ", operator.invert: "~"}


def function_text(function: Function, *, types: bool = False) -> str:
    """A whole program; with `types`, each assigned name carries its type."""
    params = ", ".join(_typed(param, types) for param in function.params)
    return "\n".join([f"def {function.name}({params}):", *_block(function.body, 1, types)]) + "\n"


def block_text(block: Block, *, types: bool = False) -> str:
    """A block, one statement a line."""
    return "\n".join(_block(block, 0, types)) + "\n"


def expr_text(expr: Expr | Slice) -> str:
    """An expression or index item.  Every operation below the outermost is in parentheses."""
    match expr:
        case Var(name):
            return name
        case Const(value):
            return getattr(value, "__name__", None) or repr(value)
        case Tuple(items):
            return f"({', '.join(map(expr_text, items))}{',' if len(items) == 1 else ''})"
        case Slice(lo, hi, step):
            text = f"{_or_empty(lo)}:{_or_empty(hi)}"
            return text if step is None else f"{text}:{expr_text(step)}"
        case Load(array, index):
            return f"{array.name}[{', '.join(map(expr_text, index)) or '...'}]"
        case Call(func, args, kwargs):
            if func in _INFIX and len(args) == 2 and not kwargs:
                return f"{_inner(args[0])} {_INFIX[func]} {_inner(args[1])}"
            if func in _PREFIX and len(args) == 1:
                return f"{_PREFIX[func]}{_inner(args[0])}"
            parts = [*map(expr_text, args), *(f"{name}={expr_text(value)}" for name, value in kwargs)]
            return f"{callable_text(func)}({', '.join(parts)})"
    raise TypeError(f"not an expression: {expr!r}")


_SPELLED_OUT = frozenset({"math", "cmath", "operator", "logging"})
_PREFIXES = {"numpy": "np.", "tapegen": "ops.", "_warnings": "warnings."}


def callable_text(func: object) -> str:
    """The name of a called function, with the module where that helps."""
    name = getattr(func, "__name__", None) or repr(func)
    if intrinsics.is_draw(func):
        return func.__qualname__  # type: ignore[attr-defined]
    module = getattr(func, "__module__", None) or _module_of_ufunc(func)
    if module == "tapegen.rules.gradient_modifiers":
        return f"tg.{name}"
    if module in ("numpy.linalg", "numpy.fft"):
        return f"np.{module.partition('.')[2]}.{name}"
    if module.startswith("numpy.ma"):
        return f"np.ma.{name}"
    package, _, rest = module.partition(".")
    if package == "scipy":
        return ".".join(filter(None, (package, rest.partition(".")[0], name)))
    prefix = f"{package}." if package in _SPELLED_OUT else _PREFIXES.get(package, "")
    return prefix + name


def _module_of_ufunc(func: object) -> str:
    """The package of a ufunc, which has no `__module__`."""
    special = sys.modules.get("scipy.special")
    of_numpy = getattr(np, getattr(func, "__name__", ""), None) is func
    return "numpy" if special is None or of_numpy or not isinstance(func, np.ufunc) else "scipy.special"


def type_text(type_: Type) -> str:
    """A short type: `float64` is a Python scalar, `np.float64` a NumPy scalar, `float64[:,1]` an array."""
    match type_:
        case Scalar(dtype, python):
            return dtype if python else f"np.{dtype}"
        case Array(dtype, rank, layout):
            axes = ",".join("1" if type_.is_unit(k) else ":" for k in range(rank))
            return f"{dtype}[{axes}]{'' if layout == 'A' else layout}"
        case ListOf(item):
            return f"list[{type_text(item)}]"
        case TupleOf(items):
            return f"({', '.join(map(type_text, items))})"
        case RandomGenerator(kind):
            return kind
    return "static"


def _inner(expr: Expr) -> str:
    text = expr_text(expr)
    operation = isinstance(expr, Call) and (expr.func in _INFIX or expr.func in _PREFIX)
    return f"({text})" if operation else text


def _or_empty(expr: Expr | None) -> str:
    return "" if expr is None else expr_text(expr)


def _typed(var: Var, types: bool) -> str:
    return f"{var.name}: {type_text(var.type)}" if types else var.name


def _block(block: Block, depth: int, types: bool) -> Iterator[str]:
    pad = "    " * depth
    if not block:
        yield f"{pad}pass"
    for stmt in block:
        match stmt:
            case If(test, body, orelse):
                yield f"{pad}if {expr_text(test)}:"
                yield from _block(body, depth + 1, types)
                if orelse:
                    yield f"{pad}else:"
                    yield from _block(orelse, depth + 1, types)
            case For(target, start, stop, step, body):
                bounds = ", ".join(map(expr_text, (start, stop, step)))
                yield f"{pad}for {target.name} in range({bounds}):"
                yield from _block(body, depth + 1, types)
            case While(test, body):
                yield f"{pad}while {expr_text(test)}:"
                yield from _block(body, depth + 1, types)
            case _:
                yield pad + _simple(stmt, types)


def _simple(stmt: Stmt, types: bool) -> str:
    match stmt:
        case Assign(targets, value):
            return f"{', '.join(_typed(target, types) for target in targets)} = {expr_text(value)}"
        case Store(array, index, value, accumulate):
            place = expr_text(Load(array, index, array.type))
            return f"{place} {'+=' if accumulate else '='} {expr_text(value)}"
        case Effect(call):
            return expr_text(call)
        case Return(values):
            return f"return {', '.join(map(expr_text, values))}".rstrip()
        case Raise(exception, message):
            return f"raise {exception.__name__}({', '.join(map(expr_text, message))})"
        case Push(tape, value):
            return f"push {tape}, {expr_text(value)}"
        case Pop(target, tape):
            return f"{target.name} = pop {tape}"
        case Comment(text):
            return f"# {text}"
        case Break():
            return "break"
        case Continue():
            return "continue"
    raise TypeError(f"not a statement: {stmt!r}")
