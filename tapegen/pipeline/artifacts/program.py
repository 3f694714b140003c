"""Compiled programs: everything that is derived and built for one combination of argument types."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tapegen.analysis.side_effects import effects_of
from tapegen.backend.cache.derived_programs import Derived, Place
from tapegen.backend.numba.build import building, decorator_text
from tapegen.backend.printer.source import PythonSource
from tapegen.frontend.calls.custom_rules import own_rule
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.values.pytree import Abstract
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Block, Function, If, Raise, Store, Var
from tapegen.ir.passes import deep, disabled_passes, without_passes
from tapegen.ir.progress_bars import PROGRESS
from tapegen.ir.types import is_floating
from tapegen.pipeline.artifacts.differentiated_arguments import Owner, Selection
from tapegen.pipeline.fault_boundary import Boundary, Subject
from tapegen.pipeline.options import Options
from tapegen.transform.messages import called_functions, has_messages
from tapegen.transform.simplify.real_domain import involves_complex_numbers

if TYPE_CHECKING:
    from tapegen.pipeline.passes.derivation import Stages

_SHORT = 4
"""Elements of an axis that is assumed to keep its size."""

# Passes are imported where they run: a program whose derivatives are on disk needs none of them.

Form = Literal["primal", "joint", "record", "pullback", "jvp", "tangent"]
"""The programs of one specialization: see `Stages` of `pipeline.passes.derivation`; "jvp" computes values and tangents,
"tangent" returns tangents without the value."""

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


@dataclass(slots=True)
class Parts:
    """The artifacts of a program: all of it follows from the lowered function and the options."""

    built: dict[str, Any] = field(default_factory=dict)
    compiled: dict[str, PythonSource] = field(default_factory=dict)
    sources: dict[str, PythonSource] = field(default_factory=dict)  # by their file names
    refuted: set[Form] = field(default_factory=set)  # whose assumptions did not hold in some call
    sizes_vary: set[Form] = field(default_factory=set)  # whose short axes had another size in some call


@dataclass(eq=False)
class Program:
    """What is derived and built for one specialization; each part on first use."""

    lowered: Lowered
    owner: Owner
    abstracts: dict[str, Abstract]
    options: Options
    parts: Parts = field(default_factory=Parts)
    disabled: frozenset[str] = field(default_factory=disabled_passes)  # optimizations that are switched off for it
    short_axes: tuple[tuple[int, int, int], ...] = ()  # of the first call, see `short_axes_of`
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
        return self.once(f"bytes of {form}", lambda: evaluated(self.outline(form).recorded_bytes, names))

    # ---- what is differentiated --------------------------------------------------------------------------------------

    @cached_property
    def selection(self) -> Selection:
        return Selection(self.lowered, self.owner, self.abstracts, self.options)

    @property
    def wrt_names(self) -> tuple[str, ...]:
        """The items of `wrt` as paths of arguments."""
        return self.once("names of wrt", self.selection.names)

    def wrt_vars(self) -> tuple[Var, ...]:
        """The IR parameters that are differentiated, each once."""
        return self.once("wrt", self.selection.variables)

    @property
    def gradient_templates(self) -> tuple[Abstract, ...]:
        """The structures of the gradients, one for each item of `wrt`; their Slots count the derivatives."""
        return self.once("templates", self.selection.gradient_templates)

    # ---- properties of the primal ------------------------------------------------------------------------------------

    @property
    def is_complex(self) -> bool:
        """Whether any value of the program is complex."""
        return self.once("is complex", lambda: involves_complex_numbers(self.lowered.function))

    @property
    def mutated(self) -> frozenset[str]:
        """Names of the parameters that the program stores into."""
        return self.once("mutated", lambda: effects_of(self.lowered.function).mutated_params)

    @property
    def has_messages(self) -> bool:
        """Whether the program prints, logs or warns."""
        return self.once("has messages", lambda: has_messages(self.lowered.function.body))

    @property
    def communicates(self) -> bool:
        """Whether the program does what other processes see, so that it cannot run again."""
        called = self.once("called functions", lambda: called_functions(self.lowered.function.body))
        return any(map(intrinsics.is_acting, called))

    @property
    def is_repeatable(self) -> bool:
        """Whether a run that is given up leaves nothing behind: no message, no call of a function of the user."""
        return self.once("is repeatable", self._is_repeatable)

    def _is_repeatable(self) -> bool:
        called = called_functions(self.lowered.function.body).difference(PROGRESS)  # bars are erased
        return not any(intrinsics.tells(func) or own_rule(func) is not None for func in called)

    def speculates(self, form: Form) -> bool:
        """Whether compiled code of a form may assume what is not known: general code runs where that does not hold."""
        return form != "pullback" and form not in self.parts.refuted and self.is_repeatable

    def assumed_sizes(self, form: Form) -> tuple[tuple[int, int, int], ...]:
        """The sizes of short axes that compiled code of a form assumes."""
        return self.short_axes if self.speculates(form) and form not in self.parts.sizes_vary else ()

    @property
    def never_returns(self) -> bool:
        """Whether every path through the primal ends in an exception."""
        return self.once("never returns", lambda: _never_returns(self.lowered.function.body[:-1]))

    def raises(self, error: Exception) -> bool:
        """Whether a statement of the primal raises an exception of this kind with this constant message."""
        return any(
            type(error) is stmt.exception
            and "".join(str(getattr(part, "value", "")) for part in stmt.message) == str(error)
            for stmt in traversal.statements(self.lowered.function.body)
            if isinstance(stmt, Raise)
        )

    # ---- artifacts ---------------------------------------------------------------------------------------------------

    def once(self, name: str, make: Callable[[], Any], stage: str = "deriving", form: Form | None = None) -> Any:
        """An artifact, made at the first request."""
        if name not in self.parts.built:
            with self.boundary(stage, form), building, deep(), without_passes(self.disabled):
                if name not in self.parts.built:  # another thread may have been first
                    self.parts.built[name] = make()
        return self.parts.built[name]

    def keep(self, source: PythonSource) -> PythonSource:
        """The source, which is kept to locate errors of its lines."""
        self.parts.sources[source.file_name] = source
        return source

    def subject(self, call: str) -> Subject:
        """The subject of the derivative, for the report of a fault."""
        if self.disabled:
            call = f"with tg.debug(disable={sorted(self.disabled)}):\n{textwrap.indent(call, '    ')}"
        return Subject(self.owner.function, self.owner.signature, self.abstracts, self.options.changed(), call)

    def boundary(self, stage: str, form: Form | None = None) -> Boundary:
        """The boundary where faults in these artifacts become internal errors."""
        call = _LOOKS.get(stage, CALLS["joint"]) if form is None else CALLS[form]
        return Boundary(stage, lambda: self.subject(call))

    @property
    def header(self) -> str:
        """The first line of generated text."""
        return f"Generated by tapegen from {self.owner.function.__qualname__} (primal {self.lowered.digest})."

    @property
    def decorator(self) -> str:
        """The decorator of text for numba."""
        return decorator_text(fastmath=self.options.fastmath)

    # ---- derived programs --------------------------------------------------------------------------------------------

    @property
    def user_names(self) -> frozenset[str]:
        return frozenset(self.lowered.user_names)

    @property
    def primal(self) -> Function:
        def make() -> Function:
            from tapegen.pipeline import compile

            return compile.primal(self.lowered.function, self.user_names)

        return self.once("stages of the primal", make)

    def stages(self, *, scalar: bool) -> Stages:
        active = self.selection.active_results(scalar=scalar)

        def make() -> Stages:
            from tapegen.pipeline import compile

            return compile.derive_reverse(
                self.lowered.function,
                self.wrt_vars(),
                active,
                self.user_names,
                cut=self.checkpointed,
                parallel=self.options.parallel,
            )

        form: Form = "joint" if scalar else "record"
        return self.once(_stages_of(active), make, form=form)  # a gradient and a pullback often have the same

    @property
    def pushed(self) -> Function:
        """The program that computes tangents next to values."""

        def make() -> Function:
            results = self.selection.active_results(scalar=False)
            from tapegen.pipeline import compile

            return compile.derive_forward(self.lowered.function, self.wrt_vars(), results, self.user_names)

        return self.once("pushed", make, form="jvp")

    @property
    def tangent(self) -> Function:
        """The program that computes tangents, and values only where the tangents need them."""
        count = sum(self.selection.active_results(scalar=False))

        def make() -> Function:
            from tapegen.pipeline import compile

            return compile.drop_primal_outputs(self.pushed, self.lowered.function, count, self.user_names)

        return self.once("pushed alone", make, form="jvp")

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

    def outline(self, form: Form, *, general: bool | None = None) -> Stages | Derived:
        """The seeds of a reverse derivative, and the values that its forward sweep saves."""
        general = not self.speculates(form) if general is None else general
        key = f"outline of {form} {general}"
        found: Stages | Derived | None = self.parts.built.get(key)
        if found is None:
            scalar = form == "joint"
            derived = _stages_of(self.selection.active_results(scalar=scalar)) in self.parts.built
            stored = None if derived else self.on_disk(form, general=general)[1]
            found = self.parts.built[key] = stored or self.stages(scalar=scalar)
        return found

    def on_disk(self, form: Form, *, general: bool) -> tuple[Place | None, Derived | None]:
        """The cache slot of a program, and the program if it is stored."""

        def look() -> tuple[Place | None, Derived | None]:
            if self.options.backend == "python" or not self.options.cache or _truncates(self.lowered.function):
                return None, None
            wrt: tuple[Var, ...] = ()
            active: tuple[bool, ...] = ()
            if form != "primal":
                wrt, active = self.wrt_vars(), self.selection.active_results(scalar=form == "joint")
            params = self.lowered.function.params
            positions = [params.index(var) for var in wrt]
            cut = self.checkpointed if form in ("joint", "record", "pullback") else ()
            options = (self.options.boundscheck, self.options.parallel)
            chosen = (form, general, sizes, positions, active, *options, sorted(self.disabled), cut)
            names = (sorted(self.user_names), sorted(self.lowered.modules.items()), self.header)
            place = Place(self.lowered.function, [*map(repr, chosen), *map(repr, names), self.decorator])
            return place, place.load()

        sizes = () if general else self.assumed_sizes(form)
        found: tuple[Place | None, Derived | None] = self.once(f"{form} {general} {bool(sizes)} on disk", look)
        return found


def _stages_of(active: tuple[bool, ...]) -> str:
    """The name of the programs of reverse mode with respect to some results."""
    return f"stages of {active}"


def short_axes_of(leaves: Sequence[Any]) -> tuple[tuple[int, int, int], ...]:
    """The last axes of arrays of two to four elements: coordinates, classes, colours, which rarely change.

    Returns
    -------
    tuple
        For each axis the position of the array, the axis, and its size.
    """
    shapes = [(k, leaf.shape) for k, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.ndim > 1]
    return tuple([(k, len(shape) - 1, shape[-1]) for k, shape in shapes if 2 <= shape[-1] <= _SHORT])


def _truncates(function: Function) -> bool:
    """Whether floats may be stored as integers, of which deriving warns."""
    return any(
        isinstance(stmt, Store) and not is_floating(stmt.array.type) and is_floating(stmt.value.type)
        for stmt in traversal.statements(function.body)
    )


def _never_returns(body: Block) -> bool:
    """Whether every path through a block ends in an exception."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, Raise) or (
        isinstance(last, If) and _never_returns(last.body) and _never_returns(last.orelse)
    )
