"""Bound calls: one call of a specialized program, its value and derivatives, and the translation of its errors."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.library import messages
from tapegen.backend.numba.memory_limit import LIST_FULL, TOO_MUCH
from tapegen.errors import BadArgument, TapegenError, TapeMemoryError, of_program
from tapegen.frontend.mutation import commit
from tapegen.frontend.source.callables import calls_instead
from tapegen.frontend.values.pytree import (
    is_foreign,
)
from tapegen.ir import progress_bars
from tapegen.ir.nodes import Var
from tapegen.pipeline.artifacts.differentiated_arguments import Owner
from tapegen.pipeline.artifacts.error_locations import location, loop_of_tape
from tapegen.pipeline.artifacts.executables import compile_only, key_of, warn_uncompiled
from tapegen.pipeline.artifacts.execution import Raised, interpret, refute, rests_on_assumptions, run
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.runtime import stored_state
from tapegen.runtime.calls.argument_checks import check_shapes, check_written
from tapegen.runtime.calls.call_errors import CallErrors, user_line
from tapegen.runtime.calls.cotangents import cotangents_of, unit_cotangent, zero_tangent
from tapegen.runtime.fast_call import FastCall, as_types, gradient_of, result_types, value_of
from tapegen.runtime.foreign_arrays import described, with_labels, with_numpy
from tapegen.runtime.random_state import restore_states, states_of
from tapegen.runtime.repeated_messages import seen
from tapegen.runtime.tangents import argument_at, argument_tangents, as_result, result_tangent
from tapegen.runtime.tracebacks import hides_frames
from tapegen.transform.simplify.real_domain import TURNS_COMPLEX

if TYPE_CHECKING:
    from tapegen.pipeline.inspection import Inspection


def inspected(program: Program, leaves: Sequence[Any] | None = None) -> Inspection:
    """The interface of generated programs, with the values of the parameters if there are any."""
    from tapegen.pipeline.inspection import Inspection
    from tapegen.runtime.checkpointed_calls import JOINT, RECORD, planned

    try:
        stages, form = program.stages(scalar=True), JOINT
    except BadArgument:
        stages, form = program.stages(scalar=False), RECORD
    found = None if leaves is None else planned(program, form, leaves)
    if found is None:
        return Inspection(program, stages, leaves, program.lowered.sources)
    attempt, lines = found
    if attempt is not None:
        program, stages = attempt.program, attempt.program.stages(scalar=form == JOINT)
    schedules = () if attempt is None else attempt.schedules
    return Inspection(program, stages, leaves, program.lowered.sources, lines, schedules)


class Specializer(Owner, Protocol):
    """The function that is called (`runtime.specialization`)."""

    python: Callable[..., Any]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]: ...

    def varied(self, program: Program, wrt: tuple[int, ...]) -> Program: ...


@dataclass(eq=False, slots=True)
class BoundCall:
    """A program with the arguments of one call.

    Attributes
    ----------
    program : Program
        The program for their types.
    owner : Specializer
        The function.
    args, kwargs
        The arguments as they were given.
    values : sequence
        The flat arguments of the generated functions.
    owns_copies : bool
        Whether these are copies, which no call may write into.
    given : tuple, optional
        The arguments before those of other libraries became NumPy arrays.
    """

    program: Program
    owner: Specializer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    values: Sequence[Any]
    owns_copies: bool = False
    given: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    def kept(self, wrt: tuple[int, ...]) -> BoundCall:
        """This call with copies of all that it reads, differentiated with respect to other arguments."""
        values = self.values if self.owns_copies else copy.deepcopy(self.values)
        return replace(self, program=self.owner.varied(self.program, wrt), values=values, owns_copies=True)

    @property
    def errors(self) -> CallErrors:
        """The errors of this call."""
        return CallErrors(self.program, self.owner)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def answer(self, form: Form, tangents: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Value and derivative: the gradient for "joint", the tangent along those of `wrt` for "jvp" and "tangent".

        With `has_aux`, the auxiliary result follows a tangent.  For "primal" the derivative is None, and for
        "tangent" the value, which is not computed.
        """
        known = None if self.owns_copies else self.program.repeated.get(form)
        found = known.run(self.values, tangents) if known is not None and known.takes(tangents) else None
        if found is None:
            found = self.evaluate_slow(form, tangents)
        return found if form != "joint" or self.given is None else (found[0], self._with_labels(found[1]))

    def evaluate_slow(self, form: Form, tangents: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Slow path of `evaluate`, where compiled code alone does not suffice."""
        if form == "primal":
            return self._value(), None
        return self._value_and_grad() if form == "joint" else self._jvp(form, tangents)

    def _value(self) -> Any:
        """The primal; plain Python's value where a real scalar or matrix becomes complex."""
        leaves = self.leaves()
        try:
            values = self._run("primal", leaves)
        except _ComplexInPython as plain:
            return plain.value
        self._remember("primal", lambda: FastCall.of_value(self.program, leaves))
        return self._stored(values, leaves, "primal")

    def _value_and_grad(self) -> tuple[Any, Any]:
        program = self.program
        if program.never_returns:
            self.raise_as_python()
        seeds = [unit_cotangent(seed) for seed in program.outline("joint").seeds]
        leaves = self.leaves()
        _, values = self._within_budget("joint", leaves + seeds)
        count = len(values) - len(program.wrt_vars())
        if program.repeated.get("joint") is None:
            check_shapes(self.errors, values[count:], self._shapes(leaves))
        self._remember("joint", lambda: FastCall.of_gradient(program, leaves, seeds))
        return self._stored(values[:count], leaves, "joint"), self._gradient(values[count:], "joint")

    def precompile(self, form: Form) -> None:
        """Compile the program of a form for these arguments; "record" includes its pullback.  Nothing runs."""
        program = self.program
        if program.never_returns or program.options.backend == "python":
            return
        leaves = self.leaves()
        if form == "joint":
            leaves += [unit_cotangent(seed) for seed in program.outline("joint").seeds]
        elif form in ("jvp", "tangent"):
            form = self._tangent_form(form)
            given = dict(zip(program.lowered.function.params, leaves, strict=False))
            leaves += [zero_tangent(given[var]) for var in program.wrt_vars()]
        compile_only(program, form, leaves, pullback=form == "record")

    def raise_as_python(self) -> None:
        """Raise what plain Python raises; report an argument that is no scalar or array if that is the reason.

        Raises
        ------
        BadArgument
            For such an argument.
        """
        try:
            self._value()
        except TypeError as error:
            unfit = None if isinstance(error, TapegenError) else self.errors.unfit(error, self._arguments())
            if unfit is None:
                raise
            raise unfit from error

    def recorded_bytes(self) -> dict[str, int]:
        """Run the forward sweep, and count the bytes of what it hands to the backward sweep, by name."""
        kept = self.program.outline("record").kept
        values = self._run("record", copy.deepcopy(self.leaves()))
        return {var.name: _bytes(value) for var, value in zip(kept, values[len(values) - len(kept) :], strict=True)}

    def vjp(self) -> tuple[Any, ...]:
        """Value and pullback, and with `has_aux` the auxiliary result."""
        leaves = self.leaves()
        shapes = self._shapes(leaves)
        program, values = self._within_budget("record", leaves)
        outline = program.outline("record")
        count = len(values) - len(outline.kept)
        value, *aux = self.parts(self._stored(values[:count], leaves, "record"))
        # what the pullback reads must survive later changes of the caller's arrays and of the value
        theirs = [leaf for leaf in (*self.leaves(), *values[:count]) if isinstance(leaf, np.ndarray)]
        kept = [_without_overlap(item, theirs) for item in values[count:]]

        @hides_frames
        def pullback(value_bar: Any) -> Any:
            """Cotangents of the arguments of `wrt` for cotangents of the value."""
            seeds = cotangents_of(
                program.selection.objective, value, with_numpy(value_bar, "the cotangent"), outline.seeds
            )
            # a pullback removes values from the end of its lists; the next call must find them again
            again = [list(item) if isinstance(item, list) else item for item in kept]
            try:
                gradients = run(program, "pullback", [*again, *seeds])
            except Raised as raised:
                raise self.errors.refusal(raised.error, "pullback", program=program) from raised.error
            check_shapes(self.errors, gradients, shapes)
            return self._with_labels(self._gradient(gradients, "pullback"))

        return value, pullback, *aux

    def _jvp(self, form: Form, tangents: Sequence[Any]) -> tuple[Any, ...]:
        program = self.program
        form = self._tangent_form(form)
        given: dict[Var, Any] = {}
        arguments = self.owner.bind(self.args, self.kwargs)
        for name, tangent in zip(program.wrt_names, tangents, strict=True):
            template = program.selection.template(name)
            # a program that stores into no argument stores into no tangent of one
            found = argument_tangents(
                name, template, argument_at(arguments, name), tangent, copied=bool(program.mutated)
            )
            for leaf, dot in found:
                var = program.lowered.param_of(leaf)
                if var is not None:
                    given.setdefault(var, dot)
        wrt = program.wrt_vars()
        if program.never_returns:
            self.raise_as_python()
        leaves = self.leaves()
        values = self._run(form, [*leaves, *(given[var] for var in wrt)])
        self._remember(form, lambda: FastCall.of_tangent(program, form, leaves))
        with program.boundary("returning", form):
            types = result_types(program)
            active = [k for k, is_active in enumerate(program.selection.active_results(scalar=False)) if is_active]
            count = len(values) - len(active)
            theirs, taken = list(given.values()), list[Any]()
            for position, dot in zip(active, values[count:], strict=True):
                taken.append(as_result(dot, types[position], [*theirs, *taken]))
            tangent = result_tangent(program.selection.objective, dict(zip(active, taken, strict=True)))
        if form == "tangent":
            return None, tangent
        result, *aux = self.parts(self._stored(values[:count], leaves, form))
        return result, tangent, *aux

    def _tangent_form(self, form: Form) -> Form:
        """The program that computes tangents: with values where these are needed as well."""
        program = self.program
        whole = (
            program.options.has_aux
            or program.lowered.mutations
            or not any(program.selection.active_results(scalar=False))
        )
        return "jvp" if whole else form

    def _remember(self, form: Form, make: Callable[[], FastCall | None]) -> None:
        """A fast call for later calls, if this one has run compiled code."""
        program = self.program
        if form not in program.repeated and key_of(program, form) in program.parts.built and not program.has_messages:
            with program.boundary("returning", form):
                program.repeated[form] = make()

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def leaves(self) -> list[Any]:
        """The flat arguments of the generated functions."""
        return list(copy.deepcopy(self.values) if self.owns_copies else self.values)

    def written(self) -> list[Any]:
        """The arguments that the program stores into."""
        params = self.program.lowered.function.params
        return [leaf for param, leaf in zip(params, self.leaves(), strict=True) if param.name in self.program.mutated]

    def _within_budget(self, form: Form, leaves: list[Any]) -> tuple[Program, tuple[Any, ...]]:
        """The results of the recording program; where its tapes exceed the budget, of one that checkpoints loops."""
        program = self.program
        budget = memory_limit.measured_limit(program.options.budget)
        predicted = program.recorded_bytes(form)(*leaves)
        too_much: TapeMemoryError | None = None
        told: float = messages.count()
        if predicted <= budget and form not in program.outgrown:
            try:
                return program, self._run(form, leaves)
            except TapeMemoryError as error:
                if not program.stages(scalar=form == "joint").loops():
                    raise
                too_much = error
        from tapegen.runtime.checkpointed_calls import Planner, too_small

        planner = Planner(program, form, leaves, budget)
        told = (
            math.inf if too_much is not None and self.program.options.backend == "python" else messages.count() - told
        )
        restore = self.restorer(leaves)
        known = [program.outgrown[form]] if form in program.outgrown else []
        for attempt in itertools.chain(known, planner.attempts()):
            try:
                with self._seen(told):
                    values = self._run(form, [*leaves, *attempt.numbers], attempt.program)
                if form == "record" and not attempt.is_sure:
                    try:
                        self._try_pullback(attempt.program, values)
                    except TapeMemoryError:
                        restore()
                        raise
            except TapeMemoryError as error:
                too_much = too_much or error
                continue
            if predicted <= budget:  # its tapes grow: how far is not known before
                program.outgrown[form] = attempt
            return attempt.program, values
        if too_much is None and predicted <= budget:
            return program, self._run(form, leaves)
        if too_much is not None and program.options.memory is None and not planner.refused:
            raise too_much
        raise too_small(planner, self.owner.function.__qualname__, program.lowered.function.origin, predicted)

    def _try_pullback(self, program: Program, values: Sequence[Any]) -> None:
        """Run a pullback that may need too much memory: a later one cannot go back to shorter segments.

        Raises
        ------
        TapeMemoryError
            If it does.
        """
        outline = program.outline("record")
        count = len(values) - len(outline.kept)
        active = program.selection.active_results(scalar=False)
        seeds = [
            np.zeros_like(value) if isinstance(value, np.ndarray) else type(value)(0.0)
            for value, is_active in zip(values[:count], active, strict=True)
            if is_active
        ]
        kept = [list(item) if isinstance(item, list) else item for item in values[count:]]
        try:
            run(program, "pullback", [*kept, *seeds])
        except Raised as raised:
            if isinstance(raised.error, MemoryError):
                raise self.errors.too_much(raised.error, "pullback", program) from raised.error

    def _run(self, form: Form, leaves: list[Any], program: Program | None = None) -> tuple[Any, ...]:
        program = program or self.program
        self.check_stores(form, leaves)
        put_back_arguments = self.restorer(leaves)
        told: float = messages.count()
        bars = progress_bars.opened()

        def restore() -> None:
            """Undo what a run has done that begins again."""
            progress_bars.close_since(bars, erase=True)
            put_back_arguments()

        try:
            if not all(array.flags.writeable for array in self._stored_arrays(leaves)):  # compiled code refuses these
                return interpret(program, program.function(form), leaves)
            return run(program, form, leaves, restore)
        except TapegenError as refused:
            if program.communicates and refused.span is None:
                refused.span = location(program, refused)[0] or program.lowered.function.origin
            raise
        except Raised as raised:
            error = raised.error
            progress_bars.close_since(bars)
            if program.communicates:  # what other ranks have received cannot be undone
                raise of_program(error) from None
            told = math.inf if raised.interpreted else messages.count() - told
            put_back_arguments()
            if isinstance(error, RuntimeError) and str(error) == messages.FAILED and (own := messages.failure()):
                raise of_program(own) from None
            if isinstance(error, Warning) and program.has_messages:  # filters make it an exception
                raise of_program(error) from None
            if isinstance(error, MemoryError) and str(error) in (TOO_MUCH, LIST_FULL):
                raise self.errors.too_much(error, form, program) from error
            loop = loop_of_tape(program, error, form)
            if loop is not None:  # plain Python does not run: it would go through a loop that is too long
                raise self.errors.refusal(error, form, loop, program) from error
            if isinstance(error, MemoryError) and program.function(form).tapes:
                with self._seen(math.inf):
                    has_value = self._has_value(leaves)
                put_back_arguments()
                if has_value:
                    raise self.errors.refusal(error, form, program=program) from error
            from tapegen.loops.library.bailout import GIVES_UP

            gives_up = isinstance(error, NotImplementedError) and str(error).endswith(GIVES_UP)
            runs_as_python = gives_up or isinstance(error, OverflowError | RecursionError)
            if not gives_up:
                with self._seen(told):
                    self._as_python_then_back(error, form)
                put_back_arguments()
            if not runs_as_python and rests_on_assumptions(program, form):  # it may fail before it tests them
                refute(program, form)
                return self._run(form, leaves, program)
            if runs_as_python and program.options.backend == "auto":
                warn_uncompiled(program, program.function(form), str(error), location(program, error)[0])
                try:
                    with self._seen(told):
                        return interpret(program, program.function(form), leaves)
                except Raised as again:  # tapes hold 64 bits, and the stack is limited
                    error = again.error
                    put_back_arguments()
                    if gives_up:
                        with self._seen(math.inf):
                            self._as_python_then_back(error, form)
                        put_back_arguments()
            raise self.errors.refusal(error, form, program=program) from error

    def _seen(self, count: float) -> AbstractContextManager[None]:
        """Leave out messages that an earlier run of this call has written."""
        return seen(count) if self.program.has_messages else nullcontext()

    def check_stores(self, form: Form, leaves: Sequence[Any]) -> None:
        """Refuse a call whose stores into arguments and other objects of the caller would be inconsistent."""
        if not self.owns_copies:
            stored_state.check(self.program, form, self._arguments)
        if self.program.mutated:
            check_written(self.errors, leaves)

    def restorer(self, leaves: Sequence[Any]) -> Callable[[], None]:
        """A function that restores arrays which the program stores into, and generators, to their present state."""
        stored = self._stored_arrays(leaves)
        if self.program.mutated:  # what stores into an argument stores into its tangent
            tangents = leaves[len(self.program.lowered.function.params) :]
            stored += [tangent for tangent in tangents if isinstance(tangent, np.ndarray)]
        entry = [(array, array.copy()) for array in stored if array.flags.writeable]
        states = states_of(leaves)

        def restore() -> None:
            for array, before in entry:
                array[...] = before
            restore_states(states)

        return restore

    def _stored_arrays(self, leaves: Sequence[Any]) -> list[np.ndarray]:
        """The arrays that the program stores into."""
        if not self.program.mutated:
            return []
        params = self.program.lowered.function.params
        written = [leaf for leaf, param in zip(leaves, params, strict=False) if param.name in self.program.mutated]
        return [leaf for leaf in written if isinstance(leaf, np.ndarray)]

    def _as_python_then_back(self, error: Exception, form: Form) -> None:
        """Run plain Python to raise its exception; if it returns, the caller's objects are restored."""
        restore = self.entry()
        self._reraise_from_python(error, form)
        restore()

    def _has_value(self, leaves: list[Any]) -> bool:
        """Whether the function itself finds enough memory; generated code answers that faster than plain Python."""
        try:
            run(self.program, "primal", leaves[: len(self.program.lowered.function.params)])
        except Raised:
            return False
        return True

    def _reraise_from_python(self, error: Exception, form: Form) -> None:
        """Run plain Python to raise its exception, with its own traceback.

        If it raises nothing because its values are complex, it has computed the primal, which is raised.
        """
        try:
            value = self.owner.python(*self.args, **self.kwargs)
        except Exception as own:
            function = calls_instead(self.owner.function) or self.owner.function
            line = user_line(own, function)
            note = f"in {function.__qualname__}, {line}"
            if line is not None and note not in getattr(own, "__notes__", ()):  # a call in the loop of a batch has it
                own.add_note(note)
            of_program(own)
            raise
        if form == "primal" and isinstance(error, ValueError) and str(error).endswith(TURNS_COMPLEX):
            raise _ComplexInPython(value) from error

    def _shapes(self, leaves: Sequence[Any]) -> list[tuple[int, ...]]:
        """Those of the arguments of `wrt`."""
        given = dict(zip(self.program.lowered.function.params, leaves, strict=False))
        return [np.shape(given[var]) for var in self.program.wrt_vars()]

    # ---- arrays of other libraries -----------------------------------------------------------------------------------

    def note_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note the arguments before some became NumPy arrays, which the program must not store into."""
        self.given = args, kwargs
        before, now = self.owner.bind(args, kwargs), self._arguments()
        for param in self.program.lowered.params:
            if param.getter is not None or param.var.name not in self.program.mutated:
                continue
            first, last = before[param.argument], now[param.argument]
            if first is not last:
                what = described(first) if is_foreign(first) else "made of arrays of other libraries"
                raise BadArgument(
                    f"'{param.argument}' is stored into, and it is {what}, which would not see that.",
                    "Pass NumPy arrays.",
                    self.errors.parameter(param.argument),
                )
        if self.program.lowered.mutations:
            raise BadArgument(
                "the function stores into objects of its caller, and some arguments hold arrays of other libraries.",
                "Pass NumPy arrays.",
                self.program.lowered.function.origin,
            )

    def _with_labels(self, gradient: Any) -> Any:
        """A gradient with the labels of the arguments that have some."""
        if self.given is None:
            return gradient
        arguments = self.owner.bind(*self.given)
        parts = [argument_at(arguments, name) for name in self.program.wrt_names]
        if isinstance(self.program.options.wrt, int | str):
            return with_labels(parts[0], gradient)
        return tuple(map(with_labels, parts, gradient))

    # ---- results -----------------------------------------------------------------------------------------------------

    def _result(self, values: Sequence[Any], form: Form) -> Any:
        with self.program.boundary("returning", form):
            return value_of(self.program)(as_types(values, result_types(self.program)))

    def _stored(self, values: Sequence[Any], leaves: Sequence[Any], form: Form) -> Any:
        """The value, after stores into the caller's objects have been done."""
        with self.program.boundary("returning", form):
            results = as_types(values, result_types(self.program))
        self.store(results, leaves)
        return self._result(values, form)

    def store(self, results: Sequence[Any], leaves: Sequence[Any]) -> None:
        """Store what the program returns for objects of the caller; a frozen copy of a call stores nothing."""
        if self.program.lowered.mutations and not self.owns_copies:
            commit.apply(self.program.lowered.mutations, self._arguments(), results, leaves)

    def _arguments(self) -> dict[str, Any]:
        return self.owner.bind(self.args, self.kwargs)

    def entry(self) -> Callable[[], None]:
        """A function that restores the present contents of the caller's objects."""
        undo = commit.before(self.program.lowered.mutations, self._arguments())
        return lambda: [each() for each in undo].clear()

    def as_python_raises(self) -> None:
        """Run plain Python where a derivative of this call has raised an error: it stores as usual, and raises."""
        self._as_python_then_back(RuntimeError(), "joint")

    def parts(self, value: Any) -> tuple[Any, ...]:
        """The value; with `has_aux` the objective, and the auxiliary result."""
        return (value,) if self.program.selection.objective is self.program.lowered.output else tuple(value)

    def _gradient(self, values: Sequence[Any], form: Form) -> Any:
        with self.program.boundary("returning", form):
            return gradient_of(self.program)(as_types(values, [var.type for var in self.program.wrt_vars()]))


class _ComplexInPython(Exception):
    """Plain Python has a complex value where the generated primal is real."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def _without_overlap(item: Any, others: list[np.ndarray]) -> Any:
    """An array, or a copy if it shares memory with one of the others."""
    if isinstance(item, np.ndarray) and any(np.may_share_memory(item, other) for other in others):
        return item.copy()
    return item


def _bytes(value: Any) -> int:
    """Bytes of an array, or of the arrays of a list."""
    return sum(map(_bytes, value)) if isinstance(value, list) else np.asarray(value).nbytes
