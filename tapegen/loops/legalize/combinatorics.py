"""Combinatorial functions of integers that numba lacks, as loops: factorial, permutations, combinations."""

from __future__ import annotations

import math
import operator
from typing import Any

from tapegen.ir import intrinsics
from tapegen.ir.affine import minus, plus
from tapegen.ir.nodes import Assign, Call, Const, Expr, For, Stmt, Var
from tapegen.ir.types import BOOL, INT, Scalar
from tapegen.loops.legalize.builder import LoopBuilder

_LARGEST = 2**63 - 1


def counted(w: LoopBuilder, func: Any, args: tuple[Expr, ...], type_: Scalar) -> Expr:
    """`math.factorial`, `math.perm` and `math.comb`; a result that exceeds 64 bits raises OverflowError."""
    n, *rest = (w.bind(arg) for arg in args)
    for arg in (n, *rest):
        if not w.facts.nonnegative(w.facts.form(arg)):
            w.check(Call(operator.lt, (arg, Const(0)), (), BOOL), ValueError, f"{func.__name__}() of a negative number")
    if func is not math.comb:
        return _product(w, n, rest[0] if rest else n, divided=False)
    other = Call(min, (rest[0], minus(n, rest[0])), (), INT)
    beyond = Call(operator.gt, (rest[0], n), (), BOOL)
    return _product(w, n, w.bind(Call(intrinsics.ifelse, (beyond, rest[0], other), (), INT)), divided=True)


def _product(w: LoopBuilder, n: Expr, count: Expr, *, divided: bool) -> Expr:
    """`n*(n - 1)*...`, `count` factors (one of them is 0 if there are more than n), perhaps over `count!`."""
    result, i = w.fresh("product", INT), w.fresh("i", INT)
    factor = minus(n, i)
    with w.block() as body:
        limit = Call(operator.floordiv, (Const(_LARGEST), Call(max, (factor, Const(1)), (), INT)), (), INT)
        w.check(Call(operator.gt, (result, limit), (), BOOL), OverflowError, "the result has more than 64 bits")
        w.emit(_assign(w, result, Call(operator.mul, (result, factor), (), INT)))
        if divided:
            w.emit(_assign(w, result, Call(operator.floordiv, (result, plus(i, 1)), (), INT)))
    stop = Call(min, (count, plus(n, 1)), (), INT)
    w.emit(_assign(w, result, Const(1)), For(i, Const(0), stop, Const(1), tuple(body), w.origin))
    return result


def _assign(w: LoopBuilder, var: Var, value: Expr) -> Stmt:
    return Assign((var,), value, w.origin)
