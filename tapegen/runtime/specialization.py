"""Specialization cache: one program per combination of argument types, found again or lowered."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from types import MethodType
from typing import Any

from tapegen.backend.numba.build import building
from tapegen.errors import BadArgument, NotDifferentiable, Span
from tapegen.frontend.calls.custom_rules import own_rule
from tapegen.frontend.lower import lower_function
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.mutation.caller_objects import OtherForm
from tapegen.frontend.source.callables import calling, own_signature, unwrap
from tapegen.frontend.source.parse import span_of_definition, span_of_parameter
from tapegen.frontend.values.pytree import (
    Abstract,
    Leaf,
    StaticValue,
    Struct,
    abstract_of,
)
from tapegen.ir.passes import disabled_passes
from tapegen.ir.protocols import is_opaque
from tapegen.pipeline.artifacts.program import Program, short_axes_of
from tapegen.pipeline.fault_boundary import Boundary, Subject
from tapegen.pipeline.options import Options
from tapegen.rules.registry import generation
from tapegen.runtime.bound_call import BoundCall
from tapegen.runtime.closure_sharing import despecialize_changed_floats, share_compiled_code
from tapegen.runtime.foreign_arrays import holds_foreign, with_numpy
from tapegen.runtime.program_cache import ProgramCache
from tapegen.runtime.signature_key import ArgumentBinder, describes, signature_key
from tapegen.runtime.specialization_reason import reason_for_program
from tapegen.settings import NAMES_OF_WRT

_logger = logging.getLogger("tapegen")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class SpecializationCache:
    """The specializations of one function, found by the types of the arguments.

    Parameters
    ----------
    func : callable
        The function.
    home : SpecializationCache, optional
        For a bound method: the cache that holds the programs of the method for all objects.
    first : int
        The number of leading parameters that are bound to objects.
    """

    def __init__(self, func: Callable[..., Any], home: SpecializationCache | None = None, first: int = 0) -> None:
        self.python = func
        self._first = first
        self._home: SpecializationCache = self if home is None else home
        self._methods: SpecializationCache | None = None
        self.function, self.bound_args, self.bound_kwargs = unwrap(func)
        self.signature = own_signature(self.function)
        self._made_of = self._changeable()
        self._programs: ProgramCache = ProgramCache() if home is None else home._programs
        self._bind_constants()
        self._plain = self._plain_names()
        self.lists: dict[tuple[Any, ...], bool] = {}  # lists of the caller that grow; whether items are read
        self.carries: dict[tuple[Any, ...], str] = {}  # locations into which calls have stored values with a derivative
        self.uncompiled: set[tuple[str, Span | None]] = set()  # what was reported to have no compiled variant

    def _bind_constants(self) -> None:
        self.binds_constants = all(map(is_opaque, self.bound_args))  # what is opaque is a constant
        is_own = self._home is self or self.binds_constants
        self._by_key: ProgramCache = ProgramCache() if is_own else self._home._by_key  # by dispatch key

    def bound(self, method: Callable[..., Any]) -> SpecializationCache:
        """The same function bound to an object: programs for one object serve all of the same types."""
        if self._methods is None:
            self._methods = SpecializationCache(self.python, first=1)
        home = self._methods
        if not isinstance(method, MethodType) or method.__func__ is not home.function:
            return SpecializationCache(method, home)
        made = object.__new__(SpecializationCache)
        made.__dict__.update(home.__dict__)
        made.python, made.bound_args = method, (method.__self__,)
        made._first, made._methods = 0, None
        made._bind_constants()
        return made

    def _changeable(self) -> tuple[Any, ...]:
        """The mutable values from which the signature and the bound arguments were read."""
        function = self.function
        return function.__code__, function.__defaults__, function.__kwdefaults__ and dict(function.__kwdefaults__)

    def _refresh(self) -> None:
        """Read the signature and the bound arguments again if they may have changed."""
        if self.bound_kwargs:
            self.function, self.bound_args, self.bound_kwargs = unwrap(self.python)
        now = self._changeable()
        if not all(map(_same_parts, now, self._made_of)):
            self.signature, self._made_of = own_signature(self.function), now
            self._plain = self._plain_names()

    def _plain_names(self) -> tuple[tuple[str, ...], str] | None:
        """The parameters of a call that are passed one by one, and the one that collects the rest, if these suffice."""
        if self.bound_kwargs:
            return None
        names: list[str] = []
        rest = ""
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = name
            elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                names.append(name)
            elif parameter.kind is not parameter.VAR_KEYWORD:
                return None
        return tuple(names), rest

    def by_position(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The arguments of a call, bound ones and defaults included, by position; None where they have none."""
        if self._plain is None:
            return None
        given = (*self.bound_args, *args) if self.bound_args else tuple(args)
        names, rest = self._plain
        missing = names[len(given) :]
        if not missing:
            return given if not kwargs and (rest or len(given) == len(names)) else None
        defaults = self.function.__defaults__ or ()
        first = len(names) - len(defaults)
        found: list[Any] = []
        taken = 0
        for position, name in enumerate(missing, len(given)):
            if name in kwargs:
                taken += 1
                found.append(kwargs[name])
            elif position >= first:
                found.append(defaults[position - first])
            else:
                return None
        return (*given, *found) if taken == len(kwargs) else None

    def free_names(self) -> list[str]:
        """The parameters that a caller counts: neither `self` nor arguments that are bound already."""
        parameters = list(self.signature.parameters.values())
        count = len(self.bound_args) + self._first
        bound = [param for param in parameters if param.kind in _POSITIONAL][:count]
        if not bound and parameters and parameters[0].name == "self":
            bound = parameters[:1]
        return [param.name for param in parameters if param not in bound]

    def argument_paths(self, abstracts: dict[str, Abstract]) -> dict[str, str]:
        """The arguments that a caller counts and names, each with its path from the parameters: `{"u0": "u0"}`.

        A wrapper made with `functools.wraps` is called by the names of the function it documents: `{"u0": "args.0"}`.
        """
        free = self.free_names()
        kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        documented = inspect.signature(self.function).parameters
        if documented.keys() == kinds.keys() or inspect.Parameter.VAR_POSITIONAL not in kinds.values():
            return {name: name for name in free}
        bound = len(self.bound_args) + self._first
        names = [each.name for each in documented.values() if each.kind in _POSITIONAL][bound:]
        collected = max(0, bound - sum(kind in _POSITIONAL for kind in kinds.values()))  # of bound arguments
        found: dict[str, str] = {}
        for name in free:
            collection = abstracts[name]
            children = collection.keys if isinstance(collection, Struct) else ()
            if kinds[name] is inspect.Parameter.VAR_POSITIONAL:
                paths = [f"{name}.{k}" for k in children][collected:]
                found |= zip([*names[len(found) :], *paths[len(names) - len(found) :]], paths)
            elif kinds[name] is inspect.Parameter.VAR_KEYWORD:
                found |= {key: f"{name}.{key}" for key in children}
            else:
                found[name] = name
        return found

    def of_the_call(self, positions: Iterable[int | str]) -> tuple[int | str, ...]:
        """Positions of the arguments of a call, those that `*args` collects by name: `(0, "args.0", "args.1")`."""
        free = self.free_names()
        kinds = [self.signature.parameters[name].kind for name in free]
        rest = inspect.Parameter.VAR_POSITIONAL
        if rest not in kinds or inspect.signature(self.function).parameters.keys() != self.signature.parameters.keys():
            return tuple(positions)
        first = kinds.index(rest)
        taken = len(self.bound_args) + self._first  # `*args` collects those that no other parameter accepts
        taken = max(0, taken - sum(each.kind in _POSITIONAL for each in self.signature.parameters.values()))
        return tuple(
            f"{free[first]}.{k - first + taken}" if isinstance(k, int) and k >= first else k for k in positions
        )

    def specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> BoundCall:
        """The program for these arguments, together with them."""
        given = self.by_position(args, kwargs)
        seen = None if given is None else self.key(given, generation())
        disabled = disabled_passes()
        if given is not None and seen is not None:
            for program in self._by_key.of(seen):
                if (program.options is options or program.options == options) and program.disabled == disabled:
                    values = program.places.values(given)
                    if values is not None:
                        program.last_used = monotonic()
                        return BoundCall(program, self, args, kwargs, values)
        with building:
            passed = args, kwargs
            args, kwargs = self.with_numpy(args, kwargs)
            found = self._looked_up(args, kwargs, options)
            if args is not passed[0] or kwargs is not passed[1]:
                found.note_given(*passed)
            elif given is not None and seen is not None and self._is_placed(found.program, given):
                self._by_key.add(seen, found.program)
        return found

    def key(self, given: tuple[Any, ...], *context: Any) -> tuple[Any, ...] | None:
        """The dispatch key of arguments by position; bound constants are the same in all calls."""
        return signature_key(given[len(self.bound_args) :] if self.binds_constants else given, *context)

    def with_numpy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with NumPy arrays for those of other libraries; the same objects without any."""
        if not holds_foreign(args) and not holds_foreign(kwargs):
            return args, kwargs
        names = [*self.free_names()[: len(args)], *(f"args[{k}]" for k in range(len(args)))]
        try:
            converted = tuple([with_numpy(value, name) for value, name in zip(args, names)])
            named = {name: with_numpy(value, name) for name, value in kwargs.items()}
        except BadArgument as refusal:
            parameters = self.signature.parameters
            places = (span_of_parameter(self.function, name) for name in parameters if f"'{name}" in refusal.reason)
            refusal.span = next(places, None)
            raise
        return converted, named

    def is_known(self, program: Program, given: tuple[Any, ...]) -> bool:
        """Whether the dispatch key of arguments leads to a program."""
        seen = self.key(given, generation())
        return seen is not None and program in self._by_key.of(seen)

    def _is_placed(self, program: Program, given: tuple[Any, ...]) -> bool:
        """Whether the dispatch key of arguments determines the program, and where its parameters are found in them."""
        assert self._plain is not None
        names, rest = self._plain
        if self._home.lists:  # the form of a list depends on what other calls have found
            return False
        abstracts = [program.abstracts[name] for name in names]
        if rest:
            collected = program.abstracts[rest]
            abstracts += collected.children if isinstance(collected, Struct) else ()
        first = len(self.bound_args) if self.binds_constants else 0
        if len(abstracts) != len(given) or not all(map(describes, given[first:], abstracts[first:])):
            return False
        if program.places is None:
            positions: dict[Any, int] = {name: k for k, name in enumerate(names)}
            positions |= {(rest, k): len(names) + k for k in range(len(given) - len(names))}
            with suppress(KeyError, ValueError):
                program.places = ArgumentBinder(program.lowered, program.abstracts, positions, len(given))
        return program.places is not None

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> BoundCall:
        arguments = self.bind(args, kwargs)
        while True:
            try:
                return self._with_abstracts(arguments, args, kwargs, options)
            except OtherForm as change:
                self._home.lists[change.place] = change.is_read

    def _with_abstracts(
        self, arguments: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
    ) -> BoundCall:
        tails = [place for place, is_read in self._home.lists.items() if not is_read]
        try:
            with Boundary("lowering", lambda: self.subject(arguments, options)):
                abstracts = {name: abstract_of(value, name, tails) for name, value in arguments.items()}
        except BadArgument as refusal:
            named = (span_of_parameter(self.function, name) for name in arguments if f"'{name}" in refusal.reason)
            refusal.span = refusal.span or next(named, None)
            raise
        key = (tuple(_key(abstract) for abstract in abstracts.values()), options, generation(), disabled_passes())
        for program in self._programs.of(key):
            if program.holds(arguments):
                program.last_used = monotonic()
                return BoundCall(program, self, args, kwargs, program.lowered.leaves(arguments))
        begun = monotonic()
        lowered = despecialize_changed_floats(
            self.function.__code__, key, functools.partial(self.lower, abstracts, options)
        )
        if _logger.isEnabledFor(logging.INFO):
            why = reason_for_program(self._programs, abstracts, arguments, options)
            _logger.info("analyzed %s in %.2f s: %s", self.function.__qualname__, monotonic() - begun, why)
        leaves = lowered.leaves(arguments)
        program = Program(lowered, self._home, abstracts, options, short_axes=short_axes_of(leaves))
        share_compiled_code(program, key)
        self._programs.add(key, program)
        return BoundCall(program, self, args, kwargs, leaves)

    def varied(self, program: Program, wrt: tuple[int, ...]) -> Program:
        """A program for the same primal, differentiated with respect to other arguments."""
        options = replace(program.options, wrt=wrt)
        key = (tuple(map(_key, program.abstracts.values())), options, generation(), program.disabled)
        with building:
            for found in self._programs.of(key):
                if found.lowered is program.lowered:
                    return found
            made = Program(
                program.lowered,
                program.owner,
                program.abstracts,
                options,
                disabled=program.disabled,
                short_axes=program.short_axes,
            )
            share_compiled_code(made, key)
            self._programs.add(key, made)
        return made

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by the names of the parameters."""
        self._refresh()
        try:
            bound = self.signature.bind(*self.bound_args, *args, **{**self.bound_kwargs, **kwargs})
        except TypeError as error:
            name = self.function.__qualname__
            chosen = next((key for key in kwargs if key in NAMES_OF_WRT and key not in self.signature.parameters), None)
            if chosen is not None:
                advice = f"wrt chooses arguments before the call: tg.grad({self.function.__name__}, wrt=1)(...)."
                raise BadArgument(f"{name} has no parameter {chosen!r}.", advice) from None
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def subject(self, arguments: Mapping[str, Any], options: Options) -> Subject:
        """The subject of the derivative, for the report of a fault."""
        return Subject(self.function, self.signature, arguments, options.changed())

    def lower(
        self, abstracts: dict[str, Abstract], options: Options, changing: frozenset[Any] = frozenset()
    ) -> Lowered:
        """Lower the function for abstract values of all its parameters, with these captured floats as arguments."""
        with Boundary("lowering", lambda: self.subject(abstracts, options)):
            return self._lowered(abstracts, changing)

    def _lowered(self, abstracts: dict[str, Abstract], changing: frozenset[Any]) -> Lowered:
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
        return lower_function(function, tuple(positional), keyword, changing=changing, lists=self._home.lists)

    def lower_alone(self, abstracts: dict[str, Abstract], options: Options) -> Lowered:
        """The function as a program for callers without Python, which cannot store into objects of the caller."""
        try:
            lowered = self.lower(abstracts, options)
            written = ", ".join(name for mutation in lowered.mutations for name in mutation.names)
        except OtherForm as change:
            written = f"the list {'.'.join(map(str, change.place[1:]))}"
        if written:
            raise NotDifferentiable(
                f"{self.function.__qualname__} stores into {written}, which code without Python around it cannot.",
                "Call the function itself and its derivatives, or leave the lines out that store.",
                span_of_definition(self.function),
            )
        return lowered


def _key(abstract: Abstract) -> Any:
    """The part of an argument that a specialization depends on."""
    if isinstance(abstract, Leaf):
        return abstract.type
    if isinstance(abstract, Struct):
        keys = abstract.keys if abstract.kind != "dict" else tuple(map(StaticValue, abstract.keys))  # 1 is not True
        return (abstract.kind, keys, abstract.cls, tuple(_key(child) for child in abstract.children))
    return abstract


def _same_parts(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(a[name] is b[name] for name in a)
    return a is b
