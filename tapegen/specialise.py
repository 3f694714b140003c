"""One specialisation per combination of argument types: lowering, deriving, building and running."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tapegen import compiler
from tapegen.backend.build import build_numba, build_python, compile_failure, decorator_text
from tapegen.backend.emit import emit
from tapegen.backend.source import PythonSource
from tapegen.errors import AliasError, BadArgument, BuildError, CompileLimit, PerformanceWarning, Span, TapegenError
from tapegen.frontend.callables import unwrap
from tapegen.frontend.lower import Lowered, lower_function
from tapegen.frontend.structure import (
    Abstract,
    Leaf,
    Slot,
    StaticValue,
    Struct,
    abstract_of,
    children_of,
    leaves_of,
    map_leaves,
)
from tapegen.inspection import Inspection
from tapegen.ir.nodes import Block, Function, If, Raise, Return, Var
from tapegen.ir.types import Array, ListOf, Scalar, is_floating
from tapegen.tangents import argument_tangents, as_result, result_tangent
from tapegen.transform.nests import NoCompiledForm, scalarise

if TYPE_CHECKING:
    from tapegen.api import Options


class Specialiser:
    """The specialisations of one function, found by the types of the arguments."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.python = func
        self.function, self.bound_args, self.bound_kwargs = unwrap(func)
        self.signature = inspect.signature(self.function)
        self._programs: dict[Any, list[Program]] = {}

    def free_names(self) -> list[str]:
        """The parameters that a caller counts: neither `self` nor what is bound already."""
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = list(self.signature.parameters.values())
        bound = [param for param in parameters if param.kind in positional][: len(self.bound_args)]
        if not bound and parameters and parameters[0].name == "self":
            bound = parameters[:1]
        return [param.name for param in parameters if param not in bound]

    def specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Specialisation:
        """The program for these arguments, together with them."""
        bound = self.signature.bind(*self.bound_args, *args, **{**self.bound_kwargs, **kwargs})
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        abstracts = {name: abstract_of(value, name) for name, value in arguments.items()}
        key = (tuple(_key(abstract) for abstract in abstracts.values()), options)
        for program in self._programs.get(key, ()):
            if program.holds(arguments):
                return Specialisation(program, self, arguments, args, kwargs)
        lowered = self._lower(bound, abstracts)
        program = Program(lowered, self, abstracts, options)
        self._programs.setdefault(key, []).append(program)
        return Specialisation(program, self, arguments, args, kwargs)

    def _lower(self, bound: inspect.BoundArguments, abstracts: dict[str, Abstract]) -> Lowered:
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
        return lower_function(self.function, tuple(positional), keyword)


def _key(abstract: Abstract) -> Any:
    """What of an argument a specialisation depends on."""
    if isinstance(abstract, Leaf):
        return abstract.type
    if isinstance(abstract, Struct):
        return (abstract.kind, abstract.keys, abstract.cls, tuple(_key(child) for child in abstract.children))
    return abstract


