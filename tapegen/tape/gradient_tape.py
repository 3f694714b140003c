"""`GradientTape`: records operations on tensors, and differentiates what it recorded."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tapegen.tape import nest
from tapegen.tape.explain import Trail, explanation
from tapegen.tape.operation import Operation
from tapegen.tape.places import user_line
from tapegen.tape.record import Record, made, made_wide
from tapegen.tape.state import STATE, flat_ids, fresh_id, is_tracked
from tapegen.tape.tensor import Tensor, Traced
from tapegen.tape.variable import Variable

if TYPE_CHECKING:
    from tapegen.tape.source import Source

LOG = logging.getLogger("tapegen")
_ONCE = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
_WARNINGS = 5  # of one kind in one process


class UnconnectedGradients(enum.Enum):
    """What stands for the gradient of a target that does not depend on a source."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records operations for automatic differentiation.

    Operations are recorded if one of their operands is watched, or was made from one that is.  Trainable variables are
    watched when they are read; tensors by `watch`.

    Parameters
    ----------
    persistent : bool
        Keep the record, so that `gradient` can be called more than once.
    watch_accessed_variables : bool
        Watch every trainable variable that is read.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._records: list[Record] | None = None
        self.tracked: set[int] = set()
        self._watched: dict[int, Variable] = {}
        self._trail = Trail()
        self._first = 0
        self._entered = False
        self._recording = False
        self._pauses = False

    # ---- context -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._records is None:
            self._records, self.tracked, self._watched, self._trail = [], set(), {}, Trail()
        self._entered = True
        self._start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._recording:
            self._stop()

    def _start(self) -> None:
        STATE.active = [*STATE.active, self]
        self._recording = True
        self._first = fresh_id()

    def _stop(self) -> None:
        STATE.active = [recorder for recorder in STATE.active if recorder is not self]
        self._recording = False
        self._trail.spans.append((self._first, fresh_id()))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "cannot pickle a GradientTape: it holds the operations of this process; pickle the gradients, or the text "
            "that tape.source() generates"
        )

    # ---- recording ---------------------------------------------------------------------------------------------------

    def note(
        self,
        operation: Operation,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ids: tuple[Any, ...],
        out: Any,
        out_ids: tuple[int, ...],
    ) -> None:
        """Record a call (of the machinery; see `state.Recorder`)."""
        record = None
        if out.dtype.kind in "fc":
            record = made(operation, args, kwargs, ids, out, out_ids, self.tracked, self._persistent)
        if record is not None:
            self._records.append(record)  # type: ignore[union-attr]
            self.tracked.add(out_ids[0])
        else:
            self._ends(operation, ids, out)

    def note_wide(
        self,
        operation: Operation,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ids: tuple[Any, ...],
        out: Any,
        out_ids: tuple[int, ...],
    ) -> None:
        """Record a call (of the machinery; see `state.Recorder`)."""
        outs = out if type(out) is tuple else (out,)
        floating = [number for item, number in zip(outs, out_ids, strict=True) if number and item.dtype.kind in "fc"]
        record = None
        if floating:
            record = made_wide(operation, args, kwargs, ids, out, out_ids, self.tracked, self._persistent)
        if record is not None:
            assert self._records is not None
            self._records.append(record)
            self.tracked.update(floating)
        else:
            self._ends(operation, ids, outs[0])

    def _ends(self, operation: Operation, ids: tuple[Any, ...], out: Any) -> None:
        how = "constant" if out.dtype.kind in "fc" else "integers"
        for number in flat_ids(ids):
            if number in self.tracked:
                self._trail.cuts.append((how, operation.name, number, ""))

    def cut(self, how: str, what: str, number: int) -> None:
        """Remember where a watched value goes on unwatched (of the machinery)."""
        self._trail.cuts.append((how, what, number, user_line()))

    def read(self, variable: Variable) -> None:
        """A variable is read (of the machinery)."""
        if self._watches_variables and variable._trainable and variable._id not in self.tracked:
            self._follow(variable)

    def _follow(self, item: Traced) -> None:
        if isinstance(item, Variable):
            self._watched[item._id] = item
        if item._value.dtype.kind in "fc":
            self.tracked.add(item._id)

    def watch(self, tensor: Any) -> None:
        """Watch a tensor or a variable, or every one of a structure of them.

        Raises
        ------
        ValueError
            For anything else: a plain array cannot be watched, `tg.constant` makes a tensor of it.
        RuntimeError
            If nothing is being recorded.
        """
        items = list(nest.leaves(tensor))
        for item in items:
            if not isinstance(item, Traced):
                raise ValueError(
                    f"Passed in object {item} of type '{type(item).__name__}', not tf.Tensor or tf.Variable or "
                    "ExtensionType. Make a tensor of it with tg.constant."
                )
        if self._records is None:
            raise RuntimeError("the tape is not recording: watch() belongs into its `with` block.")
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
        self._stop()
        self._pauses = True
        first = fresh_id()
        try:
            yield
        finally:
            self._pauses = False
            self._trail.pauses.append((first, fresh_id()))
            if self._records is not None:
                self._start()

    def reset(self) -> None:
        """Forget what was recorded and what is watched, and go on recording."""
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._records, self.tracked, self._watched = [], set(), {}

    # ---- gradients ---------------------------------------------------------------------------------------------------

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
            Weights of the elements of the target, in its structure; None stands for ones.
        unconnected_gradients : UnconnectedGradients or str
            What is given where a target does not depend on a source: None, or zeros.

        Returns
        -------
        tensor, or a structure of tensors
            In the structure of `sources`.
        """
        unconnected = is_zero_wanted(unconnected_gradients)
        self._check_usable()
        targets = operands("target", target)
        found = operands("sources", sources)
        seeds = _seeds(target, targets, output_gradients)
        records = self._taken("gradient")
        results = self._swept(records, targets, seeds, found)
        self._release(any(result is None for result in results))
        return nest.refilled(
            sources, [_connected(result, source, unconnected) for result, source in zip(results, found, strict=True)]
        )

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
            rows = [self._swept(records, [item], [seed], found) for seed in _units(item._value)]
            columns = []
            for k, source in enumerate(found):
                zero = np.zeros(item.shape + source.shape, source.dtype) if unconnected else None
                columns.append(_stacked([row[k] for row in rows], item.shape + source.shape, source, zero))
            results.append(nest.refilled(sources, columns))
        self._release()
        return nest.refilled(target, results)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor:
        """The Jacobian of each row of `target` with respect to the same row of `source`, of shape (b, ...) + (...).

        Rows must not depend on other rows: what they do depend on is summed.  Zeros stand for what is unconnected.
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
        self._release()
        if not rows or any(row is None for row in rows):
            return Tensor(np.zeros(shape, source.dtype))
        return _reshaped(np.stack(rows, axis=1), shape)

    # ---- looking at the record ---------------------------------------------------------------------------------------

    def source(self, target: Any, sources: Any) -> Source:
        """What was recorded between `sources` and `target`, as a generated forward and backward sweep.

        The record stays as it is.  On a persistent tape the result can also be run.
        """
        from tapegen.tape.source import source_of

        self._check_usable()
        operands("sources", sources)
        assert self._records is not None
        return source_of(self._records, operands("target", target), target, sources)

    def explain(self, target: Any, source: Any) -> str:
        """Why the gradient of `target` with respect to `source` is None, or that it is not.

        Ask at any time; a tape that is not persistent knows only until it is used again.
        """
        (from_,), (to,) = operands("target", target), operands("source", source)
        trail = self._known_trail()
        if self._recording:
            trail = replace(trail, spans=[*trail.spans, (self._first, fresh_id())])
        return explanation(trail, from_, to, self._watches_variables)

    # ---- sweeps ------------------------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self._records is None:
            raise RuntimeError(_ONCE)

    def _taken(self, name: str) -> list[Record]:
        """The record as it is now."""
        assert self._records is not None
        if self._recording:
            if not self._persistent:
                self._stop()
            else:
                _warn(
                    f"Calling GradientTape.{name} on a persistent tape inside its context is significantly less "
                    "efficient than calling it outside the context (it causes the gradient operations to be recorded "
                    f"on the tape). Only call GradientTape.{name} inside the context if you actually want to trace "
                    "the gradient in order to compute higher order derivatives.",
                    times=1,
                )
        return list(self._records)

    def _release(self, explainable: bool = False) -> None:
        """Drop the record; where a gradient is None, what `explain` needs stays (no values)."""
        if not self._persistent:
            self._trail = self._known_trail() if explainable else Trail()
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
            bars[item._id] = seed if held is None else held + seed
        recorded = bool(STATE.active)
        if recorded:
            bars = {number: bar if isinstance(bar, Tensor) else Tensor(bar) for number, bar in bars.items()}
        with np.errstate(all="ignore"):
            sweep(records, self.tracked, bars, {source._id for source in sources}, recorded)
        return [bars.get(source._id) if source._value.dtype.kind in "fc" else None for source in sources]


