"""Inline cache: a call with the signature of an earlier one uses what that call has resolved.

Between two calls other memory has passed through the processor's caches, and each line of Python and each object that
a call accesses must be loaded again.  So the dispatch key of a call is computed in one pass, and is sufficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from tapegen.backend.numba import memory_limit
from tapegen.ir.passes import disabled_passes
from tapegen.pipeline.artifacts.program import Form, Program
from tapegen.rules.registry import generation
from tapegen.runtime.bound_call import BoundCall
from tapegen.runtime.fast_call import FastCall
from tapegen.runtime.signature_key import ArgumentBinder
from tapegen.runtime.specialization import SpecializationCache

Entry = tuple[Program, ArgumentBinder, FastCall, bool]
"""A program, the arguments it reads, its call, and whether some arguments have no tangent."""

_MOST = 64
"""Maximal number of entries of one function."""


class InlineCache:
    """The cache entries of one function with one set of options.

    Parameters
    ----------
    specialiser : SpecializationCache
        The function.
    home : InlineCache, optional
        For a bound method: the cache of the method.
    """

    __slots__ = ("_found", "_home", "_last", "_of_methods", "_specializer")

    def __init__(self, specialiser: SpecializationCache, home: InlineCache | None = None) -> None:
        self._specializer, self._home = specialiser, home
        self._of_methods: dict[Any, Entry] = {}
        self._found = {} if home is None or specialiser.binds_constants else home._of_methods
        self._last: Program | None = None

    @property
    def last(self) -> Program | None:
        """The program that was used last."""
        return (self._home or self)._last

    def lookup(
        self, form: Form, primals: Sequence[Any], tangents: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...] | None:
        """The result of a call with a cached signature; None on a miss, or if guarded values have changed.

        It is the result of `BoundCall.evaluate`; each of `primals` has one of `tangents`, if there are any.
        """
        if not self._found or disabled_passes():
            return None
        given = self._specializer.by_position(primals, kwargs)
        if given is None:
            return None
        key = self._specializer.key((*given, *tangents) if tangents else given, form, len(given), generation())
        entry = self._found.get(key)
        if entry is None:
            return None
        program, places, repeated, some_are_constant = entry
        values = places.values(given)
        if values is None:
            return None
        dots = tuple(tangents)
        now = program.last_used = monotonic()
        if now > memory_limit.stale:
            memory_limit.measure(now)
        (self._home or self)._last = program
        if some_are_constant:
            dots = tuple([tangent for tangent in dots if tangent is not None])
        found: tuple[Any, ...] | None = repeated.run(values, dots)
        if found is None:
            found = BoundCall(program, self._specializer, tuple(primals), kwargs, values).evaluate_slow(form, dots)
            if program.repeated.get(form) is not repeated:  # its code did not hold for this call
                self._found.pop(key, None)
        return found

    def use(self, program: Program) -> None:
        """Note the program of a call that missed the cache."""
        (self._home or self)._last = program

    def remember(self, form: Form, call: BoundCall, tangents: Sequence[Any] = ()) -> None:
        """Store an entry for calls with the signature of this one, which has been evaluated."""
        program = call.program
        repeated, places = program.repeated.get(form), program.places
        given = self._specializer.by_position(call.args, call.kwargs)
        if program.disabled or repeated is None or places is None or given is None or call.given is not None:
            return
        if not self._specializer.is_known(program, given):
            return
        seen = self._specializer.key((*given, *tangents), form, len(given), generation())
        dots = [tangent for tangent in tangents if tangent is not None]
        if seen is None or not repeated.takes(dots):
            return
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[seen] = program, places, repeated, len(dots) < len(tangents)
