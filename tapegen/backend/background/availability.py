"""Whether programs are compiled in the background: by the environment, the processors and the kind of process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tapegen.settings import config

SWITCH = "TAPEGEN_BACKGROUND"
"""Environment variable: `0` turns background compilation off."""

_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"

_thread = threading.local()


def is_on() -> bool:
    """Whether a call may run Python while a helper process compiles.

    A worker of `multiprocessing` compiles by itself: there are usually as many of them as processors.
    """
    if config.background != "auto" or os.environ.get(SWITCH, "").strip().lower() in ("0", "off", "no", "false"):
        return False
    if getattr(_thread, "waits", 0) or not sys.executable or is_worker():
        return False
    return processors() >= 2


def is_worker() -> bool:
    """Whether this process is a worker of `multiprocessing`."""
    process = sys.modules.get("multiprocessing.process")  # where it is not loaded, this is no worker
    if process is None:
        return False
    return process.parent_process() is not None or process.current_process().name != "MainProcess"


@contextmanager
def waiting() -> Iterator[None]:
    """Let the calls of this thread wait for machine code."""
    _thread.waits = getattr(_thread, "waits", 0) + 1
    try:
        yield
    finally:
        _thread.waits -= 1


def processors() -> float:
    """The processors that this process may use, within the quota of its container."""
    found = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    try:
        with open(_CPU_QUOTA, encoding="ascii") as text:
            quota, period = text.read().split()
        return found if quota == "max" else min(found, int(quota) / int(period))
    except (OSError, ValueError):
        return found


__all__ = ["SWITCH", "is_on", "is_worker", "processors", "waiting"]
