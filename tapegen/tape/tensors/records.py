"""Records: one recorded call, its saved values and its pullback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from tapegen.errors import Span, TapegenError
from tapegen.tape.engine.operations import FlatPlan, Named, Operation, Plan, stand_in
from tapegen.tape.engine.stack_frames import user_place
from tapegen.tape.engine.state import Call, flat_ids, is_complex, is_tracked
from tapegen.tape.tensors import compiled_calls, numpy_dispatch
from tapegen.tape.tensors.accumulation import as_tensor, divided, is_polynomial, strongly, unbroadcast
from tapegen.tape.tensors.closures import Closure, closure
from tapegen.tape.tensors.compiled_fallback import CompiledFallback, Form
from tapegen.tape.tensors.tensor import Tensor

Contribute = Callable[[int, Any], None]
Input = tuple[int, int, tuple[int, ...], int, Any]
"""A tracked tensor: its index among the results of the rule, its position, the path within, its number, its like."""

Used = np.ndarray | None
"""For each element whether a value is used; None where that is not known."""


class Selection(Protocol):
    """Which zeros of cotangents come from a selection (`masked_zeros`)."""

    def of(self, record: Record) -> Used:
        """Where the result of a record is used."""
        ...


class Record:
    """A call with one result on tracked tensors that are positional arguments.

    Attributes
    ----------
    plan : FlatPlan
        The function, and what its derivatives with respect to the tracked arguments need.
    args, kwargs, out : object
        Arguments and result; placeholders where only the shape is needed, None for an `out` that nothing reads.
    ids : tuple
        The numbers of the tensors among `args`, in the same structure; 0 where there is none.
    out_ids : tuple of int
        The numbers of the results.
    """

    __slots__ = ("args", "ids", "kwargs", "out", "out_ids", "plan")

    def __init__(
        self,
        plan: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ids: tuple[Any, ...],
        out: Any,
        out_ids: tuple[int, ...],
    ) -> None:
        self.plan = plan
        self.args = args
        self.kwargs = kwargs
        self.ids = ids
        self.out = out
        self.out_ids = out_ids

    @property
    def operation(self) -> Operation:
        """The function."""
        found: Operation = self.plan.operation
        return found

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The tracked tensors."""
        return tuple(
            (place, position, (), self.ids[position], self.args[position]) for place, position in self.plan.places
        )

    # ---- backwards ---------------------------------------------------------------------------------------------------

    def pull_fast(self, bar: Any, bars: dict[int, Any], wild: bool, selected: Selection) -> None:
        """Add the contributions to `bars`, all of them arrays: the fast path of `pull`."""
        plan = self.plan
        args = self.args
        strong = False
        if not plan.elementwise:
            extra = {"out": self.out} if plan.takes_out else {}
            parts = plan.body(*args, **self.kwargs, out_bar=bar, **extra)
        elif plan.constant:
            parts = plan.numbers
        elif plan.is_finite and not wild:
            parts = self._partials(plan, args, self.out)
        else:
            parts, strong = self.local_derivatives(args, self.out, wild)
        for place, position, fixed, inverse in plan.steps:
            term = parts[place]
            if term is None:
                continue
            if plan.elementwise:
                if fixed is not None:
                    term = bar if fixed == 1.0 else -bar if fixed == -1.0 else bar * fixed
                elif inverse:
                    term = divided(bar, term, strong, selected, self)
                else:
                    term = strongly(bar, term, selected, self) if strong else term * bar
            like = args[position]
            if term.shape != like.shape or term.dtype is not like.dtype:
                term = unbroadcast(term, like)
            number = self.ids[position]
            held = bars.get(number)
            bars[number] = term if held is None else held + term

    def pull(self, bars: list[Any], contribute: Contribute, recorded: bool, wild: bool, selected: Selection) -> None:
        """Pass each tracked argument its contribution from the cotangents of the results (None: no cotangent).

        `wild`: whether saved values may be infinite or NaN, like the results of functions with poles.  `selected`
        states where zero wins over non-finite partials.
        """
        plan = self.plan
        args, out = self.args, self.out
        if recorded:
            recorded = any(isinstance(bar, Tensor) and is_tracked(bar._id) for bar in bars) or self._is_followed()
            if not recorded:
                bars = [bar._value if isinstance(bar, Tensor) else bar for bar in bars]
            else:
                args = tuple(as_tensor(value, number) for value, number in zip(args, self.ids, strict=True))
                if plan.reads_out:
                    out = as_tensor(out, self.out_ids if len(self.out_ids) > 1 else self.out_ids[0])
        if plan.elementwise:
            self._pull_partials(args, out, bars[0], contribute, wild, selected)
            return
        if recorded and self.operation.kind == "linear":
            self._pull_linear(bars, contribute)
            return
        for (_, _, _, number, like), term in self._terms(plan, args, out, bars):
            if term is not None:
                contribute(number, unbroadcast(term, like))

    def _pull_partials(
        self, args: Any, out: Any, bar: Any, contribute: Contribute, wild: bool, selected: Selection
    ) -> None:
        numbers = self.plan.numbers
        parts, strong = self.local_derivatives(args, out, wild)
        for place, _, _, number, like in self.inputs:
            part = parts[place]
            if part is None:
                continue
            fixed = numbers[place]
            if fixed is not None:
                term = bar if fixed == 1.0 else -bar if fixed == -1.0 else bar * fixed
            elif self.plan.inverse[place]:
                term = divided(bar, part, strong, selected, self)
            else:
                term = strongly(bar, part, selected, self) if strong else part * bar
            contribute(number, unbroadcast(term, like))

    def local_derivatives(self, args: Any, out: Any, wild: bool) -> tuple[tuple[Any, ...], bool]:
        """The partial derivatives of an element-wise call, and whether they may fail to be finite."""
        plan = self.plan
        strong = wild or (plan.nonfinite and not is_polynomial(plan.operation, args))
        strong = strong or (plan.poles and is_complex(args))
        if plan.constant:
            return plan.numbers, strong
        try:
            return self._partials(plan, args, out), strong
        except ZeroDivisionError:  # of Python scalars, where a partial derivative is infinite
            args = tuple(np.float64(arg) if isinstance(arg, int | float) else arg for arg in args)
            return self._partials(plan, args, out), strong

    def _partials(self, plan: Plan, args: Any, out: Any) -> tuple[Any, ...]:
        if plan.takes_out:
            return plan.body(*args, **self.kwargs, out=out)
        return plan.body(*args, **self.kwargs)

    def _full_bars(self, bars: list[Any]) -> Any:
        return bars[0]

    def _terms(self, plan: Plan, args: Any, out: Any, bars: list[Any]) -> Iterator[tuple[Input, Any]]:
        extra = {"out": out} if plan.takes_out else {}
        results = compiled_calls.run_body(
            plan.body, self._whole, args, {**self.kwargs, "out_bar": self._full_bars(bars), **extra}
        )
        for item in self.inputs:
            term = results[item[0]]
            for step in item[2]:
                term = term[step]
            yield item, term

    def _whole(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The wanted results of the rule's whole body, compiled, where it cannot run on tensors."""
        rule = self.operation.rule
        assert rule is not None and rule.body is not None
        results = compiled_calls.run(rule.body, args, kwargs)
        wanted = {item[0]: self.operation.parameter(item[1]) for item in self.inputs}
        every = self.operation.derivable()
        if len(every) == 1:
            return (results,)
        return tuple(results[every.index(wanted[place])] for place in sorted(wanted))

    def _pull_linear(self, bars: list[Any], contribute: Contribute) -> None:
        """The transpose of a linear function as a recorded operation, whose own transpose is the function itself."""
        given = [k for k, bar in enumerate(bars) if bar is not None]

        def transpose(*values: Any) -> list[Any]:
            every: list[Any] = [None] * len(bars)
            for k, value in zip(given, values, strict=True):
                every[k] = value
            return [unbroadcast(term, item[4]) for item, term in self._terms(self.plan, self.args, self.out, every)]

        def forward(*dots: Any) -> list[Any]:
            out = self.along(dots)
            return [out[k] for k in given] if isinstance(out, tuple | list) else [out]

        name = f"transpose of {self.operation.name}"

        def transposed(*values: Any) -> list[Any]:
            return closure(name, transpose, forward, values, transposed)

        terms = transposed(*(bars[k] for k in given))
        for (_, _, _, number, _), term in zip(self.inputs, terms, strict=True):
            contribute(number, term)

    def along(self, dots: Any) -> Any:
        """A linear function on tangents of the tracked arguments, zeros for all others."""
        rule = self.operation.rule
        assert rule is not None
        own = len(self.operation.names)  # the rest belongs to *args, whose results are counted from there
        by_place = {
            (position, *(path[1:] if position >= own else path)): dot
            for (_, position, path, _, _), dot in zip(self.inputs, dots, strict=True)
        }
        args = [
            _tangents(value, number, by_place, (position,)) if self.operation.parameter(position) in rule.wrt else value
            for position, (value, number) in enumerate(zip(self.args, self.ids, strict=True))
        ]
        kwargs = {name: value for name, value in self.kwargs.items() if name not in rule.constant}
        return numpy_dispatch.call(self.operation, tuple(args), kwargs)

    def _is_followed(self) -> bool:
        return any(map(is_tracked, flat_ids(self.ids)))


def _tangents(value: Any, number: Any, dots: dict[tuple[int, ...], Any], path: tuple[int, ...]) -> Any:
    if type(number) is tuple:
        return type(value)(
            _tangents(v, n, dots, (*path, k)) for k, (v, n) in enumerate(zip(value, number, strict=True))
        )
    dot = dots.get(path)
    if dot is not None:
        return dot
    return np.zeros(np.shape(value), getattr(value, "dtype", None)) if np.shape(value) or number else 0.0


class WideRecord(Record):
    """A call with several results, with tensors in sequences, with a pullback of its own, or without a rule."""

    __slots__ = ("_inputs", "_is_several", "_operation", "outs_like", "place")

    def __init__(self, operation: Operation, ids: tuple[Any, ...], out_ids: tuple[int, ...]) -> None:
        super().__init__(None, (), {}, ids, None, out_ids)
        self._operation = operation
        self._inputs: tuple[Input, ...] = ()
        self.outs_like: tuple[Any, ...] = ()
        self._is_several = False
        self.place = user_place() if operation.may_refuse else None

    @property
    def operation(self) -> Operation:
        """The function."""
        return self._operation

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The tracked tensors."""
        return self._inputs

    def pull(self, bars: list[Any], contribute: Contribute, recorded: bool, wild: bool, selected: Selection) -> None:
        """See `Record.pull`."""
        if isinstance(self._operation, Closure):
            self._pull_closure(self._operation.pull(*bars), contribute, recorded)
            return
        try:
            super().pull(bars, contribute, recorded, wild, selected)
        except TapegenError as error:
            if error.span is None and self.place is not None:
                error.span = Span.of_line(*self.place)
            raise

    def _pull_closure(self, terms: Any, contribute: Contribute, recorded: bool) -> None:
        for place, _, _, number, like in self._inputs:
            term = terms[place]
            if term is not None:
                if not recorded and isinstance(term, Tensor):
                    term = term._value
                contribute(number, unbroadcast(term, like))

    def _full_bars(self, bars: list[Any]) -> Any:
        if not self._is_several:
            return bars[0]
        return tuple(
            np.zeros(np.shape(like), like.dtype) if bar is None else bar
            for bar, like in zip(bars, self.outs_like, strict=True)
        )


_NO_KEYWORDS: dict[str, Any] = {}


def make_plain_record(
    operation: Operation,
    which: tuple[bool, ...],
    args: tuple[Any, ...],
    ids: tuple[int, ...],
    out: Any,
    number: int,
    everything: bool,
) -> Record | None:
    """Like `make_record`, for calls of real scalars and arrays without keywords; None where this does not suffice."""
    plan = operation.flat_plans.get(which)
    if plan is None or out.dtype.kind != "f" or not (operation.of_complex or not is_complex(args)):
        return None
    if not plan.keeps_all or 0 in ids:
        args = _pruned(plan, args, ids, everything)
    return Record(plan, args, _NO_KEYWORDS, ids, out if plan.reads_out else None, (number,))


def make_record(call: Call, tracked: set[int], everything: bool = False) -> Record | None:
    """The record of a call with one result and tracked tensors in `tracked`; None where no derivative passes.

    With `everything`, values that the backward sweep does not read are saved too.
    """
    operation, args, kwargs, ids, out, out_ids = call
    if not operation.of_complex and (out.dtype.kind == "c" or is_complex(args)):
        return make_wide_record(call, tracked)
    mask = tuple(map(tracked.__contains__, ids))
    try:
        plan = operation.flat_plans[mask]
    except KeyError:
        plan = operation.flat_plan(mask)
    if plan is None or (kwargs and not _takes(operation, kwargs)):
        return make_wide_record(call, tracked, everything)
    if not plan.keeps_all or 0 in ids:
        args = _pruned(plan, args, ids, everything)
    return Record(plan, args, _options(kwargs), ids, out if plan.reads_out else None, out_ids)


def _pruned(plan: FlatPlan, args: tuple[Any, ...], ids: tuple[Any, ...], everything: bool) -> tuple[Any, ...]:
    """The arguments that the body reads; plain arrays may be overwritten meanwhile, so they are copied."""
    kept = []
    for value, number, read in zip(args, ids, plan.keep, strict=True):
        if isinstance(value, np.ndarray):
            if not (read or everything):
                value = stand_in(value.shape, value.dtype)
            elif not number:
                value = value.copy()
        elif isinstance(value, list | tuple):  # of indices: a[:, rows]
            value = _kept(value, 0, True)
        kept.append(value)
    return tuple(kept)


_LASTING = frozenset({int, bool, float, str, type(None)})


def _options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Copies of keywords."""
    if not kwargs:
        return kwargs
    return {name: value if type(value) in _LASTING else _kept(value, 0, True) for name, value in kwargs.items()}


def _takes(operation: Operation, kwargs: dict[str, Any]) -> bool:
    """Whether the rule knows these keywords."""
    assert operation.signature is not None
    return operation.signature.parameters.keys() >= kwargs.keys()


def make_wide_record(call: Call, tracked: set[int], everything: bool = False) -> WideRecord | None:
    """Like `make_record`, for several results, or tensors in sequences."""
    operation, args, kwargs, ids, out, out_ids = call
    is_real_only = not operation.of_complex and (is_complex(call.outs) or is_complex(args))
    if operation.kind == "inactive" and not is_real_only:
        return None
    record = WideRecord(operation, ids, out_ids)
    if isinstance(operation, Closure):
        record._inputs = tuple(
            (k, k, (), number, _shape_of(args[k])) for k, number in enumerate(ids) if number and number in tracked
        )
        record.outs_like = tuple(_shape_of(item) for item in out)
        return record
    if operation.kind == "missing" or is_real_only or not _takes(operation, kwargs):
        return _uncovered(call, tracked)
    derivable = operation.derivable()
    followed: list[tuple[str, int, tuple[int, ...], int, Any]] = []
    for position, (value, number) in enumerate(zip(args, ids, strict=True)):
        name = operation.parameter(position) or ""
        path = (position - len(operation.names),) if name == operation.variadic else ()
        if type(number) is tuple:
            followed += [(name, position, inner, n, v) for inner, n, v in _within(value, number, tracked, path)]
        elif number in tracked:
            followed.append((name, position, path, number, value))
    wanted = tuple(name for name in derivable if any(name == item[0] for item in followed))
    if any(item[0] not in wanted for item in followed):
        return _uncovered(call, tracked)
    plan = record.plan = operation.plan(wanted)
    record._inputs = tuple(
        (wanted.index(name), position, path, number, _shape_of(like)) for name, position, path, number, like in followed
    )
    record.args = tuple(
        _kept(value, number, everything or operation.parameter(position) in plan.names)
        for position, (value, number) in enumerate(zip(args, ids, strict=True))
    )
    record.kwargs = _options(kwargs)
    if plan.reads_out:
        record.out = out
    if type(out) is tuple:
        record._is_several = True
        record.outs_like = tuple(_shape_of(item) for item in out)
    return record


def _within(
    value: Any, number: Any, tracked: set[int], path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    """Tracked tensors inside a sequence argument, with their paths."""
    for k, (v, n) in enumerate(zip(value, number, strict=True)):
        if type(n) is tuple:
            yield from _within(v, n, tracked, (*path, k))
        elif n in tracked:
            yield (*path, k), n, v


def _uncovered(call: Call, tracked: set[int]) -> WideRecord | None:
    """The record of a call that no rule covers."""
    operation = call.operation
    form = Form(operation.func)
    keywords = operation.keywords if isinstance(operation, Named) else ()
    names = [*[""] * (len(call.args) - len(keywords)), *keywords]
    for name, value, number in zip(names, call.args, call.ids, strict=True):
        form.argument(name, value, number)
    for name, value in call.kwargs.items():
        form.argument(name, value, 0)
    closed = CompiledFallback(operation, form, tracked)
    return make_wide_record(Call(closed, tuple(form.values), {}, tuple(form.ids), call.outs, call.out_ids), tracked)


def _shape_of(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return stand_in(value.shape, value.dtype)
    return np.asarray(value)


def _kept(value: Any, number: Any, read: bool) -> Any:
    """The saved part of an argument: plain arrays may be overwritten meanwhile, so they are copied."""
    if type(number) is tuple:
        return type(value)(_kept(v, n, read) for v, n in zip(value, number, strict=True))
    if isinstance(value, np.ndarray):
        if not read:
            return stand_in(value.shape, value.dtype)
        return value if number else value.copy()
    if isinstance(value, list | tuple):
        items = [_kept(item, 0, read) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
