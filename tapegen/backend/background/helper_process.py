"""The main program of the helper process: it reads requests, compiles them, and answers with machine code.

An answer is empty where the code cannot be compiled or moved to another process; the process that asked compiles it
then by itself, and reports what there is to report.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import warnings
from typing import Any

from tapegen.backend.background.compile_queue import Request
from tapegen.backend.background.message_framing import read_frame, write_frame
from tapegen.backend.cache.machine_code import MachineCodeCache
from tapegen.backend.numba.build import build_numba
from tapegen.backend.printer.source import PythonSource

IDLE = 60.0
"""Seconds without a request after which the helper ends."""


def compiled(message: bytes) -> bytes:
    """The machine code for a pickled `Request`, as the cache stores it; empty if there is none."""
    request: Request = pickle.loads(message)
    dispatcher: Any = build_numba(request.source, from_start=request.from_start)
    code = dispatcher._cache = _SentCode(request.source, request.from_start)
    dispatcher.compile(request.types)
    return code.made.get(request.key, b"")


class _SentCode(MachineCodeCache):
    """Machine code that is compiled for the process that asked, which stores it."""

    def __init__(self, source: PythonSource, from_start: bool) -> None:
        super().__init__(source, from_start)
        self.made: dict[str, bytes] = {}

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Nothing: the process that asked has looked for it."""

    def is_wanted(self) -> bool:
        """Always."""
        return True

    def keep(self, key: str, payload: bytes) -> None:
        """Keep it for the answer."""
        self.made[key] = payload


def main() -> None:
    """Work until the input ends or stays empty."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what compiling prints is not an answer
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    warnings.simplefilter("ignore")
    while select.select([requests], [], [], IDLE)[0]:
        try:
            message = read_frame(requests)
        except EOFError:
            return
        try:
            answer = compiled(message)
        except Exception:
            answer = b""
        try:
            write_frame(answers, answer)
        except BrokenPipeError:
            return


__all__ = ["IDLE", "compiled", "main"]
