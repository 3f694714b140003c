"""One recorded call: what is kept of it, and its pullback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegen.errors import MissingRule, Span
from tapegen.ir import ops
from tapegen.tape import dispatch
from tapegen.tape.closure import Closure, closure
from tapegen.tape.operation import Operation, Plan, operation_of, stand_in
from tapegen.tape.places import user_span
from tapegen.tape.state import flat_ids, is_tracked
from tapegen.tape.tensor import Tensor, known_as

Contribute = Callable[[int, Any], None]
_STRONG = operation_of(ops.strong_mul)
_SUM_TO = operation_of(ops.sum_to)


class Record:
    """A call on tracked tensors.

    Attributes
    ----------
    operation, plan : Operation, Plan
        The function, and what its derivatives with respect to the tracked arguments need.
    args, kwargs, out : object
        What was passed and what came out; stand-ins where only the shape is needed, None for an `out` nobody reads.
    ids : tuple
        The numbers of the tensors among `args`, in the same structure.
    out_ids : tuple of int
        The numbers of the results.
    inputs : tuple
        For each tracked tensor: the place among the results of the rule, the path within, its number, and what it is
        like.
    """

    __slots__ = ("args", "ids", "inputs", "kwargs", "operation", "out", "out_ids", "outs_like", "plan", "span")

    def __init__(self, operation: Operation, out_ids: tuple[int, ...]) -> None:
        self.operation = operation
        self.out_ids = out_ids
        self.plan: Plan | None = None
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.ids: tuple[Any, ...] = ()
        self.inputs: tuple[tuple[int, tuple[int, ...], int, Any], ...] = ()
        self.out: Any = None
        self.outs_like: tuple[Any, ...] = ()
        self.span: Span | None = None

    # ---- backwards ---------------------------------------------------------------------------------------------------

    def pull(self, bars: list[Any], contribute: Contribute, recorded: bool) -> None:
        """Give each tracked argument its contribution from the cotangents of the results (None: no cotangent)."""
        plan = self.plan
        if plan is None:
            if self.operation.kind == "closure":
                self._pull_closure(bars, contribute)
                return
            raise self.no_rule()
        args, out = self.args, self.out
        if recorded:
            recorded = any(isinstance(bar, Tensor) and is_tracked(bar._id) for bar in bars) or self._is_followed()
            if not recorded:
                bars = [bar._value if isinstance(bar, Tensor) else bar for bar in bars]
            else:
                args = tuple(again(value, number) for value, number in zip(args, self.ids, strict=True))
                if plan.reads_out:
                    out = again(out, self.out_ids if len(self.out_ids) > 1 else self.out_ids[0])
        if self.operation.kind == "partials":
            self._pull_partials(plan, args, out, bars[0], contribute)
            return
        if recorded and self.operation.kind == "linear":
            self._pull_linear(plan, bars, contribute)
            return
        for (_, _, number, like), term in self._terms(plan, args, out, bars):
            if term is not None:
                contribute(number, fit(term, like))

    def _pull_closure(self, bars: list[Any], contribute: Contribute) -> None:
        assert isinstance(self.operation, Closure)
        terms = self.operation.pull(*bars)
        for place, _, number, like in self.inputs:
            term = terms[place]
            if term is not None:
                contribute(number, fit(term, like))

    def _pull_partials(self, plan: Plan, args: Any, out: Any, bar: Any, contribute: Contribute) -> None:
        numbers = plan.numbers
        parts, strong = self.local_derivatives(args, out)
        for place, _, number, like in self.inputs:
            part = parts[place]
            if part is None:
                continue
            fixed = numbers[place]
            if fixed is not None:
                term = bar if fixed == 1.0 else -bar if fixed == -1.0 else bar * fixed
            elif strong:
                term = strongly(bar, part)
            else:
                term = part * bar
            contribute(number, fit(term, like))

    def local_derivatives(self, args: Any, out: Any) -> tuple[tuple[Any, ...], bool]:
        """The partial derivatives of an element-wise call, and whether they may fail to be finite."""
        plan = self.plan
        assert plan is not None
        strong = self.operation.nonfinite and not _is_polynomial(self.operation, args)
        if None not in plan.numbers:
            return plan.numbers, strong
        try:
            return self._partials(plan, args, out), strong
        except ZeroDivisionError:  # of Python's numbers, where a partial derivative is infinite
            args = tuple(np.float64(arg) if isinstance(arg, int | float) else arg for arg in args)
            return self._partials(plan, args, out), strong

    def _partials(self, plan: Plan, args: Any, out: Any) -> tuple[Any, ...]:
        if self.operation.takes_out:
            return plan.body(*args, **self.kwargs, out=out)
        return plan.body(*args, **self.kwargs)

    def _full_bars(self, bars: list[Any]) -> Any:
        if len(bars) == 1:
            return bars[0]
        return tuple(
            np.zeros(np.shape(like), like.dtype) if bar is None else bar
            for bar, like in zip(bars, self.outs_like, strict=True)
        )

    def _terms(self, plan: Plan, args: Any, out: Any, bars: list[Any]) -> Iterator[tuple[Any, Any]]:
        extra = {"out": out} if self.operation.takes_out else {}
        results = plan.body(*args, **self.kwargs, out_bar=self._full_bars(bars), **extra)
        for item in self.inputs:
            term = results[item[0]]
            for step in item[1]:
                term = term[step]
            yield item, term

    def _pull_linear(self, plan: Plan, bars: list[Any], contribute: Contribute) -> None:
        """The transpose of a linear function as a recorded operation, whose own transpose is the function itself."""
        given = [k for k, bar in enumerate(bars) if bar is not None]

        def transpose(*values: Any) -> list[Any]:
            every: list[Any] = [None] * len(bars)
            for k, value in zip(given, values, strict=True):
                every[k] = value
            return [fit(term, item[3]) for item, term in self._terms(plan, self.args, self.out, every)]

        def forward(*dots: Any) -> list[Any]:
            out = self.along(dots)
            return [out] if len(bars) == 1 else [out[k] for k in given]

        name = f"transpose of {self.operation.name}"
        for (_, _, number, _), term in zip(
            self.inputs, closure(name, transpose, forward, [bars[k] for k in given]), strict=True
        ):
            contribute(number, term)

    def along(self, dots: Any) -> Any:
        """A linear function on tangents of the tracked arguments, zeros for all others."""
        assert self.operation.rule is not None
        by_number = {item[2]: dot for item, dot in zip(self.inputs, dots, strict=True)}
        names = self.operation.rule.wrt
        args = [
            _tangents(value, number, by_number) if self.operation.parameter(position) in names else value
            for position, (value, number) in enumerate(zip(self.args, self.ids, strict=True))
        ]
        kwargs = {name: value for name, value in self.kwargs.items() if name not in self.operation.rule.constant}
        return dispatch.function(self.operation.func, tuple(args), kwargs)

    def _is_followed(self) -> bool:
        return any(map(is_tracked, flat_ids(self.ids)))

    def no_rule(self) -> MissingRule:
        name = self.operation.name
        return MissingRule(
            f"gradient registry has no entry for: {name}",
            "Write it with functions that have a rule, register one (tg.partials, tg.linear, tg.pullback, tg.expands), "
            "or declare that it has no derivative (tg.inactive).",
            self.span,
        )


def again(value: Any, number: Any) -> Any:
    """A kept value as the tensor that it was, for recorders that follow it."""
    if type(number) is tuple:
        return type(value)(again(v, n) for v, n in zip(value, number, strict=True))
    return known_as(value, number) if number and is_tracked(number) else value


def _tangents(value: Any, number: Any, dots: dict[int, Any]) -> Any:
    if type(number) is tuple:
        return type(value)(_tangents(v, n, dots) for v, n in zip(value, number, strict=True))
    dot = dots.get(number) if number else None
    if dot is not None:
        return dot
    return np.zeros(np.shape(value), getattr(value, "dtype", None)) if np.shape(value) or number else 0.0


def _is_polynomial(operation: Operation, args: tuple[Any, ...]) -> bool:
    """Whether a call is a power whose derivative is finite everywhere."""
    if operation.func is not np.power:
        return False
    exponent = args[1]
    return isinstance(exponent, int | float) and (exponent >= 1 or exponent == 0)


def strongly(bar: Any, part: Any) -> Any:
    """`bar * part`, but 0 where `bar` is 0 even if `part` is not finite."""
    if isinstance(bar, Tensor) or isinstance(part, Tensor):
        return dispatch.call(_STRONG, (bar, part), {})
    term = bar * part
    if np.isnan(term).any():
        return ops.strong_mul(bar, part)
    return term


def fit(term: Any, like: Any) -> Any:
    """A contribution in the shape and the dtype of what it belongs to."""
    shape = like.shape
    if term.shape != shape:
        if isinstance(term, Tensor):
            term = dispatch.call(_SUM_TO, (term, like), {})
            if term.shape != shape:
                term = np.broadcast_to(term, shape)
        else:
            term = ops.sum_to(term, like)
            if term.shape != shape:
                term = np.broadcast_to(term, shape)
    if term.dtype != like.dtype:
        if term.dtype.kind == "c" and like.dtype.kind != "c":
            term = np.real(term)
        term = term.astype(like.dtype)
    return term


def made(
    operation: Operation,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ids: tuple[Any, ...],
    out: Any,
    out_ids: tuple[int, ...],
    tracked: set[int],
) -> Record | None:
    """The record of a call whose tensors in `tracked` are followed; None where no derivative passes."""
    record = Record(operation, out_ids)
    if operation.kind == "inactive":
        return None
    if operation.kind == "closure":
        record.inputs = tuple(
            (k, (), number, _shape_of(args[k])) for k, number in enumerate(ids) if number and number in tracked
        )
        record.outs_like = tuple(_shape_of(item) for item in out)
        return record
    if operation.kind == "missing":
        record.span = user_span()
        record.ids = ids
        record.args = tuple(stand_in((), np.dtype(float)) if number else None for number in ids)
        return record
    derivable = operation.derivable()
    followed: list[tuple[str, tuple[int, ...], int, Any]] = []
    for position, (value, number) in enumerate(zip(args, ids, strict=True)):
        if type(number) is tuple:
            followed += _followed(operation, position, value, number, tracked)
        elif number in tracked:
            name = operation.parameter(position)
            if name == operation.variadic and name is not None:
                followed.append((name, (position - len(operation.names),), number, value))
            else:
                followed.append((name or "", (), number, value))
    wanted = tuple(name for name in derivable if any(name == item[0] for item in followed))
    if len(wanted) < len({item[0] for item in followed}):
        other = next(item[0] for item in followed if item[0] not in wanted)
        record.span = user_span()
        record.operation = _Refused(operation, other)
        return record
    plan = record.plan = operation.plan(wanted)
    record.inputs = tuple((wanted.index(name), path, number, _shape_of(like)) for name, path, number, like in followed)
    record.args = tuple(
        _kept(value, number, operation.parameter(position) in plan.names)
        for position, (value, number) in enumerate(zip(args, ids, strict=True))
    )
    record.ids = ids
    record.kwargs = kwargs
    if plan.reads_out:
        record.out = out
    if len(out_ids) > 1:
        record.outs_like = tuple(_shape_of(item) for item in out)
    return record


class _Refused(Operation):
    """A call with a tracked argument that its rule gives no derivative for."""

    __slots__ = ("argument",)

    def __init__(self, operation: Operation, argument: str) -> None:
        super().__init__(operation.func, None)
        self.argument = argument

    @property
    def name(self) -> str:
        return f"{super().name} with respect to {self.argument or 'this argument'!r}"


def _followed(
    operation: Operation, position: int, value: Any, number: Any, tracked: set[int]
) -> list[tuple[str, tuple[int, ...], int, Any]]:
    """Tracked tensors inside a sequence argument, with their paths."""
    name = operation.parameter(position) or ""

    def walk(value: Any, number: Any, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...], int, Any]]:
        for k, (v, n) in enumerate(zip(value, number, strict=True)):
            if type(n) is tuple:
                yield from walk(v, n, (*path, k))
            elif n in tracked:
                yield name, (*path, k), n, v

    return list(walk(value, number, ()))


def _shape_of(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return stand_in(value.shape, value.dtype)
    return np.asarray(value)


def _kept(value: Any, number: Any, read: bool) -> Any:
    """What the backward sweep needs of an argument: plain arrays may be overwritten meanwhile, so they are copied."""
    if type(number) is tuple:
        return type(value)(_kept(v, n, read) for v, n in zip(value, number, strict=True))
    if isinstance(value, np.ndarray):
        if not read:
            return stand_in(value.shape, value.dtype)
        return value if number else value.copy()
    if isinstance(value, list | tuple):
        return type(value)(_kept(v, 0, read) for v in value)
    return value
