"""Compiled programs: everything that is derived and built for one combination of argument types."""

from __future__ import annotations

import inspect
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numba.core.errors import NumbaError

from tapegen.analysis.integer_overflow import ARGUMENT_BITS
from tapegen.analysis.memory_access import sources
from tapegen.analysis.side_effects import effects_of
from tapegen.backend.background.compile_queue import Job
from tapegen.backend.background.interruptible_source import Deferred, HandOver, until
from tapegen.backend.cache.derived_programs import Derived, Place
from tapegen.backend.numba import memory_limit
from tapegen.backend.numba.build import (
    DISABLED,
    build_numba,
    build_python,
    building,
    compile_failure,
    compile_for,
    compiles,
    decorator_text,
    empty_list,
    error_line,
    parameter_type,
    refuse_long,
    typed,
)
from tapegen.backend.printer.module import emit
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import (
    BadArgument,
    BuildError,
    CacheWarning,
    CompileLimit,
    InternalError,
    NoCompiledForm,
    NotFinite,
    PerformanceWarning,
    Span,
    TapegenError,
    frames_of_tapegen,
)
from tapegen.frontend.calls.custom_rules import own_rule
from tapegen.frontend.lower import Lowered
from tapegen.frontend.source.parse import span_of_parameter
from tapegen.frontend.values.pytree import Abstract, Leaf, Slot, StaticValue, Struct, leaves_of
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import BACKWARD
from tapegen.ir.nodes import (
    Assign,
    Block,
    Call,
    Effect,
    For,
    Function,
    If,
    Raise,
    Return,
    Routine,
    Store,
    Var,
    While,
)
from tapegen.ir.passes import disabled_passes, without_passes
from tapegen.ir.progress_bars import PROGRESS
from tapegen.ir.recursion_limit import deep
from tapegen.ir.types import Array, ListOf, Scalar, is_complex, is_floating
from tapegen.pipeline.debug_nans import MadeNonFinite, run_with_nan_checks, watching, without_garbage
from tapegen.pipeline.fault_boundary import Boundary, Subject, internal_error
from tapegen.pipeline.options import Options
from tapegen.transform.messages import called_functions, has_messages
from tapegen.transform.simplify.real_domain import TURNS_COMPLEX, meets_complex_numbers, with_real_values

if TYPE_CHECKING:
    from tapegen.loops.parallel.outlining import Verdict
    from tapegen.pipeline.derivation import Derivation, Stages

# Passes are imported where they run: a program whose derivatives are on disk needs none of them.

WIDE = 2**ARGUMENT_BITS
"""Integers from here on need separate code: results computed from them may exceed 64 bits."""

Form = Literal["primal", "joint", "record", "pullback", "jvp", "tangent"]
"""The programs of one specialization: see `Stages` of `pipeline.derivation`; "jvp" computes values and tangents,
"tangent" returns tangents without the value."""


_WIDE = "{} of large integers"

CALLS: dict[Form, str] = {
    "primal": "f(*args, **kwargs)",
    "joint": "f.value_and_grad(*args, **kwargs)",
    "record": "value, pullback = f.vjp(*args, **kwargs)\npullback(value)",
    "pullback": "value, pullback = f.vjp(*args, **kwargs)\npullback(value)",
    "jvp": "f.jvp(args, args, **kwargs)",
    "tangent": "f.jvp(args, args, **kwargs)",
}
"""Calls that need these programs."""

_LOOKS = {
    "deriving": "f.inspect(*args, **kwargs)",
    "printing": "found = f.inspect(*args, **kwargs)\nfound.forward, found.primal, found.joint, found.compiled",
}
"""Calls that reach a stage, whatever the program."""


class Owner(Protocol):
    """The function that programs are derived from."""

    function: FunctionType
    signature: inspect.Signature
    uncompiled: set[tuple[str, Span | None]]
    carries: dict[tuple[Any, ...], str]

    def free_names(self) -> list[str]: ...

    def argument_paths(self, abstracts: dict[str, Abstract]) -> dict[str, str]: ...

    def of_the_call(self, positions: Iterable[int | str]) -> tuple[int | str, ...]: ...


class Raised(Exception):
    """An exception of running generated code, as opposed to one of deriving or building it.

    Attributes
    ----------
    error : Exception
        The exception.
    interpreted : bool
        Whether Python ran the code.
    """

    def __init__(self, error: Exception, *, interpreted: bool) -> None:
        super().__init__(str(error))
        self.error, self.interpreted = error, interpreted


