"""The queue of what is compiled in the background, and the helper process that works through it.

The helper is started with the first job and works on one job at a time; the others wait here, so that a call which
cannot wait for its turn takes its job back.  It ends when it has had nothing to do for a while, when its input is
closed (which the end of this process does), and is killed when the interpreter exits.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tapegen.backend.background.message_framing import read_frame, write_frame

_ENDS = 1.0  # seconds in which a helper that is killed ends


@dataclass(frozen=True, slots=True)
class Request:
    """What the helper compiles.

    Attributes
    ----------
    key : str
        The key of the machine code in the cache; the helper must find the same.
    source : PythonSource
        The source.
    from_start : bool
        See `build_numba`.
    types : tuple
        The argument types of numba.
    """

    key: str
    source: Any
    from_start: bool
    types: tuple[Any, ...]


@dataclass(eq=False, slots=True, weakref_slot=True)
class Job:
    """One compilation in the background.

    Attributes
    ----------
    queue : Queue
        Where it waits for its turn.
    request : bytes
        The pickled `Request`.
    code : bytes or None
        The machine code, as the cache stores it, once the job has ended; None if the helper could not make it.
    """

    queue: Queue
    request: bytes
    code: bytes | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def has_ended(self) -> bool:
        """Whether the machine code is here, or will never be."""
        return self._ended.is_set()

    def wait(self) -> None:
        """Wait until the job has ended."""
        self._ended.wait()

    def end(self, code: bytes | None) -> None:
        """Set the result."""
        self.code = code
        self._ended.set()


class Queue:
    """The jobs of this process, its helper, and the thread that hands the jobs to the helper one by one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._known: weakref.WeakValueDictionary[str, Job] = weakref.WeakValueDictionary()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, request: Request) -> Job | None:
        """Put a job into the queue, or find the one that compiles the same; None if it cannot be sent."""
        try:
            job = Job(self, pickle.dumps(request, protocol=5))
        except Exception:  # something that only this process knows
            return None
        with self._changed:
            if self._closed:
                return None
            known = self._known.get(request.key)
            if known is not None:
                return known
            self._known[request.key] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tapegen-background", daemon=True)
                self._thread.start()
            self._waiting.append(job)
            self._changed.notify()
        return job

    def finish(self, job: Job) -> None:
        """Wait for a job that the helper works on; take back one that has not begun, which the caller compiles."""
        with self._changed:
            begun = job not in self._waiting
            if not begun:
                self._waiting.remove(job)
        if begun:
            job.wait()
        else:
            job.end(None)

    def close(self) -> None:
        """End the helper; jobs that have not ended fail."""
        with self._changed:
            self._closed = True
            if self._process is not None:
                self._process.kill()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_ENDS)

    # ---- in the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        job = self._next()
        while job is not None:
            code = None
            try:
                code = self._answer(job.request) or None
            finally:  # whatever happens, nobody waits for ever
                job.end(code)
            job = self._next()
        for left in self._waiting:
            left.end(None)
        self._discard()

    def _next(self) -> Job | None:
        """The next job; None if the queue is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            return None if self._closed else self._waiting.popleft()

    def _answer(self, request: bytes) -> bytes:
        """What the helper makes of a request; nothing if it cannot be started, or has ended."""
        try:
            process = self._helper()
            assert process.stdin is not None and process.stdout is not None
            write_frame(process.stdin, request)
            return read_frame(process.stdout)
        except (OSError, EOFError, ValueError):
            return b""

    def _helper(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._discard()
            process = _started()
            with self._changed:
                self._process = process
                if self._closed:
                    process.kill()
            return process
        return self._process

    def _discard(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not sent
                    if pipe is not None:
                        pipe.close()


def _started() -> subprocess.Popen[bytes]:
    """A new helper, with the search path of this process."""
    program = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from tapegen.backend.background.helper_process import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, json.dumps([str(each) for each in sys.path])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in the terminal is for this process
    )


_queue = Queue()


def queue() -> Queue:
    """The queue of this process."""
    return _queue


def _forget_after_fork() -> None:
    """A forked child has no helper: that of its parent goes on with the parent's jobs."""
    global _queue
    _queue = Queue()


atexit.register(lambda: queue().close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)

__all__ = ["Job", "Queue", "Request", "queue"]
