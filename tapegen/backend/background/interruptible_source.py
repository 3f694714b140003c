"""Python source that stops where machine code has become available, so that a long call goes on with that.

The check stands at the head of each iteration of the two outer levels of loops: what is inside takes longer.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapegen.backend.background.compile_queue import Job

_DEPTH = 2

_thread = threading.local()


class HandOver(Exception):
    """The machine code that a call waits for is available: the call starts again with it."""


class Deferred(Exception):
    """Machine code is being compiled in the background.

    Attributes
    ----------
    job : Job
        The compilation.
    """

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


@contextmanager
def until(job: Job) -> Iterator[None]:
    """Stop the interruptible source that this thread runs when a job has ended with machine code."""
    outer, _thread.job = getattr(_thread, "job", None), job
    try:
        yield
    finally:
        _thread.job = outer


def _check() -> None:
    job: Job | None = getattr(_thread, "job", None)
    if job is not None and job.has_ended and job.code is not None:
        raise HandOver


class Interruptible(ast.NodeTransformer):
    """Source with the checks; it computes the same."""

    def __init__(self) -> None:
        self._depth = 0

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        if self._depth <= _DEPTH:
            call = ast.Expr(ast.Call(ast.Name(_NAME, ast.Load()), [], []))
            node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node.body[0])))
        self._depth -= 1
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        """`for i in range(n): ...`"""
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """`while x > y: ...`"""
        return self._loop(node)


_NAME = " check"  # no source has such a name

NAMES: dict[str, Any] = {_NAME: _check}
"""The functions that such source calls."""

__all__ = ["NAMES", "Deferred", "HandOver", "Interruptible", "until"]
