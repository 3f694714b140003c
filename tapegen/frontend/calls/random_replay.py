"""Random replay: the same draws in each run of a program that runs several times for one derivative."""

from __future__ import annotations

import numpy as np

from tapegen.errors import NotDifferentiable
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.pytree import Leaf
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Assign, Call, Const, Effect, Expr, Function


def emit_once(cx: Context, call: Call, hint: str | None) -> Leaf:
    """Emit a call with side effects, which runs exactly once."""
    var = cx.new_var(hint or TEMPORARY, call.type)
    cx.emit(Assign((var,), call, cx.origin))
    cx.effects += 1
    return Leaf(var)


def copy_generator(cx: Context, rng: Expr) -> Leaf:
    """A copy of the generator `rng`, in its current state."""
    return emit_once(cx, Call(intrinsics.copy_generator, (rng,), (), rng.type), "drawn")


def replay_draws(cx: Context, rng: Expr, other: Expr) -> None:
    """Set the state of `rng` to that of `other`."""
    cx.effect(Call(intrinsics.replay_draws, (rng, other), ()))


def refuse_unseeded(function: Function) -> None:
    """Refuse a program that runs several times for one derivative, with different draws in each run.

    Raises
    ------
    NotDifferentiable
        If it makes a generator without a seed.
    """
    for stmt in traversal.statements(function.body):
        if isinstance(stmt, (Assign, Effect)) and _is_unseeded(stmt.value if isinstance(stmt, Assign) else stmt.call):
            raise NotDifferentiable(
                "the function seeds a generator with what the system gives it, and this derivative runs it several "
                "times: no two runs would draw the same.",
                "Make the generator outside of the function, and pass it.",
                stmt.origin,
            )


def _is_unseeded(value: Expr) -> bool:
    match value:
        case Call(func, (Const(None),)) if func in intrinsics.MAKERS:
            return True
        case Call(np.random.RandomState.seed, (_,) | (_, Const(None))):
            return True
    return False