@dataclass(eq=False)
class Program:
    """What is derived and built for one specialisation; each part on first use."""

    lowered: Lowered
    owner: Specialiser
    abstracts: dict[str, Abstract]
    options: Options
    _built: dict[str, Any] = field(default_factory=dict)
    _compiled: dict[str, PythonSource] = field(default_factory=dict)

    def holds(self, arguments: dict[str, Any]) -> bool:
        """Whether what was taken as constant (captured scalars, static integers) still has the same value."""
        return self.lowered.holds(arguments)

    # ---- what is differentiated --------------------------------------------------------------------------------------

    @property
    def wrt_names(self) -> tuple[str, ...]:
        return self._once("names of wrt", self._wrt_names)

    def _wrt_names(self) -> tuple[str, ...]:
        names = self.owner.free_names()
        wrt = self.options.wrt
        chosen = (wrt,) if isinstance(wrt, int | str) else wrt
        found = []
        for item in chosen:
            if isinstance(item, int):
                if not -len(names) <= item < len(names):
                    raise BadArgument(f"wrt={item}: the function has {len(names)} arguments.", "Count from 0.")
                found.append(names[item])
            elif item.partition(".")[0] in self.abstracts:
                found.append(item)
            else:
                raise BadArgument(
                    f"wrt={item!r} is not an argument of {self.owner.function.__name__}.",
                    f"The arguments are {', '.join(names)}.",
                )
        return tuple(found)

    def wrt_template(self, name: str) -> Abstract:
        """The abstract value of one item of `wrt` (`"u0"`, `"self.k"`)."""
        head, *path = name.split(".")
        found = self.abstracts[head]
        for part in path:
            if not isinstance(found, Struct) or part not in found.keys:
                raise BadArgument(
                    f"wrt={name!r}: there is no attribute '{part}'.", "Name an attribute that holds floats."
                )
            found = found.get(part)
        return found

    @property
    def gradient_templates(self) -> tuple[Abstract, ...]:
        """The structures of the gradients, one for each item of `wrt`."""
        return self._once(
            "templates", lambda: tuple(_without_statics(self.wrt_template(name)) for name in self.wrt_names)
        )

    @property
    def never_returns(self) -> bool:
        """Whether every path through the primal ends in an exception."""
        return self._once("never returns", lambda: _never_returns(self.lowered.function.body[:-1]))

    def wrt_vars(self) -> tuple[Var, ...]:
        """The IR parameters that are differentiated, each once."""
        chosen: dict[Var, None] = {}
        for name in self.wrt_names:
            template = self.wrt_template(name)
            leaves = [leaf for leaf in leaves_of(template) if isinstance(leaf, Leaf)]
            floating = [leaf for leaf in leaves if is_floating(leaf.type)]
            integer = [leaf for leaf in leaves if isinstance(leaf.type, Array) and not is_floating(leaf.type)]
            if not floating or integer:
                raise BadArgument(
                    f"'{name}' holds {'integers' if leaves else 'no numbers'}, which have no gradient.",
                    "Pass floats, or leave it out of wrt.",
                )
            for leaf in floating:
                var = self.lowered.param_of(leaf)
                if var is not None:
                    chosen.setdefault(var)
        return tuple(chosen)

    def active_results(self, *, scalar: bool) -> tuple[bool, ...]:
        """Which returned values are differentiated; for a gradient there must be one, and it must be a number."""
        last = self.lowered.function.body[-1]
        assert isinstance(last, Return)
        output = self.lowered.output
        if scalar:
            objective = output
            if self.options.has_aux:
                if not isinstance(output, Struct) or output.kind != "tuple" or len(output.children) != 2:
                    raise BadArgument("has_aux=True needs a function that returns (objective, aux).", "Return a pair.")
                objective = output.children[0]
            if isinstance(objective, StaticValue) and isinstance(objective.value, float):
                return tuple(False for _ in last.values)
            if not isinstance(objective, Slot) or not _is_number(last.values[objective.index].type):
                raise BadArgument(
                    f"{self.owner.function.__name__} does not return a float, so it has no gradient.",
                    "Return one number, or use vjp.",
                    last.origin,
                )
            return tuple(k == objective.index for k in range(len(last.values)))
        return tuple(is_floating(value.type) for value in last.values)

    # ---- built parts -------------------------------------------------------------------------------------------------

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._built:
            self._built[name] = make()
        return self._built[name]

    @property
    def user_names(self) -> frozenset[str]:
        return frozenset(self.lowered.user_names)

    @property
    def primal(self) -> Function:
        return self._once("stages of the primal", lambda: compiler.primal(self.lowered.function, self.user_names))

    def stages(self, *, scalar: bool) -> compiler.Stages:
        def make() -> compiler.Stages:
            return compiler.differentiate(
                self.lowered.function, self.wrt_vars(), self.active_results(scalar=scalar), self.user_names
            )

        return self._once(f"stages {scalar}", make)

    @property
    def pushed(self) -> Function:
        """The program that computes tangents next to values."""

        def make() -> Function:
            results = self.active_results(scalar=False)
            return compiler.push_forward(self.lowered.function, self.wrt_vars(), results, self.user_names)

        return self._once("pushed", make)

    def text(self, function: Function) -> PythonSource:
        """The readable text."""
        return emit(function, modules=self.lowered.modules, header=self._header())

    def compiled_text(self, function: Function) -> PythonSource:
        """The text that numba gets."""
        decorator = decorator_text(fastmath=self.options.fastmath)
        nests = scalarise(function, boundscheck=self.options.boundscheck)
        return emit(nests, modules=self.lowered.modules, header=self._header(), decorator=decorator)

    def _header(self) -> str:
        return f"Generated by tapegen from {self.owner.function.__qualname__} (primal {self.lowered.digest})."

    def run(self, name: str, function: Function, arguments: list[Any]) -> tuple[Any, ...]:
        """Run one of the programs, building it first if need be."""
        if name not in self._built:
            self._built[name] = self._build(name, function)
        try:
            with np.errstate(all="ignore"):
                values = self._built[name](*arguments)
        except Exception as error:
            source = self._compiled.get(name)
            failure = compile_failure(error, source) if source is not None else None
            if failure is None:
                raise
            self._built[name] = self._uncompiled(function, *failure)
            with np.errstate(all="ignore"):
                values = self._built[name](*arguments)
        if values is None:  # a function without computed results
            return ()
        return values if isinstance(values, tuple) else (values,)

    def _build(self, name: str, function: Function) -> Callable[..., Any]:
        if self.options.backend == "python":
            return build_python(self.text(function))
        try:
            self._compiled[name] = source = self.compiled_text(function)
            return build_numba(source)
        except (NoCompiledForm, CompileLimit) as missing:
            return self._uncompiled(function, missing.reason, missing.span)

    def _uncompiled(self, function: Function, reason: str, span: Span | None) -> Callable[..., Any]:
        if self.options.backend == "numba":
            raise BuildError(reason, 'Use backend="auto" or "python".', span) from None
        where = f"{span.file}:{span.line}: " if span is not None else ""
        message = f"{where}{reason.rstrip('.')}; the generated Python of {function.name} runs uncompiled"
        warnings.warn(message, PerformanceWarning, stacklevel=_frames_of_tapegen())
        return build_python(self.text(function))