@dataclass(slots=True)
class Parts:
    """The artifacts of a program: all of it follows from the lowered function and the options."""

    built: dict[str, Any] = field(default_factory=dict)
    compiled: dict[str, PythonSource] = field(default_factory=dict)
    sources: dict[str, PythonSource] = field(default_factory=dict)  # by their file names


@dataclass(eq=False)
class Program:
    """What is derived and built for one specialization; each part on first use."""

    lowered: Lowered
    owner: Owner
    abstracts: dict[str, Abstract]
    options: Options
    parts: Parts = field(default_factory=Parts)
    disabled: frozenset[str] = field(default_factory=disabled_passes)  # optimizations that are switched off for it
    last_used: float = 0.0
    places: Any = None  # see `runtime.signature_key.ArgumentBinder`
    repeated: dict[Form, Any] = field(default_factory=dict)  # see `runtime.fast_call.FastCall`
    checkpointed: tuple[int, ...] = ()  # the loops that are, by their positions (`transform.recording.checkpoints`)
    variants: dict[Any, Any] = field(default_factory=dict)  # see `with_checkpoints`
    outgrown: dict[Form, Any] = field(default_factory=dict)  # what ran where tapes had outgrown the memory of a call

    def holds(self, arguments: dict[str, Any]) -> bool:
        """Whether values that were assumed constant (captured scalars, static integers) are unchanged."""
        return self.lowered.holds(arguments)

    def with_checkpoints(self, positions: tuple[int, ...]) -> Program:
        """The same program with loops checkpointed."""
        with building:
            if positions not in self.variants:
                self.variants[positions] = replace(
                    self, parts=Parts(), repeated={}, checkpointed=positions, variants={}, outgrown={}
                )
            found: Program = self.variants[positions]
        return found

    def recorded_bytes(self, form: Form) -> Callable[..., int]:
        """The bytes that one of the programs records, as a function of its arguments, where that is known."""
        from tapegen.transform.recording.tape_sizes import evaluated

        names = [param.name for param in self.lowered.function.params]
        return self._once(f"bytes of {form}", lambda: evaluated(self.outline(form).recorded_bytes, names))

    # ---- what is differentiated --------------------------------------------------------------------------------------

    @property
    def wrt_names(self) -> tuple[str, ...]:
        return self._once("names of wrt", self._wrt_names)

    def _wrt_names(self) -> tuple[str, ...]:
        paths = self.owner.argument_paths(self.abstracts)
        names = list(paths)
        wrt = self.options.wrt
        chosen = (wrt,) if isinstance(wrt, int | str) else wrt
        if any(isinstance(item, int) and item >= len(names) for item in chosen):
            chosen = self.owner.of_the_call(chosen)  # only those of `*args` come after the parameters
        found = []
        for item in chosen:
            if isinstance(item, str):
                item = unicodedata.normalize("NFKC", item)  # names of arguments are normalized as by Python
            if isinstance(item, int):
                if not -len(names) <= item < len(names):
                    raise BadArgument(f"wrt={item}: the function has {len(names)} arguments.", "Count from 0.")
                found.append(paths[names[item]])
            elif item in paths:
                found.append(paths[item])
            elif item.partition(".")[0] in self.abstracts:
                found.append(item)
            else:
                raise BadArgument(
                    f"wrt={item!r} is not an argument of {self.owner.function.__name__}.",
                    f"The arguments are {', '.join(names)}.",
                )
        return tuple(found)

    def wrt_template(self, name: str) -> Abstract:
        """The abstract value of one item of `wrt` (`"u0"`, `"self.k"`, `"args.0"`)."""
        head, *path = name.split(".")
        found = self.abstracts[head]
        for text in path:
            part = int(text) if text.isdecimal() else text
            if isinstance(found, Struct) and found.kind == "tuple" and part not in found.keys:
                raise BadArgument(f"wrt={name!r}: there are {len(found.keys)} of them.", "Count from 0.")
            if not isinstance(found, Struct) or part not in found.keys:
                raise BadArgument(
                    f"wrt={name!r}: there is no attribute '{part}'.", "Name an attribute that holds floats."
                )
            found = found.get(part)
        return found

    @property
    def gradient_templates(self) -> tuple[Abstract, ...]:
        """The structures of the gradients, one for each item of `wrt`; their Slots count the derivatives."""

        def make() -> tuple[Abstract, ...]:
            positions = {var: k for k, var in enumerate(self.wrt_vars())}
            return tuple(self._counted(self.wrt_template(name), positions) for name in self.wrt_names)

        return self._once("templates", make)

    def _counted(self, template: Any, positions: dict[Var, int]) -> Any:
        """A template with positions for leaves; inactive values (options, integers) become None."""
        if isinstance(template, Struct):
            return replace(template, children=tuple(self._counted(child, positions) for child in template.children))
        var = self.lowered.param_of(template) if isinstance(template, Leaf) else None
        return Slot(positions[var]) if var in positions else StaticValue(None)

    @property
    def is_complex(self) -> bool:
        """Whether any value of the program is complex."""
        return self._once("is complex", lambda: meets_complex_numbers(self.lowered.function))

    @property
    def mutated(self) -> frozenset[str]:
        """Names of the parameters that the program stores into."""
        return self._once("mutated", lambda: effects_of(self.lowered.function).mutated_params)

    @property
    def has_messages(self) -> bool:
        """Whether the program prints, logs or warns."""
        return self._once("has messages", lambda: has_messages(self.lowered.function.body))

    @property
    def communicates(self) -> bool:
        """Whether the program does what other processes see, so that it cannot run again."""
        called = self._once("called functions", lambda: called_functions(self.lowered.function.body))
        return any(map(intrinsics.is_acting, called))

    @property
    def never_returns(self) -> bool:
        """Whether every path through the primal ends in an exception."""
        return self._once("never returns", lambda: _never_returns(self.lowered.function.body[:-1]))

    def raises(self, error: Exception) -> bool:
        """Whether a statement of the primal raises an exception of this kind with this constant message."""
        return any(
            type(error) is stmt.exception
            and "".join(str(getattr(part, "value", "")) for part in stmt.message) == str(error)
            for stmt in traversal.statements(self.lowered.function.body)
            if isinstance(stmt, Raise)
        )

    def wrt_vars(self) -> tuple[Var, ...]:
        """The IR parameters that are differentiated, each once."""
        return self._once("wrt", self._wrt_vars)

    def _wrt_vars(self) -> tuple[Var, ...]:
        chosen: dict[Var, None] = {}
        for name in self.wrt_names:
            template = self.wrt_template(name)
            leaves = [leaf for leaf in leaves_of(template) if isinstance(leaf, Leaf)]
            floating = [leaf for leaf in leaves if is_floating(leaf.type)]
            integer = [leaf for leaf in leaves if isinstance(leaf.type, Array) and not is_floating(leaf.type)]
            if not floating or integer:
                held = {leaf.type.dtype for leaf in integer if isinstance(leaf.type, Array)}
                numbers = "truth values (bool)" if held == {"bool"} else "integers" if leaves else "no numbers"
                kind = (
                    f"is a {type(template.value).__name__}, which has"
                    if isinstance(template, StaticValue)
                    else f"holds {numbers}, which have"
                )
                raise BadArgument(
                    f"'{name}' {kind} no gradient.",
                    "Pass floats, or leave it out of wrt.",
                    span_of_parameter(self.owner.function, name) or self.lowered.function.origin,
                )
            for leaf in floating:
                var = self.lowered.param_of(leaf)
                if var is not None:
                    chosen.setdefault(var)
        return tuple(chosen)

    def active_results(self, *, scalar: bool) -> tuple[bool, ...]:
        """Which returned values are differentiated; for a gradient there must be one, and it must be a scalar."""
        last = self.lowered.function.body[-1]
        assert isinstance(last, Return)
        objective = self.objective
        if scalar:
            if isinstance(objective, StaticValue) and isinstance(objective.value, float):
                return tuple(False for _ in last.values)
            if isinstance(objective, Slot) and is_complex(last.values[objective.index].type):
                raise BadArgument(
                    f"{self.owner.function.__name__} returns a complex number, which has no gradient.",
                    "Return a real number (its absolute value, its real part), or use vjp with a complex cotangent.",
                    last.origin or self.lowered.function.origin,
                )
            if not isinstance(objective, Slot) or not _is_number(last.values[objective.index].type):
                self.wrt_vars()  # integers in, integers out: the argument is to blame
                is_array = isinstance(objective, Slot) and isinstance(last.values[objective.index].type, Array)
                raise BadArgument(
                    f"{self.owner.function.__name__} does not return a float{' but an array' * is_array}, "
                    "so it has no gradient.",
                    "Return one number, or use vjp or jacobian.",
                    last.origin or self.lowered.function.origin,
                )
            return tuple(k == objective.index for k in range(len(last.values)))
        chosen = {leaf.index for leaf in leaves_of(objective) if isinstance(leaf, Slot)}
        return tuple(k in chosen and is_floating(value.type) for k, value in enumerate(last.values))

    @property
    def objective(self) -> Abstract:
        """The differentiated part of the value: all of it, or the first of two."""
        output = self.lowered.output
        if not self.options.has_aux:
            return output
        if not isinstance(output, Struct) or output.kind != "tuple" or len(output.children) != 2:
            last = self.lowered.function.body[-1]
            assert isinstance(last, Return)
            raise BadArgument(
                "has_aux=True needs a function that returns (objective, aux).",
                "Return a pair.",
                last.origin or self.lowered.function.origin,
            )
        return output.children[0]

    # ---- built artifacts ---------------------------------------------------------------------------------------------

    def subject(self, call: str) -> Subject:
        """The subject of the derivative, for the report of a fault."""
        if self.disabled:
            call = f"with tg.debug(disable={sorted(self.disabled)}):\n{textwrap.indent(call, '    ')}"
        return Subject(self.owner.function, self.owner.signature, self.abstracts, self.options.changed(), call)

    def boundary(self, stage: str, form: Form | None = None) -> Boundary:
        """The boundary where faults in these artifacts become internal errors."""
        call = _LOOKS.get(stage, CALLS["joint"]) if form is None else CALLS[form]
        return Boundary(stage, lambda: self.subject(call))

    def _once(self, name: str, make: Callable[[], Any], stage: str = "deriving", form: Form | None = None) -> Any:
        if name not in self.parts.built:
            with self.boundary(stage, form), building, deep(), without_passes(self.disabled):
                if name not in self.parts.built:  # another thread may have been first
                    self.parts.built[name] = make()
        return self.parts.built[name]

    @property
    def user_names(self) -> frozenset[str]:
        return frozenset(self.lowered.user_names)

    @property
    def primal(self) -> Function:
        def make() -> Function:
            from tapegen.pipeline import compile

            return compile.primal(self.lowered.function, self.user_names)

        return self._once("stages of the primal", make)

    def stages(self, *, scalar: bool) -> Stages:
        active = self.active_results(scalar=scalar)

        def make() -> Stages:
            from tapegen.pipeline import compile

            return compile.derive_reverse(
                self.lowered.function, self.wrt_vars(), active, self.user_names, cut=self.checkpointed
            )

        form: Form = "joint" if scalar else "record"
        return self._once(f"stages of {active}", make, form=form)  # a gradient and a pullback often have the same

    @property
    def pushed(self) -> Function:
        """The program that computes tangents next to values."""

        def make() -> Function:
            results = self.active_results(scalar=False)
            from tapegen.pipeline import compile

            return compile.derive_forward(self.lowered.function, self.wrt_vars(), results, self.user_names)

        return self._once("pushed", make, form="jvp")

    @property
    def tangent(self) -> Function:
        """The program that computes tangents, and values only where the tangents need them."""
        count = sum(self.active_results(scalar=False))

        def make() -> Function:
            from tapegen.pipeline import compile

            return compile.drop_primal_outputs(self.pushed, self.lowered.function, count, self.user_names)

        return self._once("pushed alone", make, form="jvp")

    def function(self, form: Form) -> Function:
        """One of the programs."""
        match form:
            case "primal":
                return self.primal
            case "joint":
                return self.stages(scalar=True).joint
            case "record":
                return self.stages(scalar=False).record
            case "pullback":
                return self.stages(scalar=False).pullback
            case "jvp":
                return self.pushed
            case "tangent":
                return self.tangent

    def outline(self, form: Form, *, wide: bool = False) -> Stages | Derived:
        """The seeds of a reverse derivative, and the values that its forward sweep saves."""
        key = f"outline of {form} {wide}"
        found: Stages | Derived | None = self.parts.built.get(key)
        if found is None:
            found = self.parts.built[key] = self._on_disk(form, wide=wide)[1] or self.stages(scalar=form == "joint")
        return found

    def _on_disk(self, form: Form, *, wide: bool) -> tuple[Place | None, Derived | None]:
        """The cache slot of a program, and the program if it is stored."""

        def look() -> tuple[Place | None, Derived | None]:
            if self.options.backend == "python" or not self.options.cache or _truncates(self.lowered.function):
                return None, None
            wrt: tuple[Var, ...] = ()
            active: tuple[bool, ...] = ()
            if form != "primal":
                wrt, active = self.wrt_vars(), self.active_results(scalar=form == "joint")
            params = self.lowered.function.params
            positions = [params.index(var) for var in wrt]
            cut = self.checkpointed if form in ("joint", "record", "pullback") else ()
            options = (self.options.boundscheck, self.options.parallel)
            chosen = (form, wide, positions, active, *options, sorted(self.disabled), cut)
            names = (sorted(self.user_names), sorted(self.lowered.modules.items()), self._header())
            place = Place(self.lowered.function, [*map(repr, chosen), *map(repr, names), self._decorator()])
            return place, place.load()

        found: tuple[Place | None, Derived | None] = self._once(f"{form} {wide} on disk", look)
        return found

    def text(self, function: Function) -> PythonSource:
        """The readable source."""
        routines = self.routines(function, compiled=False)
        with self.boundary("printing"):
            text = with_real_values(function)
            return self._kept(emit(text, modules=self.lowered.modules, header=self._header(), routines=routines))

    def compiled_text(self, function: Function, *, wide: bool = False) -> PythonSource:
        """The source for numba; `wide` where an integer argument is too large for the usual one."""
        return self._kept(self._compiled_text(function, wide=wide))

    def verdicts(self, function: Function) -> list[Verdict]:
        """What becomes of the loops of a program, if threads may run them."""
        found: list[Verdict] = []
        if self.options.parallel and self.options.backend != "python":
            with self.boundary("printing"), without_passes(self.disabled), suppress(NoCompiledForm):
                self._loops(function, wide=False, verdicts=found)
        return found

    def _loops(self, function: Function, *, wide: bool, verdicts: list[Verdict], watch: Any = None) -> Function:
        """The loops of a program, before they are printed."""
        from tapegen.loops.pipeline import lower_to_loops

        with deep():
            return lower_to_loops(
                function,
                boundscheck=self.options.boundscheck,
                wide=wide,
                bailouts=self.options.backend == "auto",
                messages=True,
                verdicts=verdicts if self.options.parallel else None,
                watch=watch,
            )

    def _compiled_text(self, function: Function, *, wide: bool, stage: str = "") -> PythonSource:
        """The source for numba, or its state after some pass."""
        from tapegen.loops.parallel.outlining import chunks_of

        with self.boundary("printing"), without_passes(self.disabled):
            programs: dict[str, Function] = {}
            with deep():
                try:
                    loops = self._loops(function, wide=wide, verdicts=[], watch=programs.__setitem__)
                except NoCompiledForm:
                    if stage not in programs:
                        raise
                else:
                    programs[""] = loops
                routines = self.routines(programs["insert_bailouts"], compiled=True, messages=True)
                routines |= chunks_of(programs[stage])
            modules, header, decorator = self.lowered.modules, self._header(), self._decorator()
            source = emit(programs[stage], modules=modules, header=header, decorator=decorator, routines=routines)
            return replace(source, only_reads=_only_reads(function) and not (routines or source.namespace))

    def stage_text(self, stages: Stages, stage: str) -> str:
        """The derivative of `stages` after some pass."""
        from tapegen.pipeline import compile
        from tapegen.pipeline.stages import LOOP_STAGES

        if stage in LOOP_STAGES:
            return self._compiled_text(stages.joint, wide=False, stage=stage).text
        found: list[str] = []

        def watch(name: str, derivation: Derivation) -> None:
            if name == stage:
                found.append(derivation.text())

        with self.boundary("deriving"), deep(), without_passes(self.disabled):
            compile.derive_reverse(
                self.lowered.function,
                stages.wrt,
                stages.active_results,
                self.user_names,
                cut=self.checkpointed,
                watch=watch,
            )
        return found[0]

    def routines(self, function: Function, *, compiled: bool, messages: bool = False) -> dict[Routine, Function]:
        """The programs of the routines that a program calls, as they are printed; see `lower_to_loops`."""
        from tapegen.loops.pipeline import lower_to_loops
        from tapegen.pipeline import compile

        with self.boundary("deriving"), without_passes(self.disabled):
            found = compile.routines(function, self.user_names)
            if not compiled:
                return {routine: with_real_values(text) for routine, text in found.items()}
            check = self.options.boundscheck
            return {
                routine: lower_to_loops(text, boundscheck=check, wide=True, messages=messages)
                for routine, text in found.items()
            }

    def _kept(self, source: PythonSource) -> PythonSource:
        self.parts.sources[source.file_name] = source
        return source

    def _decorator(self) -> str:
        return decorator_text(fastmath=self.options.fastmath)

    def _header(self) -> str:
        return f"Generated by tapegen from {self.owner.function.__qualname__} (primal {self.lowered.digest})."

    def run(self, form: Form, arguments: list[Any], restore: Callable[[], None] = lambda: None) -> tuple[Any, ...]:
        """Run one of the programs; build it first if necessary.

        Parameters
        ----------
        form : Form
            Which program.
        arguments : list
            Its arguments.
        restore : callable
            Restores what the program writes into, where the call begins again.

        Raises
        ------
        Raised
            If the built program raises when it runs; errors of building are raised as they are.
        """
        if watching():
            return self._watch(self.function(form), arguments)
        memory_limit.begin(self.options.budget)
        key, built = self._built(form, arguments)
        given = arguments
        if form == "pullback" and not isinstance(built, FunctionType):
            given = list(arguments)
            for k, var in enumerate(self.outline("record").kept):
                if isinstance(var.type, ListOf) and not arguments[k]:
                    given[k] = empty_list(var.type.item)
        try:
            return _called(built, given, real=not self.is_complex)
        except Deferred as deferred:
            try:
                return self._run_meanwhile(self.function(form), arguments, deferred.job)
            except HandOver:
                restore()
            return self.run(form, arguments, restore)
        except (Raised, CompileLimit) as failed:
            python = self._replaced(key, form, failed.error if isinstance(failed, Raised) else failed)
            if python is None:
                raise
        except InternalError as fault:  # compiling begins with the first call
            raise self._internal(fault, form) from fault.__cause__
        return _called(python, arguments, real=not self.is_complex)

    def _built(self, form: Form, arguments: Sequence[Any]) -> tuple[str, Callable[..., Any]]:
        """One of the programs for these arguments, and its name among the artifacts."""
        wide = False
        if self.options.backend != "python":
            for value in arguments:
                wide |= type(value) is int and not -WIDE < value < WIDE
        key = _WIDE.format(form) if wide else form
        return key, self.parts.built.get(key) or self._once(
            key, lambda: self._build(key, form, wide=wide), "compiling", form
        )

    def _replaced(self, key: str, form: Form, error: Exception) -> Callable[..., Any] | None:
        """The generated Python, from now on, of what numba does not take; None for an error of running."""
        source = self.parts.compiled.get(key)
        failure = compile_failure(error, source) if source is not None else None
        if failure is None:
            return None
        built = self.parts.built[key] = self._uncompiled(self.function(form), *failure)
        return built

    def compile(self, form: Form, arguments: Sequence[Any], *, pullback: bool = False) -> None:
        """Compile one of the programs for these arguments, and do not run it.

        Parameters
        ----------
        form : Form
            Which program.
        arguments : sequence
            Its arguments.
        pullback : bool
            Whether to compile the pullback as well, for what the program returns (form "record").
        """
        results = self._compile(form, arguments, lambda built: typed(built, arguments))
        if pullback and results is not None:
            outline = self.outline("record")
            kept = results[len(results) - len(outline.kept) :]
            seeds = [parameter_type(seed.type) for seed in outline.seeds]
            self._compile("pullback", (), lambda _: [*kept, *seeds])

    def _compile(self, form: Form, arguments: Sequence[Any], types: Callable[[Any], Sequence[Any]]) -> list[Any] | None:
        """The types of the results of a compiled program; None where there is none."""
        key, built = self._built(form, arguments)
        if isinstance(built, FunctionType):
            return None
        try:
            return compile_for(built, types(built))
        except (NumbaError, CompileLimit) as error:
            if self._replaced(key, form, error) is None:
                raise
            return None
        except InternalError as fault:
            raise self._internal(fault, form) from fault.__cause__

    def _run_meanwhile(self, function: Function, arguments: list[Any], job: Job) -> tuple[Any, ...]:
        """Run the generated Python while a job compiles; HandOver where the call should begin again."""
        key = f"interruptible text of {function.name}"
        tapes = [tape.name for tape in function.tapes]
        built = self._once(
            key,
            lambda: build_python(self.text(function), tapes, interruptible=_is_repeatable(function)),
            "compiling",
        )
        given = [list(item) if isinstance(item, list) else item for item in arguments]  # lists are used up
        with until(job):
            return _called(built, given, real=not self.is_complex)

    def _internal(self, fault: InternalError, form: Form) -> InternalError:
        """An internal error while numba compiled, with the details of the program."""
        return internal_error(fault.__cause__ or fault, fault.stage, self.subject(CALLS[form]))

    def interpret(self, function: Function, arguments: list[Any]) -> tuple[Any, ...]:
        """Run the generated Python as it stands, whatever the backend is."""
        key = f"text of {function.name}"
        built = self._once(key, lambda: self._python(function), "compiling")
        return _called(built, arguments, real=not self.is_complex)

    def _watch(self, function: Function, arguments: list[Any]) -> tuple[Any, ...]:
        source = self.text(without_garbage(function))
        try:
            return _called(lambda *given: run_with_nan_checks(source, list(given)), arguments, real=not self.is_complex)
        except Raised as raised:
            if not isinstance(raised.error, MadeNonFinite):
                raise
            span, backward = _place(source, raised.error.line)
            raise NotFinite(
                f"{'in the gradient: ' if backward else ''}{raised.error}.",
                "Look at the operands of this line; docs/conventions.md says what derivatives are at kinks and poles.",
                span or self.lowered.function.origin,
            ) from None

    def place(self, error: BaseException) -> tuple[Span | None, bool]:
        """The user's location of an error of generated code, and whether the backward sweep raised it."""
        for source in self.parts.sources.values():
            line = error_line(source, error.__traceback__)
            if line:
                return _place(source, line)
        return None, False

    def loop_of_tape(self, error: BaseException, form: Form) -> Span | None:
        """The loop whose tape does not fit into memory, if an error reports that."""
        for source in self.parts.sources.values():
            line = error_line(source, error.__traceback__) if isinstance(error, MemoryError) else 0
            if line:
                target = source.text.splitlines()[line - 1].partition(" = ")[0].strip()
                if target in {var.name for var in self.function(form).tapes}:  # allocated before its loop, or in it
                    return next(filter(None, source.line_map[line:]), None)
        return None

    def growing_loops(self, form: Form, error: BaseException) -> list[Span]:
        """The loops that grow the tape that does not fit; of all tapes that grow, if that is not known."""
        function = self.function(form)
        tapes = {tape.name for tape in function.tapes}
        found: dict[str, Span | None] = {}
        _grown_in(function.body, tapes, None, found)
        for source in self.parts.sources.values():
            line = error_line(source, error.__traceback__)
            if line:
                name = re.split(r"\W", source.text.splitlines()[line - 1].strip(), maxsplit=1)[0]
                if name in tapes:
                    found = {name: found[name]} if name in found else {}
        return list(dict.fromkeys(span for span in found.values() if span is not None))

    def _build(self, key: str, form: Form, *, wide: bool) -> Callable[..., Any]:
        if self.options.backend == "python":
            return self._python(self.function(form))
        if self.communicates and self.options.backend == "auto":
            from tapegen.transform.loop_extraction import extract_loops

            return self._python(
                extract_loops(self.function(form), self._compiled_loop) if compiles() else self.function(form)
            )
        if self.communicates:
            raise BuildError("a program that communicates runs as Python.", 'Use backend="auto" or "python".')
        if not compiles():
            return self._uncompiled(self.function(form), DISABLED, None)
        try:
            source = self.compiled_source(form, wide=wide)
            self.parts.compiled[key] = source
            if self.options.backend == "auto":
                refuse_long(source)
            background = self.options.backend == "auto"
            return build_numba(source, from_start=True, kept=self.options.cache, background=background)
        except (NoCompiledForm, CompileLimit) as missing:
            return self._uncompiled(self.function(form), missing.reason, missing.span)

    def compiled_source(self, form: Form, *, wide: bool) -> PythonSource:
        """The source for numba of one of the programs: from the disk cache, or derived and stored there."""
        place, stored = self._on_disk(form, wide=wide)
        if stored is not None:
            return self._kept(stored.source)
        source = self.compiled_text(self.function(form), wide=wide)
        if place is not None:
            reverse = form in ("joint", "record", "pullback")
            stages = self.stages(scalar=form == "joint") if reverse else None
            found = Derived(source)
            if stages is not None:
                found = Derived(source, stages.seeds, stages.kept, stages.recorded_bytes)
            place.save(found)
        return source

    def _compiled_loop(self, loop: Function) -> Callable[..., Any] | None:
        """A loop of a program that runs as Python, compiled; None where it has no compiled form."""
        from tapegen.loops.pipeline import lower_to_loops

        with self.boundary("printing"), without_passes(self.disabled):
            try:
                with deep():
                    text = lower_to_loops(loop, boundscheck=self.options.boundscheck, wide=True)
            except (NoCompiledForm, CompileLimit):
                return None
            source = self._kept(
                emit(text, modules=self.lowered.modules, header=self._header(), decorator=self._decorator())
            )
        built: Any = build_numba(source, from_start=True, kept=self.options.cache)
        python: list[Callable[..., Any]] = []

        def call(*args: Any) -> Any:
            if not python:
                try:
                    return built(*args)
                except (NumbaError, CompileLimit, InternalError):  # of compiling, at the first call: nothing has run
                    python.append(self._python(loop))
            return python[0](*args)

        return call

    def _uncompiled(self, function: Function, reason: str, span: Span | None) -> Callable[..., Any]:
        if self.options.backend == "numba":
            raise BuildError(reason, 'Use backend="auto" or "python".', span) from None
        self.warn_uncompiled(function, reason, span)
        return self._python(function)

    def _python(self, function: Function) -> Callable[..., Any]:
        return build_python(self.text(function), [tape.name for tape in function.tapes])

    def warn_uncompiled(self, function: Function, reason: str, span: Span | None) -> None:
        """Report what cannot be compiled: once, for all generated sources of a function."""
        where = f"{span.file}:{span.line}: " if span is not None else ""
        message = f"{where}{reason.rstrip('.')}; the generated Python of {function.name} runs uncompiled"
        if (reason, span) not in self.owner.uncompiled:
            self.owner.uncompiled.add((reason, span))
            warnings.warn(message, PerformanceWarning, stacklevel=frames_of_tapegen())


