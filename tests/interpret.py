"""Run lowered programs directly: what each node computes, without any printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    For,
    Function,
    If,
    Load,
    Raise,
    Return,
    Routine,
    Slice,
    Store,
    Tuple,
    Var,
    While,
)

_NEXT, _BREAK, _CONTINUE = "next", "break", "continue"


def run(function: Function, *args: Any) -> tuple[Any, ...]:
    """The values that a program returns for flat arguments."""
    values = {param.name: arg for param, arg in zip(function.params, args, strict=True)}
    *body, last = function.body
    assert isinstance(last, Return)
    outcome = _block(tuple(body), values)
    assert outcome is _NEXT
    return tuple(evaluate(value, values) for value in last.values)


def evaluate(expr: Any, values: dict[str, Any]) -> Any:
    """The value of an expression or index item."""
    match expr:
        case Var(name):
            return values[name]
        case Const(value):
            return value
        case Tuple(items):
            return tuple(evaluate(item, values) for item in items)
        case Slice(lo, hi, step):
            return slice(*(None if part is None else evaluate(part, values) for part in (lo, hi, step)))
        case Load(array, index):
            return values[array.name][tuple(evaluate(item, values) for item in index)]
        case Call(intrinsics.and_, (a, b)):
            return evaluate(a, values) and evaluate(b, values)
        case Call(intrinsics.or_, (a, b)):
            return evaluate(a, values) or evaluate(b, values)
        case Call(intrinsics.ifelse, (test, a, b)):
            return evaluate(a if evaluate(test, values) else b, values)
        case Call(np.copy, (array,), ()):
            return np.array(evaluate(array, values), order="C")  # it is printed as a.copy()
        case Call(Routine() as routine, args):
            assert routine.function is not None
            results = run(routine.function, *(evaluate(arg, values) for arg in args))
            return results[0] if len(results) == 1 else results
        case Call(func, args, kwargs):
            given = [evaluate(arg, values) for arg in args]
            return func(*given, **{name: evaluate(value, values) for name, value in kwargs})
    raise TypeError(expr)


def _block(block: Block, values: dict[str, Any]) -> str:
    for stmt in block:
        outcome = _statement(stmt, values)
        if outcome is not _NEXT:
            return outcome
    return _NEXT


def _statement(stmt: Any, values: dict[str, Any]) -> str:
    match stmt:
        case Assign(targets, value):
            result = evaluate(value, values)
            if len(targets) == 1:
                values[targets[0].name] = result
            else:
                values.update({target.name: item for target, item in zip(targets, result, strict=True)})
        case Store(array, index, value, accumulate):
            _store(values[array.name], tuple(evaluate(i, values) for i in index), evaluate(value, values), accumulate)
        case Effect(call):
            evaluate(call, values)
        case If(test, body, orelse):
            return _block(body if evaluate(test, values) else orelse, values)
        case For(target, start, stop, step, body):
            bounds = range(*(evaluate(part, values) for part in (start, stop, step)))
            return _loop(body, values, lambda: iter(bounds), target.name)
        case While(test, body):
            while evaluate(test, values):
                if _block(body, values) is _BREAK:
                    break
        case Break():
            return _BREAK
        case Continue():
            return _CONTINUE
        case Raise(exception, message):
            raise exception(*(evaluate(part, values) for part in message))
        case Comment():
            pass
        case _:
            raise TypeError(stmt)
    return _NEXT


def _loop(body: Block, values: dict[str, Any], items: Callable[[], Any], target: str) -> str:
    for item in items():
        values[target] = item
        if _block(body, values) is _BREAK:
            break
    return _NEXT


def _store(array: np.ndarray, index: tuple[Any, ...], value: Any, accumulate: bool) -> None:
    if not accumulate:
        array[index if index else ...] = value
    elif any(isinstance(item, np.ndarray) for item in index):
        np.add.at(array, index, value)
    elif not index:
        array += value
    else:
        array[index] += value
