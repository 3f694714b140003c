"""Forward accumulator: tangents computed along with the operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tapegen.errors import MissingRule
from tapegen.runtime.tracebacks import hides_frames
from tapegen.tape.engine import pytree
from tapegen.tape.engine.leaks import reraise_refusal
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.engine.state import STATE, Call, is_tracked
from tapegen.tape.gradient_arguments import UnconnectedGradients, is_zero_wanted, operands, warn_not_floating
from tapegen.tape.gradient_tape import GradientTape
from tapegen.tape.recorder import Following
from tapegen.tape.tensors import compiled_calls
from tapegen.tape.tensors.accumulation import as_tensor, divided, strongly, unbroadcast
from tapegen.tape.tensors.closures import Closure
from tapegen.tape.tensors.records import Record, WideRecord
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh
from tapegen.tape.tensors.variable import Variable, convert_to_tensor


class ForwardAccumulator(Following):
    """Computes Jacobian-vector products while operations run.

    Parameters
    ----------
    primals : tensor, variable, or a structure of them
        What varies.
    tangents : array, tensor, or a structure of them
        The direction, in the structure of `primals`.

    Examples
    --------
    >>> import numpy as np, tapegen as tg
    >>> x = tg.constant(2.0)
    >>> with tg.ForwardAccumulator(x, tg.constant(1.0)) as acc:
    ...     y = x**3
    >>> acc.jvp(y).numpy()
    np.float64(12.0)
    """

    @hides_frames
    def __init__(self, primals: Any, tangents: Any) -> None:
        super().__init__()
        self._dots: dict[int, Any] = {}
        self._recording = False
        found = operands("primals", primals)
        given = pytree.aligned(primals, tangents) if isinstance(primals, list | tuple | dict) else [tangents]
        if len(found) != len(given):
            raise ValueError(f"{len(found)} primals have {len(given)} tangents.")
        for primal, tangent in zip(found, given, strict=True):
            self._watch(primal, tangent)

    def _watch(self, primal: Traced, tangent: Any) -> None:
        if primal._value.dtype.kind not in "fc":
            warn_not_floating("primal", primal)
            return
        dot = tangent if isinstance(tangent, Traced) else np.asarray(tangent)
        if dot.shape != primal.shape:
            raise ValueError(f"The tangent of a primal of shape {primal.shape} has shape {dot.shape}.")
        if dot.dtype != primal.dtype:
            if isinstance(dot, Traced) or dot.dtype.kind not in "iuf":
                raise TypeError(f"The tangent of a primal of type {primal.dtype} has type {dot.dtype}.")
            dot = dot.astype(primal.dtype)
        self.tracked.add(primal._id)
        held = self._dots.get(primal._id)
        dot = convert_to_tensor(dot)
        self._dots[primal._id] = dot if held is None else held + dot

    # ---- context -----------------------------------------------------------------------------------------------------

    @hides_frames
    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("Accumulator is already recording.")
        STATE.active = [*STATE.active, self]
        self._recording = True
        return self

    @hides_frames
    def __exit__(self, _: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        STATE.active = [recorder for recorder in STATE.active if recorder is not self]
        self._recording = False
        reraise_refusal(error, trace)

    def read(self, variable: Variable) -> None:
        """Variables vary only if they are primals."""

    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """Tangents are zero from here on."""

    @hides_frames
    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The tangents of results, in their structure; None, or zeros, for inactive results."""
        zero = is_zero_wanted(unconnected_gradients)
        found = []
        for item in operands("primals", primals):
            dot = self._dots.get(item._id)
            if dot is None and zero:
                dot = fresh(np.zeros(item.shape, item.dtype))
            found.append(dot)
        return pytree.refilled(primals, found)

    # ---- tangents ----------------------------------------------------------------------------------------------------

    def _take(self, call: Call, record: Record | None, floating: Sequence[int]) -> None:
        if record is None:
            return
        before = STATE.active
        STATE.active = before[: before.index(self)]  # tangents depend on accumulators that were entered earlier
        try:
            with np.errstate(all="ignore"):
                dots = self._pushed(record, call)
        finally:
            STATE.active = before
        for item, number, dot in zip(call.outs, call.out_ids, dots, strict=True):
            if dot is not None and number in floating:
                dot = unbroadcast(dot, item)
                self._dots[number] = dot if isinstance(dot, Tensor) else fresh(dot)
                self.tracked.add(number)

    def _pushed(self, record: Record, call: Call) -> tuple[Any, ...]:
        """Tangents of the results (None: inactive)."""
        operation = record.operation
        single = type(call.out) is not tuple
        if isinstance(operation, Closure):
            assert isinstance(record, WideRecord)
            return self._through_closure(operation, record)
        dots = [self._bare(self._dots[number]) for _, _, _, number, _ in record.inputs]
        if operation.kind == "linear":
            result = record.along(dots)
            return (result,) if single else tuple(result)
        given = tuple(as_tensor(value, number) for value, number in zip(call.args, call.ids, strict=True))
        result = as_tensor(call.out, call.out_ids[0] if single else call.out_ids)
        if operation.kind == "partials":
            return (self._along_partials(record, given, result, dots),)
        rule = operation.rule
        assert rule is not None
        if rule.pushforward is None:
            raise MissingRule(
                f"{operation.name} has no forward derivative",
                "Use a GradientTape, or give its rule a pushforward.",
                user_span(),
            )
        push = rule.pushforward
        named = {**call.kwargs, **self._named(operation, push, call, result)}
        pushed = compiled_calls.run_body(push, lambda a, k: compiled_calls.run(push, a, k), given, named)
        return (pushed,) if single else tuple(pushed)

    def _bare(self, dot: Tensor) -> Any:
        """A tangent as an array, where no recorder tracks it."""
        return dot if is_tracked(dot._id) else dot._value

    def _along_partials(self, record: Record, args: tuple[Any, ...], out: Any, dots: list[Any]) -> Any:
        parts, _ = record.local_derivatives(args, out, wild=True)
        total = None
        for (place, _, _, _, _), dot in zip(record.inputs, dots, strict=True):
            part = parts[place]
            if part is not None:
                if record.plan.inverse[place]:
                    term = divided(dot, part, strong=True)
                else:
                    term = strongly(dot, part)
                total = term if total is None else total + term
        return total

    def _named(
        self,
        operation: Operation,
        pushforward: Callable[..., Any],
        call: Call,
        out: Any,
    ) -> dict[str, Any]:
        """The keyword arguments of a pushforward: tangents (zeros for inactive arguments) and the result."""
        declared = inspect.signature(pushforward).parameters
        extra: dict[str, Any] = {"out": out} if "out" in declared else {}
        assert operation.rule is not None
        for name in operation.rule.wrt:
            if name == operation.variadic:
                start = len(operation.names)
                extra[f"{name}_dot"] = tuple(map(self._tangent, call.args[start:], call.ids[start:]))
            else:
                place = operation.names.index(name)
                is_given = place < len(call.args)
                extra[f"{name}_dot"] = self._tangent(call.args[place], call.ids[place]) if is_given else 0.0
        return {name: value for name, value in extra.items() if name in declared}

    def _tangent(self, value: Any, number: Any) -> Any:
        if type(number) is tuple:
            return type(value)(map(self._tangent, value, number))
        dot = self._dots.get(number) if number else None
        if dot is None:
            return np.zeros(np.shape(value), getattr(value, "dtype", None)) if np.ndim(value) else 0.0
        return self._bare(dot)

    def _through_closure(self, operation: Closure, record: WideRecord) -> tuple[Any, ...]:
        if operation.push is not None:
            given = [self._bare(self._dots[n]) if n in self._dots else None for n in record.ids]
            pushed = operation.push(*given)
            if pushed is not None:
                return tuple(pushed)
        # the pullback is linear in its cotangents, and its transpose is the pushforward
        bars = [fresh(np.zeros(like.shape, like.dtype)) for like in record.outs_like]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(bars)
            pulled = operation.pull(*bars)
            pairs = [
                (convert_to_tensor(pulled[place]), self._dots[number])
                for place, _, _, number, _ in record.inputs
                if pulled[place] is not None
            ]
        if not pairs:
            return (None,) * len(bars)
        targets, weights = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return tuple(tape.gradient(targets, bars, weights))