def _grown_in(body: Block, tapes: Set[str], around: For | While | None, found: dict[str, Span | None]) -> None:
    """Note the loop to blame for each growing tape: the outermost one that may not end, or the outermost one."""
    for stmt in body:
        match stmt:
            case Assign((Var(name),), Call(intrinsics.grown)) | Effect(Call(intrinsics.append, (Var(name), *_))) if (
                name in tapes
            ):
                found.setdefault(name, None if around is None else around.origin)
        loop = around
        if (isinstance(stmt, While) and not isinstance(around, While)) or (isinstance(stmt, For) and around is None):
            loop = stmt
        for block in stmt.blocks:
            _grown_in(block, tapes, loop, found)


def _truncates(function: Function) -> bool:
    """Whether floats may be stored as integers, of which deriving warns."""
    return any(
        isinstance(stmt, Store) and not is_floating(stmt.array.type) and is_floating(stmt.value.type)
        for stmt in traversal.statements(function.body)
    )


def _is_repeatable(function: Function) -> bool:
    """Whether a run that is given up leaves nothing behind: no message, no call of a function of the user."""
    called = called_functions(function.body).difference(PROGRESS)  # bars are erased
    return not any(intrinsics.tells(func) or own_rule(func) is not None for func in called)


def _place(source: PythonSource, line: int) -> tuple[Span | None, bool]:
    """The user's location of a line, and whether it belongs to the backward sweep."""
    before = source.text.splitlines()[:line]
    backward = source.entry.endswith("_pullback") or any(BACKWARD in text for text in before)
    while backward and line > 1 and source.origin(line) is None and BACKWARD not in before[line - 1]:
        line -= 1  # the user's statement is a comment on the lines that belong to it; helpers have none
    return source.origin(line), backward


