"""One specialisation per combination of argument types: lowering, deriving, building and running."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from tapegen.backend.build import building
from tapegen.errors import AliasError, BadArgument, PerformanceWarning, Span, TapegenError, TapeMemoryError
from tapegen.frontend.callables import calling, unwrap
from tapegen.frontend.lower import Lowered, lower_function
from tapegen.frontend.lower_own import own_rule
from tapegen.frontend.structure import (
    Abstract,
    Leaf,
    Slot,
    StaticValue,
    Struct,
    abstract_of,
    children_of,
)
from tapegen.generators import States, put_back, states_of
from tapegen.inspection import Inspection
from tapegen.ir.nodes import Return, Var
from tapegen.ir.protocols import is_opaque
from tapegen.ir.types import Array
from tapegen.kept import Kept
from tapegen.options import Options
from tapegen.program import Form, Program, Raised, frames_of_tapegen
from tapegen.repeated import Repeated, RepeatedTangent, as_type, gradient_of, value_of
from tapegen.rules.registry import generation
from tapegen.shared import share_parts, with_changing_floats
from tapegen.tangents import argument_tangents, as_result, result_tangent

_SHARING_EFFORT = 10_000  # steps spent on finding out whether two arrays really share an element


class Specialiser:
    """The specialisations of one function, found by the types of the arguments.

    Parameters
    ----------
    func : callable
        The function.
    home : Specialiser, optional
        Of a bound method: the one that keeps the programs of the method for all objects.
    first : int
        How many parameters a home leaves to the objects that the function is bound to.
    """

    def __init__(self, func: Callable[..., Any], home: Specialiser | None = None, first: int = 0) -> None:
        self.python = func
        self._first = first
        self._home = self if home is None else home
        self._methods: Specialiser | None = None
        self.function, self.bound_args, self.bound_kwargs = unwrap(func)
        self.signature = inspect.signature(self.function)
        self._made_of = self._changeable()
        self._programs: Kept = Kept() if home is None else home._programs
        self._at_a_glance = Kept()  # by what is quickly seen and hashed
        self._plain = self._plain_names()
        self.uncompiled: set[tuple[str, Span | None]] = set()  # what was said to have no compiled form

    def bound(self, method: Callable[..., Any]) -> Specialiser:
        """The same function bound to an object: what is made for one object serves all of their kind."""
        if self._methods is None:
            self._methods = Specialiser(self.python, first=1)
        return Specialiser(method, self._methods)

    def _changeable(self) -> tuple[Any, ...]:
        """What the signature and the bound arguments were read from, and anyone may have changed since."""
        function = self.function
        return function.__code__, function.__defaults__, function.__kwdefaults__ and dict(function.__kwdefaults__)

    def _refresh(self) -> None:
        """Read the signature and the bound arguments again where they may have changed."""
        if self.bound_kwargs:
            self.function, self.bound_args, self.bound_kwargs = unwrap(self.python)
        now = self._changeable()
        if not all(map(_same_parts, now, self._made_of)):
            self.signature, self._made_of = inspect.signature(self.function), now
            self._plain = self._plain_names()

    def _plain_names(self) -> tuple[tuple[str, ...], str, str] | None:
        """The parameters that a call gives one by one, and those that take the rest, if no more is to be known."""
        if self.bound_kwargs or not all(map(is_opaque, self.bound_args)):  # what is opaque is a constant
            return None
        names: list[str] = []
        rest = {inspect.Parameter.VAR_POSITIONAL: "", inspect.Parameter.VAR_KEYWORD: ""}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind in rest:
                rest[parameter.kind] = name
            elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                names.append(name)
            else:
                return None
        return tuple(names), rest[inspect.Parameter.VAR_POSITIONAL], rest[inspect.Parameter.VAR_KEYWORD]

    def _named(self, args: tuple[Any, ...]) -> dict[str, Any] | None:
        """Arguments that are given by position, by the names of the parameters; None where there is more to them."""
        if self._plain is None:
            return None
        names, rest, named = self._plain
        given = (*self.bound_args, *args)
        if len(given) < len(names) or (len(given) > len(names) and not rest):
            return None
        arguments = dict(zip(names, given, strict=False))
        if rest:
            arguments[rest] = given[len(names) :]
        if named:
            arguments[named] = {}
        return arguments

    def free_names(self) -> list[str]:
        """The parameters that a caller counts: neither `self` nor what is bound already."""
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = list(self.signature.parameters.values())
        count = len(self.bound_args) + self._first
        bound = [param for param in parameters if param.kind in positional][:count]
        if not bound and parameters and parameters[0].name == "self":
            bound = parameters[:1]
        return [param.name for param in parameters if param not in bound]

    def specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Specialisation:
        """The program for these arguments, together with them."""
        glance = None
        arguments = self._named(args) if not kwargs else None
        if arguments is not None:
            glance = _glance(args)
            for program in self._at_a_glance.of((glance, generation())) if glance is not None else ():
                if (program.options is options or program.options == options) and program.holds(arguments):
                    program.last_used = monotonic()
                    return Specialisation(program, self, arguments, args, kwargs)
        with building:
            found = self._looked_up(args, kwargs, options)
            if glance is not None:
                self._at_a_glance.add((glance, generation()), found.program)
        return found

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Specialisation:
        arguments = self.bind(args, kwargs)
        abstracts = {name: abstract_of(value, name) for name, value in arguments.items()}
        key = (tuple(_key(abstract) for abstract in abstracts.values()), options, generation())
        for program in self._programs.of(key):
            if program.holds(arguments):
                program.last_used = monotonic()
                return Specialisation(program, self, arguments, args, kwargs)
        lowered = with_changing_floats(self.function.__code__, key, functools.partial(self.lower, abstracts))
        program = Program(lowered, self._home, abstracts, options)
        share_parts(program, key)
        self._programs.add(key, program)
        return Specialisation(program, self, arguments, args, kwargs)

    def varied(self, program: Program, wrt: tuple[int, ...]) -> Program:
        """A program for the same primal, differentiated by other arguments."""
        options = replace(program.options, wrt=wrt)
        key = (tuple(map(_key, program.abstracts.values())), options, generation())
        with building:
            for found in self._programs.of(key):
                if found.lowered is program.lowered:
                    return found
            made = Program(program.lowered, program.owner, program.abstracts, options)
            share_parts(made, key)
            self._programs.add(key, made)
        return made

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the names of the parameters."""
        self._refresh()
        bound = self.signature.bind(*self.bound_args, *args, **{**self.bound_kwargs, **kwargs})
        bound.apply_defaults()
        return dict(bound.arguments)

    def lower(self, abstracts: dict[str, Abstract], changing: frozenset[Any] = frozenset()) -> Lowered:
        """The function for abstract values of all its parameters, with these captured floats as arguments."""
        positional: list[Abstract] = []
        keyword: dict[str, Abstract] = {}
        for name, parameter in self.signature.parameters.items():
            abstract = abstracts[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                assert isinstance(abstract, Struct)
                positional.extend(abstract.children)
            elif parameter.kind is parameter.VAR_KEYWORD:
                assert isinstance(abstract, Struct)
                keyword.update(zip(abstract.keys, abstract.children, strict=True))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                keyword[name] = abstract
            else:
                positional.append(abstract)
        ruled = next((func for func in (self.python, self.function) if own_rule(func) is not None), None)
        function = self.function if ruled is None else calling(ruled)
        return lower_function(function, tuple(positional), keyword, changing=changing)


def _glance(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What is quickly seen of arguments and decides their types; None if there is more to them."""
    seen: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is np.ndarray:
            flags = value.flags
            unit = tuple(n == 1 for n in value.shape) if 1 in value.shape else value.ndim
            seen.append((value.dtype, unit, flags.c_contiguous, flags.f_contiguous, flags.aligned))
        elif kind in (float, complex, np.random.Generator) or (kind is int and -(2**63) <= value < 2**63):
            seen.append(kind)
        else:
            return None
    return tuple(seen)


def _key(abstract: Abstract) -> Any:
    """What of an argument a specialisation depends on."""
    if isinstance(abstract, Leaf):
        return abstract.type
    if isinstance(abstract, Struct):
        keys = abstract.keys if abstract.kind != "dict" else tuple(map(StaticValue, abstract.keys))  # 1 is not True
        return (abstract.kind, keys, abstract.cls, tuple(_key(child) for child in abstract.children))
    return abstract


@dataclass(eq=False)
class Specialisation:
    """A program with the arguments of one call."""

    program: Program
    owner: Specialiser
    arguments: dict[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    held: list[Any] | None = None

    def kept(self, wrt: tuple[int, ...]) -> Specialisation:
        """This call with everything it reads as it is now, differentiated by other arguments."""
        held = copy.deepcopy(self.leaves()) if self.held is None else self.held
        return replace(self, program=self.owner.varied(self.program, wrt), held=held)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def value(self) -> Any:
        """The primal."""
        values = self._run("primal", self.leaves())
        return self._result(values)

    def value_and_grad(self) -> tuple[Any, Any]:
        program = self.program
        known = program.repeated
        found: tuple[Any, Any] | None = None if known is None else known.run(self.arguments)
        if found is not None:
            return found
        if program.never_returns:
            self.value()  # raises what plain Python raises
        seeds = [_seed_one(seed) for seed in program.outline("joint").seeds]
        leaves = self.leaves()
        values = self._run("joint", leaves + seeds)
        count = len(values) - len(program.wrt_vars())
        if known is None:
            program.repeated = Repeated.of(program, leaves, seeds)
        return self._result(values[:count]), self._gradient(values[count:])

    def vjp(self) -> tuple[Any, ...]:
        """Value and pullback, and with `has_aux` what else the function returns."""
        outline = self.program.outline("record")
        values = self._run("record", self.leaves())
        count = len(values) - len(outline.kept)
        value, *aux = self.parts(self._result(values[:count]))
        # what the pullback reads must survive whatever the caller does with his arrays and with the value
        theirs = [leaf for leaf in (*self.leaves(), *values[:count]) if isinstance(leaf, np.ndarray)]
        kept = [_apart(item, theirs) for item in values[count:]]

        def pullback(value_bar: Any) -> Any:
            """Cotangents of the arguments of `wrt` for cotangents of the value."""
            seeds = self._seeds(value, value_bar, outline.seeds)
            # a pullback takes values off the end of its lists; the next call must find them again
            again = [list(item) if isinstance(item, list) else item for item in kept]
            try:
                gradients = self.program.run("pullback", [*again, *seeds])
            except Raised as raised:
                raise self._refusal(raised.error) from raised.error
            return self._gradient(gradients)

        return value, pullback, *aux

    def jvp(self, tangents: Collection[Any], *, value: bool = True) -> tuple[Any, ...]:
        """Value and tangent, and with `has_aux` what else there is; `tangents` are those of `wrt`, in order.

        Without `value` None stands in its place, and it is not computed.
        """
        program = self.program
        known = program.repeated_tangents.get(value) if self.held is None else None
        again: tuple[Any, Any] | None = None if known is None else known.run(self.arguments, tangents)
        if again is not None:
            return again
        is_alone = not value and not program.options.has_aux and any(program.active_results(scalar=False))
        form: Form = "tangent" if is_alone else "jvp"
        given: dict[Var, Any] = {}
        for name, tangent in zip(program.wrt_names, tangents, strict=True):
            template = program.wrt_template(name)
            # a program that stores into no argument stores into no tangent of one
            found = argument_tangents(name, template, self.arguments[name], tangent, copied=bool(program.mutated))
            for leaf, dot in found:
                var = program.lowered.param_of(leaf)
                if var is not None:
                    given.setdefault(var, dot)
        wrt = program.wrt_vars()
        if program.never_returns:
            self.value()  # raises what plain Python raises
        leaves = self.leaves()
        values = self._run(form, [*leaves, *(given[var] for var in wrt)])
        if value not in program.repeated_tangents:
            program.repeated_tangents[value] = RepeatedTangent.of(program, form, leaves)
        last = program.lowered.function.body[-1]
        assert isinstance(last, Return)
        active = [k for k, is_active in enumerate(program.active_results(scalar=False)) if is_active]
        count = len(values) - len(active)
        theirs, taken = list(given.values()), list[Any]()
        for position, dot in zip(active, values[count:], strict=True):
            taken.append(as_result(dot, last.values[position].type, [*theirs, *taken]))
        tangent = result_tangent(program.objective, dict(zip(active, taken, strict=True)))
        if is_alone:
            return None, tangent
        result, *aux = self.parts(self._result(values[:count]))
        return result, tangent, *aux

    def inspect(self) -> Inspection:
        program = self.program
        try:
            stages = program.stages(scalar=True)
        except BadArgument:
            stages = program.stages(scalar=False)
        return Inspection(program, stages, self.leaves())

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def leaves(self) -> list[Any]:
        """The flat arguments of the generated functions."""
        return self.program.lowered.leaves(self.arguments) if self.held is None else copy.deepcopy(self.held)

    def written(self) -> list[Any]:
        """The arguments that the program stores into."""
        params = self.program.lowered.function.params
        return [leaf for param, leaf in zip(params, self.leaves(), strict=True) if param.name in self.program.mutated]

    def _run(self, form: Form, leaves: list[Any]) -> tuple[Any, ...]:
        program = self.program
        mutated = program.mutated
        arrays: list[np.ndarray] = []
        if mutated:
            params = program.lowered.function.params
            written = [(k, leaves[k]) for k, param in enumerate(params) if param.name in mutated]
            self._check_written(written, leaves[: len(params)])
            arrays = [leaf for _, leaf in written if isinstance(leaf, np.ndarray)]
        entry = [(leaf, leaf.copy()) for leaf in arrays if leaf.flags.writeable]
        states = states_of(leaves)
        try:
            if len(entry) < len(arrays):  # compiled code takes no read-only arrays to write into
                return program.interpret(program.function(form), leaves)
            return program.run(form, leaves)
        except Raised as raised:
            error = raised.error
            _put_back(entry, states)
            loop = program.loop_of_tape(error, form)
            if loop is not None:  # plain Python is not asked: it would go through a loop that is too long
                raise self._refusal(error, loop) from error
            self._reraise(error)
            _put_back(entry, states)
            if isinstance(error, OverflowError | RecursionError) and program.options.backend == "auto":
                warnings.warn(
                    f"{error}; the generated Python runs uncompiled",
                    PerformanceWarning,
                    stacklevel=frames_of_tapegen(),
                )
                try:
                    return program.interpret(program.function(form), leaves)
                except Raised as again:  # tapes hold 64 bits, and the stack has an end
                    error = again.error
                    _put_back(entry, states)
            raise self._refusal(error) from error

    def _reraise(self, error: Exception) -> None:
        """Run plain Python in order to raise what it raises, with its own traceback."""
        try:
            self.owner.python(*self.args, **self.kwargs)
        except Exception as own:
            line = _user_line(own, self.owner.function)
            if line is not None:
                own.add_note(f"in {self.owner.function.__qualname__}, {line}")
            raise own from None

    def _refusal(self, error: Exception, loop: Span | None = None) -> TapegenError:
        """An error of generated code where plain Python has a value, or of the tape of a loop."""
        span, backward = self.program.place(error)
        whole = self.program.lowered.function.origin
        name = self.owner.function.__qualname__
        if isinstance(error, MemoryError):
            return TapeMemoryError(
                f"what the derivative of {name} records does not fit into memory: {error}.",
                "Take shorter loops or smaller arrays, or use jvp, which records nothing.",
                loop or span or whole,
            )
        if not backward:
            return BadArgument(
                f"the generated code of {name} cannot go on here: {error}.",
                "Plain Python has a value here, without a derivative: pass other numbers, or write this differently.",
                span or whole,
            )
        where = f"of line {span.line}" if span is not None else f"of {name}"
        return BadArgument(
            f"in the gradient {where}: {type(error).__name__}: {error}.",
            "The function has a value here, but no finite derivative: pass other numbers, or write this differently.",
            span or whole,
        )

    def _check_written(self, written: list[tuple[int, Any]], leaves: list[Any]) -> None:
        for k, leaf in written:
            if not isinstance(leaf, np.ndarray):
                continue
            for j, other in enumerate(leaves):
                if j != k and isinstance(other, np.ndarray) and _share(leaf, other):
                    names = [self.program.lowered.function.params[n].name for n in (k, j)]
                    raise AliasError(
                        f"'{names[0]}' is written and shares memory with '{names[1]}'.",
                        f"Pass a copy of one of them ({names[1]}.copy()).",
                    )
            if leaf.size > 1 and 0 in [stride for n, stride in zip(leaf.shape, leaf.strides, strict=True) if n > 1]:
                name = self.program.lowered.function.params[k].name
                if leaf.flags.writeable:
                    raise AliasError(
                        f"'{name}' is written, and several of its elements are the same memory.",
                        f"Pass a copy ({name}.copy()).",
                    )

    # ---- results -----------------------------------------------------------------------------------------------------

    def _result(self, values: Sequence[Any]) -> Any:
        program = self.program
        if program.restored is None:
            program.restored = value_of(program)
        return program.restored(values)

    def parts(self, value: Any) -> tuple[Any, ...]:
        """The value; with `has_aux` the objective, and what else the function returns."""
        return (value,) if self.program.objective is self.program.lowered.output else tuple(value)

    def _gradient(self, values: Sequence[Any]) -> Any:
        return gradient_of(self.program)(values)

    def _seeds(self, value: Any, value_bar: Any, wanted: tuple[Var, ...]) -> list[Any]:
        """Cotangents of the active results, checked against the value."""
        seeds: list[Any] = []
        for position, (leaf, bar) in enumerate(_matched(self.program.objective, value, value_bar)):
            if not _floats(leaf):
                continue
            if np.shape(bar) != np.shape(leaf):
                raise BadArgument(
                    f"the cotangent of result {position} has shape {np.shape(bar)}, the result {np.shape(leaf)}.",
                    "Give cotangents in the structure of the value.",
                )
            if np.iscomplexobj(bar) and not np.iscomplexobj(leaf):
                raise BadArgument(
                    f"the cotangent of result {position} is complex, the result is real.",
                    "Give real cotangents of real results.",
                )
            if isinstance(leaf, np.ndarray):
                seeds.append(np.array(bar, leaf.dtype))
            else:
                seeds.append(leaf.dtype.type(bar) if isinstance(leaf, np.generic) else type(leaf)(bar))
        if len(seeds) != len(wanted):
            raise BadArgument("the cotangents do not match the value.", "Give one for each result.")
        return seeds


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _same_parts(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(a[name] is b[name] for name in a)
    return a is b


def _seed_one(seed: Var) -> Any:
    if isinstance(seed.type, Array):
        return np.ones((), seed.type.dtype)
    return as_type(1.0, seed.type)


def _apart(item: Any, others: list[np.ndarray]) -> Any:
    """An array, or a copy if one of the others has memory of it."""
    if isinstance(item, np.ndarray) and any(np.may_share_memory(item, other) for other in others):
        return item.copy()
    return item


def _put_back(entry: list[tuple[np.ndarray, np.ndarray]], states: States) -> None:
    """Give arrays and generators what they held on entry."""
    for leaf, before in entry:
        leaf[...] = before
    put_back(states)


def _share(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays share an element, or that is too hard to tell."""
    try:
        return np.shares_memory(a, b, max_work=_SHARING_EFFORT)  # type: ignore[arg-type]  # the stub knows 0 and -1
    except np.exceptions.TooHardError:
        return True


def _floats(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind in "fc"


def _matched(template: Any, value: Any, value_bar: Any) -> Iterator[tuple[Any, Any]]:
    """The computed leaves of a value with their cotangents; what the program returns as a constant has none."""
    if isinstance(template, StaticValue):
        return
    if isinstance(template, Slot):
        yield value, value_bar
        return
    values, bars = children_of(value), children_of(value_bar)
    if values is None or bars is None or values.keys != bars.keys:
        raise BadArgument("the cotangents do not match the value.", "Give them in the structure of the value.")
    for child, part, bar in zip(template.children, values.children, bars.children, strict=True):
        yield from _matched(child, part, bar)


def _user_line(error: BaseException, function: Any) -> str | None:
    """`file:line: text` of the innermost frame that belongs to the user's function."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == function.__code__.co_filename:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    if found is None:
        return None
    import linecache

    file = function.__code__.co_filename
    return f"{file}:{found}: {linecache.getline(file, found).strip()}"