def sweep(records: list[Record], tracked: set[int], bars: dict[int, Any], wanted: set[int], recorded: bool) -> None:
    """Walk a record backwards; `bars` holds the cotangents of the targets, and in the end those of what is wanted."""

    def contribute(number: int, term: Any) -> None:
        held = bars.get(number)
        bars[number] = term if held is None else held + term

    for record in reversed(records):
        out_ids = record.out_ids
        if len(out_ids) == 1:
            (number,) = out_ids
            bar = bars.get(number) if number in wanted else bars.pop(number, None)
            if bar is None:
                continue
            if type(record) is Record and not recorded:
                record.pull_plainly(bar, bars)
            else:
                record.pull([bar], contribute, recorded)
        else:
            several = [bars.get(number) if number in wanted else bars.pop(number, None) for number in out_ids]
            if any(bar is not None for bar in several):
                record.pull(several, contribute, recorded)


_NEEDS_PERSISTENT = (
    "GradientTape must be created with persistent=True to compute the {} with eager execution enabled and with  "
    "experimental_use_pfor set to False."
)
_counts: dict[str, int] = {}


def _warn(text: str, times: int = _WARNINGS) -> None:
    """Log a warning, the first few times."""
    _counts[text] = _counts.get(text, 0) + 1
    if _counts[text] <= times:
        LOG.warning(text)


