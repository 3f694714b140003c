"""`GradientTape`: records operations on tensors, and differentiates what it recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from tapegen.runtime.tracebacks import hides_frames
from tapegen.tape.diagnostics import Cut, Trail, explanation
from tapegen.tape.engine import pytree
from tapegen.tape.engine.leaks import reraise_refusal
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_place
from tapegen.tape.engine.state import STATE, Call, flat_ids, fresh_id
from tapegen.tape.gradient_arguments import (
    UnconnectedGradients,
    connected,
    is_zero_wanted,
    operands,
    reshaped,
    seeds_of,
    stacked,
    units,
    warn,
    warn_not_floating,
)
from tapegen.tape.recorder import Following
from tapegen.tape.tensors.masked_zeros import Selected, set_infinity_aside
from tapegen.tape.tensors.records import Record, make_plain_record
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh
from tapegen.tape.tensors.variable import Variable

if TYPE_CHECKING:
    from tapegen.tape.export_source import Source

_NEEDS_PERSISTENT = (
    "GradientTape must be created with persistent=True to compute the {} with eager execution enabled and with  "
    "experimental_use_pfor set to False."
)
_ONCE = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


class GradientTape(Following):
    """Records operations for automatic differentiation.

    Operations are recorded if one of their operands is watched, or was made from one that is.  Trainable variables are
    watched when they are read; tensors by `watch`.

    Parameters
    ----------
    persistent : bool
        Keep the record, so that `gradient` can be called more than once.
    watch_accessed_variables : bool
        Watch every trainable variable that is read.
    conjugate : bool
        Return the gradients with respect to complex tensors, and accept `output_gradients`, as their conjugates
        (docs/complex.md).
    """

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, *, conjugate: bool = False
    ) -> None:
        super().__init__()
        self._persistent = self._keeps_everything = persistent
        self._conjugates = conjugate
        self._watches_variables = watch_accessed_variables
        self._records: list[Record] | None = None
        self._watched: dict[int, Variable] = {}
        self._trail = Trail()
        self._first = 0
        self._entered = False
        self._recording = False
        self._pauses = False

    # ---- context -----------------------------------------------------------------------------------------------------

    @hides_frames
    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._records is None:
            self._records, self.tracked, self._watched, self._trail = [], set(), {}, Trail()
        self._entered = True
        self._start()
        return self

    @hides_frames
    def __exit__(self, _: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._recording:
            self._stop()
        reraise_refusal(error, trace)

    def _start(self, place: int | None = None) -> None:
        """Start recording, before the recorders from an index on, or as the last."""
        STATE.active = [*STATE.active[:place], self, *([] if place is None else STATE.active[place:])]
        self._recording = True
        self._first = fresh_id()

    def _stop(self) -> int:
        """Stop recording; return the index among the recorders that was freed."""
        if self not in STATE.active:
            raise RuntimeError("the tape records in another thread: ask there, or after its `with` block has ended.")
        place = STATE.active.index(self)
        STATE.active = [recorder for recorder in STATE.active if recorder is not self]
        self._recording = False
        self._trail.spans.append((self._first, fresh_id()))
        return place

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "cannot pickle a GradientTape: it holds the operations of this process; pickle the gradients, or the text "
            "that tape.source() generates"
        )

    # ---- recording ---------------------------------------------------------------------------------------------------

    def note_plain(
        self,
        operation: Operation,
        which: tuple[bool, ...],
        args: tuple[Any, ...],
        ids: tuple[int, ...],
        out: Any,
        number: int,
    ) -> None:
        """Record a call (internal; see `state.Recorder`)."""
        record = make_plain_record(operation, which, args, ids, out, number, self._keeps_everything)
        if record is None:
            super().note_plain(operation, which, args, ids, out, number)
        else:
            self._records.append(record)  # type: ignore[union-attr]
            self.tracked.add(number)

    def _take(self, call: Call, record: Record | None, floating: Sequence[int]) -> None:
        if record is not None:
            self._records.append(record)  # type: ignore[union-attr]
            self.tracked.update(floating)
        else:
            self._ends(call)

    def _ends(self, call: Call) -> None:
        how = "constant" if call.outs[0].dtype.kind in "fc" else "integers"
        for number in flat_ids(call.ids):
            if number in self.tracked:
                self._trail.cuts.append(Cut(how, call.operation.name, number, call.out_ids, None))

    def cut(self, how: str, what: str, number: int, made: tuple[int, ...] = ()) -> None:
        """Remember where a watched value is used unwatched (internal)."""
        self._trail.cuts.append(Cut(how, what, number, made, user_place()))

    def read(self, variable: Variable) -> None:
        """Record that a variable is read (internal)."""
        if self._watches_variables and variable._trainable and variable._id not in self.tracked:
            self._follow(variable)

    def _follow(self, item: Traced) -> None:
        if isinstance(item, Variable):
            self._watched[item._id] = item
        if item._value.dtype.kind in "fc":
            self.tracked.add(item._id)

    @hides_frames
    def watch(self, tensor: Any) -> None:
        """Watch a tensor or a variable, or every one of a structure of them.

        Raises
        ------
        ValueError
            For anything else: a plain array cannot be watched, `tg.constant` makes a tensor of it.
        RuntimeError
            If nothing is being recorded.
        """
        items = list(pytree.leaves(tensor))
        for item in items:
            if not isinstance(item, Traced):
                raise ValueError(
                    f"Passed in object {item} of type '{type(item).__name__}', not tf.Tensor or tf.Variable or "
                    "ExtensionType. Make a tensor of it with tg.constant."
                )
        if self._records is None:
            raise RuntimeError("the tape is not recording: call watch() inside its `with` block.")
        for item in items:
            if item._value.dtype.kind not in "fc":
                warn_not_floating("watched tensor", item)
            self._follow(item)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables that are watched, in the order in which they were made."""
        return tuple(self._watched[number] for number in sorted(self._watched))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Record nothing on this tape within a `with` block."""
        if not self._entered:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        if self._records is None or (not self._recording and not self._pauses):
            raise ValueError("Tape is not recording.")
        if not self._recording:  # nested
            yield
            return
        place = self._stop()
        self._pauses = True
        first = fresh_id()
        try:
            yield
        finally:
            self._pauses = False
            self._trail.pauses.append((first, fresh_id()))
            if self._records is not None:
                self._start(place)

    @hides_frames
    def reset(self) -> None:
        """Release the records and the watched values, and continue recording."""
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._records, self.tracked, self._watched = [], set(), {}

    # ---- gradients ---------------------------------------------------------------------------------------------------

    @overload
    def gradient(
        self, target: Any, sources: list[Any], output_gradients: Any = None, unconnected_gradients: Any = ...
    ) -> list[Any]: ...
    @overload
    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = ...
    ) -> Any: ...
    @hides_frames
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Parameters
        ----------
        target : tensor, or a structure of tensors
            What is differentiated.
        sources : tensor, variable, or a structure of them
            With respect to what; intermediate results may be among them.
        output_gradients : array, tensor, or a structure of them, optional
            Weights of the elements of the target, in its structure; None means ones.
        unconnected_gradients : UnconnectedGradients or str
            The result where a target does not depend on a source: None, or zeros.

        Returns
        -------
        tensor, or a structure of tensors
            In the structure of `sources`.
        """
        unconnected = is_zero_wanted(unconnected_gradients)
        self._check_usable()
        targets = operands("target", target)
        found = operands("sources", sources)
        seeds = seeds_of(target, targets, output_gradients)
        records = self._taken("gradient")
        results = self._swept(records, targets, seeds, found)
        self._release(any(result is None for result in results))
        return pytree.refilled(
            sources, [connected(result, source, unconnected) for result, source in zip(results, found, strict=True)]
        )

    @hides_frames
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of every element of `target` with respect to every element of `sources`.

        Returns
        -------
        tensor, or a structure of tensors
            In the structure of `sources`, of the shape `target.shape + source.shape`.  For a structure of targets, that
            structure of such results.
        """
        unconnected = is_zero_wanted(unconnected_gradients)
        self._check_usable()
        if not experimental_use_pfor and not self._persistent:
            raise RuntimeError(_NEEDS_PERSISTENT.format("jacobian"))
        targets = operands("target", target)
        found = operands("sources", sources)
        records = self._taken("jacobian")
        results = []
        for item in targets:
            rows = [self._swept(records, [item], [seed], found) for seed in units(item._value)]
            columns = []
            for k, source in enumerate(found):
                zero = np.zeros(item.shape + source.shape, source.dtype) if unconnected else None
                columns.append(stacked([row[k] for row in rows], item.shape + source.shape, source, zero))
            results.append(pytree.refilled(sources, columns))
        self._release()
        return pytree.refilled(target, results)

    @hides_frames
    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        check_rows: bool = False,
    ) -> Tensor:
        """The Jacobian of each row of `target` with respect to the same row of `source`, of shape (b, ...) + (...).

        Rows must not depend on other rows: such dependences are summed, or refused with `check_rows`.  The result is
        zero for unconnected sources.
        """
        is_zero_wanted(unconnected_gradients)
        self._check_usable()
        if not experimental_use_pfor and not self._persistent:
            raise RuntimeError(_NEEDS_PERSISTENT.format("batch_jacobian"))
        (target,) = operands("target", target)
        (source,) = operands("source", source)
        for item in (target, source):
            if item.ndim < 2:
                raise ValueError(f"Shape {item.shape} must have rank at least 2")
        if target.shape[0] != source.shape[0]:
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match."
            )
        records = self._taken("batch_jacobian")
        shape = target.shape + source.shape[1:]
        rows: list[Any] = []
        for place in np.ndindex(target.shape[1:]):
            seed = np.zeros(target.shape, target.dtype)
            seed[(slice(None), *place)] = 1.0
            rows.append(self._swept(records, [target], [seed], [source])[0])
            if check_rows:
                self._check_rows(records, target, seed, source)
        self._release()
        if not rows or any(row is None for row in rows):
            return fresh(np.zeros(shape, source.dtype))
        return reshaped(np.stack(rows, axis=1), shape)

    def _check_rows(self, records: list[Record], target: Traced, seed: np.ndarray, source: Traced) -> None:
        """Refuse rows that depend on other rows: any two rows differ in a digit of their numbers."""
        count = target.shape[0]
        for digit in range((count - 1).bit_length()):
            marked = (np.arange(count) >> digit) & 1 == 1
            for chosen in (marked, ~marked):
                weight = np.where(chosen.reshape(-1, *(1,) * (target.ndim - 1)), seed, 0.0).astype(seed.dtype)
                (bar,) = self._swept(records, [target], [weight], [source])
                if bar is not None and np.any((bar._value if isinstance(bar, Tensor) else bar)[~chosen]):
                    raise ValueError("batch_jacobian: a row of the target depends on another row of the source.")

    # ---- queries of the records --------------------------------------------------------------------------------------

    @hides_frames
    def source(self, target: Any, sources: Any) -> Source:
        """What was recorded between `sources` and `target`, as a generated forward and backward sweep.

        The records are not changed.  On a persistent tape the result can also be run.
        """
        from tapegen.tape.export_source import source_of

        self._check_usable()
        operands("sources", sources)
        assert self._records is not None
        return source_of(self._records, operands("target", target), target, sources)

    @hides_frames
    def explain(self, target: Any, source: Any) -> str:
        """Why the gradient of `target` with respect to `source` is None, or that it is not.

        May be called at any time; a tape that is not persistent has the answer only until it is used again.
        """
        (from_,), (to,) = operands("target", target), operands("source", source)
        trail = self._known_trail()
        if trail.is_released:
            return "The tape has been used and has released its record: call this first, or use a persistent tape."
        if self._recording:
            trail = replace(trail, spans=[*trail.spans, (self._first, fresh_id())])
        return explanation(trail, from_, to, self._watches_variables)

    # ---- sweeps ------------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._records is None:
            raise RuntimeError(_ONCE)

    def _taken(self, name: str) -> list[Record]:
        """The present records."""
        assert self._records is not None
        if self._recording:
            if not self._persistent:
                self._stop()
            else:
                warn(
                    f"Calling GradientTape.{name} on a persistent tape inside its context is significantly less "
                    "efficient than calling it outside the context (it causes the gradient operations to be recorded "
                    f"on the tape). Only call GradientTape.{name} inside the context if you actually want to trace "
                    "the gradient in order to compute higher order derivatives.",
                    times=1,
                )
        return list(self._records)

    def _release(self, explainable: bool = False) -> None:
        """Release the records; where a gradient is None, what `explain` needs stays (no values)."""
        if not self._persistent:
            self._trail = self._known_trail() if explainable else Trail(is_released=True)
            self._records = None
            self.tracked = set()

    def _known_trail(self) -> Trail:
        if self._records is None:
            return self._trail
        edges = [(tuple(flat_ids(record.ids)), record.out_ids) for record in self._records]
        return replace(self._trail, edges=edges, tracked=self.tracked)

    def _swept(
        self, records: list[Record], targets: Sequence[Traced], seeds: Sequence[Any], sources: Sequence[Traced]
    ) -> list[Any]:
        """Cotangents of the sources (None where there is no path)."""
        bars: dict[int, Any] = {}
        for item, seed in zip(targets, seeds, strict=True):
            if item._value.dtype.kind not in "fc":
                continue
            held = bars.get(item._id)
            seed = self._told(seed)
            bars[item._id] = seed if held is None else held + seed
        recorded = bool(STATE.active)
        if recorded:
            bars = {number: bar if isinstance(bar, Tensor) else fresh(bar) for number, bar in bars.items()}
        with np.errstate(all="ignore"):
            sweep(records, bars, {source._id for source in sources}, recorded)
        return [self._told(bars.get(source._id)) if source._value.dtype.kind in "fc" else None for source in sources]

    def _told(self, bar: Any) -> Any:
        """The conversion of a cotangent between tape and caller."""
        return np.conj(bar) if self._conjugates and bar is not None and bar.dtype.kind == "c" else bar


def sweep(records: list[Record], bars: dict[int, Any], wanted: set[int], recorded: bool) -> None:
    """Visit records backwards; `bars` holds the cotangents of the targets, and in the end those of the sources."""

    def contribute(number: int, term: Any) -> None:
        held = bars.get(number)
        bars[number] = term if held is None else held + term

    wild = any(record.plan is None or record.plan.nonfinite for record in records) or set_infinity_aside(records)
    selected = Selected(records, bars, wild)
    for record in reversed(records):
        out_ids = record.out_ids
        if len(out_ids) == 1:
            (number,) = out_ids
            bar = bars.get(number) if number in wanted else bars.pop(number, None)
            if bar is None:
                continue
            if type(record) is Record and not recorded:
                record.pull_fast(bar, bars, wild, selected)
            else:
                record.pull([bar], contribute, recorded, wild, selected)
        else:
            several = [bars.get(number) if number in wanted else bars.pop(number, None) for number in out_ids]
            if any(bar is not None for bar in several):
                record.pull(several, contribute, recorded, wild, selected)