def _called(built: Callable[..., Any], arguments: list[Any], *, real: bool) -> tuple[Any, ...]:
    """The results of a built program; none of the `real` ones may have become complex."""
    interpreted = isinstance(built, FunctionType)
    try:
        if interpreted:
            with np.errstate(all="ignore"):
                values = built(*arguments)
        else:  # compiled code does not consult NumPy's error handling
            values = built(*arguments)
    except (TapegenError, CacheWarning, Deferred, HandOver):  # of compiling, at the first call
        raise
    except Exception as error:
        raise Raised(error, interpreted=interpreted) from error
    if values is None:  # a function without computed results
        return ()
    values = values if isinstance(values, tuple) else (values,)
    for value in values:
        if real and isinstance(value, complex):
            became = ValueError(f"a negative number is raised to a fractional power{TURNS_COMPLEX}")
            raise Raised(became, interpreted=interpreted)
    return values


def _is_number(type_: Any) -> bool:
    return is_floating(type_) and not isinstance(type_, ListOf) and (isinstance(type_, Scalar) or type_.rank == 0)


def _only_reads(function: Function) -> bool:
    """Whether a program certainly writes into no parameter and returns no part of one."""
    effects = effects_of(function)
    last = function.body[-1] if function.body else None
    returned = [var for value in last.values for var in sources(value)] if isinstance(last, Return) else []
    params = {param.name for param in function.params}
    return not effects.mutated_params and all(params.isdisjoint(effects.roots(var)) for var in returned)


def _never_returns(body: Block) -> bool:
    """Whether every path through a block ends in an exception."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, Raise) or (
        isinstance(last, If) and _never_returns(last.body) and _never_returns(last.orelse)
    )