def warn_not_floating(role: str, item: Traced) -> None:
    """Log that integers have no derivatives."""
    _warn(f"The dtype of the {role} must be floating (e.g. float32), got {item.dtype.name}")


def is_zero_wanted(given: Any) -> bool:
    """Whether zeros stand for what is unconnected."""
    try:
        return UnconnectedGradients(given) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {given!r}") from None


def operands(name: str, structure: Any) -> list[Traced]:
    """The leaves of an argument, each a tensor or a variable."""
    if structure is None and name == "target":
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
            "differentiated, but received None."
        )
    found = list(nest.leaves(structure))
    for position, item in enumerate(found):
        if not isinstance(item, Traced):
            raise TypeError(
                f"Argument `{name}` should be a nested structure of tensors and variables, but item {position} is "
                f"{item!r} of type '{type(item).__name__}'."
            )
    return found


def _seeds(target: Any, targets: list[Traced], given: Any) -> list[Any]:
    """A weight for every element of the targets, checked."""
    if given is None:
        return [np.ones(item.shape, item.dtype) for item in targets]
    weights = list(nest.leaves(given)) if isinstance(target, list | tuple | dict) else [given]
    if len(weights) != len(targets):
        raise ValueError(f"Argument `output_gradients` has {len(weights)} entries for {len(targets)} targets.")
    return [_seed(k, item, weight) for k, (item, weight) in enumerate(zip(targets, weights, strict=True))]


def _seed(position: int, item: Traced, weight: Any) -> Any:
    if weight is None:
        return np.ones(item.shape, item.dtype)
    shaped = weight if isinstance(weight, Traced) else np.asarray(weight)
    if shaped.ndim and shaped.shape != item.shape:
        raise ValueError(
            f"Entry {position} of `output_gradients` has shape {shaped.shape}, its target {item.shape}: Incompatible "
            f"shapes: {list(shaped.shape)} vs. {list(item.shape)}"
        )
    if isinstance(weight, np.ndarray | np.generic | Traced) and shaped.dtype != item.dtype:
        raise TypeError(f"Entry {position} of `output_gradients` has dtype {shaped.dtype}, its target {item.dtype}.")
    if isinstance(weight, Traced):
        tensor = weight if isinstance(weight, Tensor) else weight.read_value()  # type: ignore[attr-defined]
        if not is_tracked(tensor._id):
            tensor = tensor._value
        return np.broadcast_to(tensor, item.shape) if shaped.shape != item.shape else tensor
    return np.broadcast_to(shaped.astype(item.dtype), item.shape).copy()


def _connected(result: Any, source: Traced, zero: bool) -> Any:
    if result is None:
        return Tensor(np.zeros(source.shape, source.dtype)) if zero else None
    return result if isinstance(result, Tensor) else Tensor(result)


def _units(value: Any) -> Iterator[np.ndarray]:
    """Weights that select one element after the other."""
    for place in np.ndindex(value.shape):
        unit = np.zeros(value.shape, value.dtype)
        unit[place] = 1.0
        yield unit


def _stacked(rows: list[Any], shape: tuple[int, ...], source: Traced, unconnected: Any) -> Any:
    if rows and all(row is None for row in rows):
        return None if unconnected is None else Tensor(unconnected)
    if not rows:
        return Tensor(np.zeros(shape, source.dtype))
    filled = [np.zeros(source.shape, source.dtype) if row is None else row for row in rows]
    return _reshaped(np.stack(filled), shape)


def _reshaped(stacked: Any, shape: tuple[int, ...]) -> Tensor:
    result = np.reshape(stacked, shape)
    return result if isinstance(result, Tensor) else Tensor(result)
