"""What TensorFlow writes as functions because it cannot see Python's own loops and branches; here they are these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegen.tape.engine.pytree import mapped
from tapegen.tf.functions import stack
from tapegen.tf.values import convert_to_tensor


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """What one of two functions returns."""
    return true_fn() if pred else false_fn()


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any) -> Any:
    """The variables of a loop after its last iteration."""
    state = mapped(loop_vars, convert_to_tensor)
    while cond(*state):
        made = body(*state)
        state = mapped(made if isinstance(made, list | tuple) else [made], convert_to_tensor)
    return state


def map_fn(fn: Callable[[Any], Any], elems: Any) -> Any:
    """A function of each slice along the first axis."""
    return stack([fn(row) for row in convert_to_tensor(elems)])


def scan(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any) -> Any:
    """The running results of a function of the last result and the next slice."""
    results, last = [], initializer
    for row in convert_to_tensor(elems):
        last = fn(last, row)
        results.append(last)
    return stack(results)
