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
from tapegen.runtime.signature_key import ArgumentBinder, signature_key
from tapegen.runtime.specialization import SpecializationCache

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

    __slots__ = ("_found", "_home", "_last", "_specializer")

    def __init__(self, specialiser: SpecializationCache, home: InlineCache | None = None) -> None:
        self._specializer, self._home = specialiser, home
        self._found: dict[Any, tuple[Program, ArgumentBinder, FastCall, tuple[Any, ...], bool]] = {}
        self._last: Program | None = None

    @property
    def last(self) -> Program | None:
        """The program that was used last."""
        return (self._home or self)._last

    def again(
        self, form: Form, primals: Sequence[Any], tangents: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...] | None:
        """The result of a call with a cached signature; None on a miss, or if guarded values have changed.

        It is the result of `BoundCall.evaluate`; each of `primals` has one of `tangents`, if there are any.
        """
        if kwargs or not self._found or disabled_passes():
            return None
        more = self._specializer.defaults(len(self._specializer.bound_args) + len(primals))
        given = (*primals, *more, *tangents)
        count = len(primals) + len(more)
        lane = self._found.get(signature_key(given, form, count, generation()))
        if lane is None:
            return None
        program, places, repeated, bound, some_are_constant = lane
        args, dots = given[:count], given[count:]
        values = places.values((*bound, *args) if bound else args)
        if values is None:
            return None
        now = program.last_used = monotonic()
        if now > memory_limit.stale:
            memory_limit.measure(now)
        (self._home or self)._last = program
        if some_are_constant:
            dots = tuple([tangent for tangent in dots if tangent is not None])
        found: tuple[Any, ...] | None = repeated.run(values, dots)
        if found is None:
            return BoundCall(program, self._specializer, tuple(primals), {}, values).evaluate_slow(form, dots)
        return found

    def use(self, program: Program) -> None:
        """Note the program of a call that missed the cache."""
        (self._home or self)._last = program

    def remember(self, form: Form, call: BoundCall, tangents: Sequence[Any] = ()) -> None:
        """Store an entry for calls with the signature of this one, which has been evaluated."""
        program, bound = call.program, self._specializer.bound_args
        repeated, places = program.repeated.get(form), program.places
        args = (*call.args, *self._specializer.defaults(len(bound) + len(call.args)))
        if (
            program.disabled
            or repeated is None
            or places is None
            or call.kwargs
            or places.count != len(bound) + len(args)
        ):
            return
        seen = signature_key((*args, *tangents), form, len(args), generation())
        dots = [tangent for tangent in tangents if tangent is not None]
        if seen is None or not repeated.takes(dots):
            return
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[seen] = program, places, repeated, bound, len(dots) < len(tangents)