def _frames_of_tapegen() -> int:
    """The `stacklevel` at which a warning points at the user's own line."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tapegen":
        level, frame = level + 1, frame.f_back
    return level


def _never_returns(body: Block) -> bool:
    """Whether every path through a block ends in an exception."""
    if not body:
        return False
    last = body[-1]
    return isinstance(last, Raise) or (
        isinstance(last, If) and _never_returns(last.body) and _never_returns(last.orelse)
    )


def _is_number(type_: Any) -> bool:
    return is_floating(type_) and not isinstance(type_, ListOf) and (isinstance(type_, Scalar) or type_.rank == 0)


@dataclass(eq=False)
class Specialisation:
    """A program with the arguments of one call."""

    program: Program
    owner: Specialiser
    arguments: dict[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    # ---- calls -------------------------------------------------------------------------------------------------------

    def value(self) -> Any:
        """The primal."""
        program = self.program
        values = self._run("primal", program.primal, self._leaves())
        return self._result(values)

    def value_and_grad(self) -> tuple[Any, Any]:
        if self.program.never_returns:
            self.value()  # raises what plain Python raises
        stages = self.program.stages(scalar=True)
        seeds = [_seed_one(seed) for seed in stages.seeds]
        values = self._run("joint", stages.joint, [*self._leaves(), *seeds])
        count = len(values) - len(stages.wrt)
        return self._result(values[:count]), self._gradient(dict(zip(stages.wrt, values[count:], strict=True)))

    def vjp(self) -> tuple[Any, Callable[[Any], Any]]:
        stages = self.program.stages(scalar=False)
        values = self._run("record", stages.record, self._leaves())
        count = len(values) - len(stages.kept)
        value, kept = self._result(values[:count]), values[count:]

        def pullback(value_bar: Any) -> Any:
            """Cotangents of the arguments of `wrt` for cotangents of the value."""
            seeds = self._seeds(value, value_bar, stages)
            # a pullback takes values off the end of its lists; the next call must find them again
            again = [list(item) if isinstance(item, list) else item for item in kept]
            gradients = self.program.run("pullback", stages.pullback, [*again, *seeds])
            return self._gradient(dict(zip(stages.wrt, gradients, strict=True)))

        return value, pullback

    def jvp(self, tangents: Iterable[Any]) -> tuple[Any, Any]:
        """Value and tangent; `tangents` are those of the arguments of `wrt`, in order."""
        program = self.program
        given: dict[Var, Any] = {}
        for name, tangent in zip(program.wrt_names, tangents, strict=True):
            template = program.wrt_template(name)
            for leaf, dot in argument_tangents(name, template, self.arguments[name], tangent):
                var = program.lowered.param_of(leaf)
                if var is not None:
                    given.setdefault(var, dot)
        wrt = program.wrt_vars()
        if _never_returns(program.lowered.function.body[:-1]):
            self.value()  # raises what plain Python raises
        values = self._run("jvp", program.pushed, [*self._leaves(), *(given[var] for var in wrt)])
        last = program.lowered.function.body[-1]
        assert isinstance(last, Return)
        active = [k for k, is_active in enumerate(program.active_results(scalar=False)) if is_active]
        count = len(values) - len(active)
        taken: list[Any] = []
        for position, dot in zip(active, values[count:], strict=True):
            taken.append(as_result(dot, last.values[position].type, taken))
        value = self._result(values[:count])
        return value, result_tangent(program.lowered.output, dict(zip(active, taken, strict=True)))

    def inspect(self) -> Inspection:
        program = self.program
        try:
            stages = program.stages(scalar=True)
        except BadArgument:
            stages = program.stages(scalar=False)
        return Inspection(program, stages, self._leaves())

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def _leaves(self) -> list[Any]:
        """The flat arguments of the generated functions."""
        return self.program.lowered.leaves(self.arguments)

    def _run(self, name: str, function: Function, leaves: list[Any]) -> tuple[Any, ...]:
        program = self.program
        params = program.lowered.function.params
        written = [
            (k, leaf) for k, leaf in enumerate(leaves[: len(params)]) if params[k].name in program.lowered.mutated
        ]
        self._check_written(written, leaves[: len(params)])
        entry = [(leaf, leaf.copy()) for _, leaf in written if isinstance(leaf, np.ndarray)]
        try:
            return program.run(name, function, leaves)
        except TapegenError:
            raise
        except Exception as error:
            for leaf, before in entry:
                leaf[...] = before
            self._reraise(error)

    def _reraise(self, error: Exception) -> NoReturn:
        """Run plain Python in order to raise what it raises, with its own traceback."""
        try:
            self.owner.python(*self.args, **self.kwargs)
        except Exception as own:
            line = _user_line(own, self.owner.function)
            if line is not None:
                own.add_note(f"in {self.owner.function.__qualname__}, {line}")
            raise own from None
        raise error

    def _check_written(self, written: list[tuple[int, Any]], leaves: list[Any]) -> None:
        for k, leaf in written:
            if not isinstance(leaf, np.ndarray):
                continue
            for j, other in enumerate(leaves):
                if j != k and isinstance(other, np.ndarray) and np.may_share_memory(leaf, other):
                    names = [self.program.lowered.function.params[n].name for n in (k, j)]
                    raise AliasError(
                        f"'{names[0]}' is written and shares memory with '{names[1]}'.",
                        f"Pass a copy of one of them ({names[1]}.copy()).",
                    )

    # ---- results -----------------------------------------------------------------------------------------------------

    def _result(self, values: Iterable[Any]) -> Any:
        last = self.program.lowered.function.body[-1]
        assert isinstance(last, Return)
        typed = [_as_type(value, expr.type) for value, expr in zip(values, last.values, strict=True)]
        return self.program.lowered.restore(typed, self.arguments)

    def _gradient(self, found: dict[Var, Any]) -> Any:
        results = [self._structured(template, found) for template in self.program.gradient_templates]
        wrt = self.program.options.wrt
        return results[0] if isinstance(wrt, int | str) else tuple(results)

    def _structured(self, template: Abstract, found: dict[Var, Any]) -> Any:
        def make(leaf: Leaf) -> Any:
            var = self.program.lowered.param_of(leaf)
            if var is None or var not in found:
                return None
            return _as_type(found[var], leaf.type)

        return map_leaves(template, make)

    def _seeds(self, value: Any, value_bar: Any, stages: compiler.Stages) -> list[Any]:
        """Cotangents of the active results, checked against the value."""
        seeds = []
        for position, (leaf, bar) in enumerate(_matched(self.program.lowered.output, value, value_bar)):
            if not _floats(leaf):
                continue
            if np.shape(bar) != np.shape(leaf):
                raise BadArgument(
                    f"the cotangent of result {position} has shape {np.shape(bar)}, the result {np.shape(leaf)}.",
                    "Give cotangents in the structure of the value.",
                )
            seeds.append(np.array(bar, leaf.dtype) if isinstance(leaf, np.ndarray) else _number(bar, leaf))
        if len(seeds) != len(stages.seeds):
            raise BadArgument("the cotangents do not match the value.", "Give one for each result.")
        return seeds


# ---- helpers ---------------------------------------------------------------------------------------------------------


def _seed_one(seed: Var) -> Any:
    if isinstance(seed.type, Array):
        return np.ones((), seed.type.dtype)
    assert isinstance(seed.type, Scalar)
    return 1.0 if seed.type.dtype == "float64" else np.dtype(seed.type.dtype).type(1.0)


def _number(bar: Any, leaf: Any) -> Any:
    """A cotangent of a number: of the precision of the number."""
    return type(leaf)(bar) if isinstance(leaf, np.float32) else float(bar)


def _floats(leaf: Any) -> bool:
    return np.asarray(leaf).dtype.kind == "f"


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


_PYTHON_NUMBERS: dict[str, type] = {"float64": float, "int64": int, "bool": bool}


def _as_type(value: Any, type_: Any) -> Any:
    """A number or array as plain Python would have it (compiled code hands over bare numbers)."""
    if isinstance(type_, Scalar):
        if type_.python:
            return _PYTHON_NUMBERS[type_.dtype](value)
        return np.dtype(type_.dtype).type(value)
    if isinstance(type_, Array) and not isinstance(value, np.ndarray):
        return np.asarray(value, type_.dtype)
    return value


def _without_statics(template: Abstract) -> Abstract:
    """A template whose static leaves become None: options have no gradient."""
    if isinstance(template, StaticValue):
        return StaticValue(None)
    if isinstance(template, Struct):
        children = tuple(_without_statics(child) for child in template.children)
        return Struct(template.kind, template.keys, children, template.cls)
    return template


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
