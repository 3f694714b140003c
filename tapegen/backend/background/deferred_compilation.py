"""Dispatchers whose machine code is made in the background."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from numba.core import sigutils

from tapegen.backend.background.availability import is_on
from tapegen.backend.background.compile_queue import Job, Request, queue
from tapegen.backend.background.interruptible_source import Deferred
from tapegen.backend.cache.machine_code import MachineCodeCache

_logger = logging.getLogger("tapegen")

_SHARED = ("builtins", "numpy", "scipy", "tapegen")
"""Packages whose exceptions the helper knows; it imports nothing of the user."""


def compile_in_background(dispatcher: Any, code: MachineCodeCache) -> None:
    """Let a dispatcher raise `Deferred` as long as the helper compiles what a call needs.

    Parameters
    ----------
    dispatcher : Dispatcher
        The entry of a source.
    code : MachineCodeCache
        Its machine code in the cache.
    """
    compile_ = dispatcher.compile
    jobs: dict[tuple[Any, ...], Job] = {}

    def begun(types: tuple[Any, ...]) -> Job | None:
        """The job that compiles for these types; None where the dispatcher itself compiles, or loads the code."""
        job = jobs.get(types)
        if job is not None and job.queue is queue():  # a forked child has another queue
            return job
        if not is_on() or not _is_shared(code) or code.load_overload(types, dispatcher.targetctx) is not None:
            return None
        key = code.key(types, dispatcher.targetctx)
        if key is None:
            return None
        request = Request(key, replace(code.source, line_map=()), code.from_start, types)
        job = queue().submit(request)
        if job is not None:
            jobs[types] = job
            _logger.info("compiling %s (%s) in the background", code.source.entry, ", ".join(map(str, types)))
        return job

    def compile_or_defer(signature: Any) -> Any:
        types = tuple(sigutils.normalize_signature(signature)[0])
        if types not in dispatcher.overloads:
            job = begun(types)
            if job is not None:
                if not job.has_ended and is_on():
                    raise Deferred(job)
                queue().finish(job)
                key = code.key(types, dispatcher.targetctx)
                if job.code is not None and key is not None and code.take(key, job.code, dispatcher.targetctx):
                    code.keep(key, job.code)
        jobs.pop(types, None)
        return compile_(signature)

    dispatcher.compile = compile_or_defer


def _is_shared(code: MachineCodeCache) -> bool:
    """Whether the helper knows all that a source uses."""
    values = code.source.namespace.values()
    return all(getattr(value, "__module__", "").partition(".")[0] in _SHARED for value in values)


__all__ = ["compile_in_background"]
