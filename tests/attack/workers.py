"""Processes that differentiate functions of a small file with a cache, and tell what they loaded, saved and found."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tapegen as tg
from tapegen.backend.cache import store
from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import CacheWarning
from tapegen.pipeline.artifacts import executables
from tests.backend.test_cache_interleavings import CALLS
from tests.libraries import leaves

SOURCE = """
import numpy as np

SCALE = %d.0


def helper(x):
    return SCALE * x * x


def looped(x):
    total = 0.0
    for i in range(x.size):
        total += helper(x[i])
    return total


def summed(x):
    return np.sum(np.sin(x) * x * SCALE)


def polynomial(x):
    return SCALE * x**3 - x


def halved(x):
    y = 8.0 * SCALE * x
    while y > 1.0:
        y = y * 0.5
    return y


def modulus(x):
    return np.sum((x * np.conj(x)).real) * SCALE
"""
WRITTEN = 1_700_000_000  # when each version of the file says that it was written

_NUMBERS = np.array([0.5, -1.25, 2.0, 0.75])
ARGUMENTS: dict[str, Any] = {
    "float64": _NUMBERS,
    "float32": _NUMBERS.astype("float32"),
    "strided": np.repeat(_NUMBERS, 2)[::2],
    "complex": _NUMBERS * (1.0 - 0.5j),
    "number": 1.5,
    "narrow": np.float32(1.5),
}
TAKES = {
    "looped": ("float64", "float32", "strided"),
    "summed": ("float64", "float32", "strided"),
    "polynomial": ("number", "narrow"),
    "halved": ("number", "narrow"),
    "modulus": ("complex",),
}
OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "fast": {"fastmath": True}, "unchecked": {"boundscheck": False}}

Item = tuple[str, str, str]
"""A function, the name of its argument and that of its options."""


@dataclass(frozen=True)
class Job:
    """What a process does.

    Attributes
    ----------
    compiled : bool
        Whether derived text is compiled; else Python runs it, and no machine code is kept.
    bytecode : bool
        Whether Python may take code from a file that it made of an earlier version.
    dies_at : int
        The number of the call of the system by the cache before which it kills itself; 0 for none.
    largest : int
        The most bytes that a file may have, as on a disk that is full; 0 for no limit.
    strict : bool
        Whether warnings are errors.
    """

    file: Path
    items: tuple[Item, ...]
    compiled: bool = False
    bytecode: bool = False
    dies_at: int = 0
    largest: int = 0
    strict: bool = False
    environment: dict[str, str] = field(default_factory=dict)


class Worker:
    """A process that has started its job, up to the moment when it may begin."""

    def __init__(self, job: Job, plant: Callable[[], object]) -> None:
        self.told, tell = os.pipe()
        wait, self.go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.told)
            os.close(self.go)
            try:
                os.read(wait, 1)
                plant()
                _run(job, tell)
            except BaseException:
                _tell(tell, "broken", traceback.format_exc())
            finally:
                os._exit(0)
        os.close(tell)
        os.close(wait)
        self.status: int | None = None

    def start(self) -> None:
        os.close(self.go)

    def kill(self) -> bool:
        """Kill it; whether it was still there."""
        if self.ended():
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True

    def ended(self) -> bool:
        """Whether it has ended by now."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def end(self, seconds: float) -> dict[str, list[Any]]:
        """What it has told; `status` says how it ended, None if it did not."""
        until = time.monotonic() + seconds
        while not self.ended() and time.monotonic() < until:
            time.sleep(0.002)
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        told: dict[str, list[Any]] = {"saved": [], "loaded": [], "found": [], "said": [], "broken": []}
        with open(self.told, "rb") as file:
            for line in file:
                with contextlib.suppress(ValueError):  # it was killed as it wrote
                    kind, content = json.loads(line)
                    told[kind].append(content)
        return told | {"status": [self.status]}


def warm_up(file: Path, *, compiled: bool) -> None:
    """Do once in this process what each process would do first."""
    module = _module(file)
    build = executables.build_numba
    try:
        for wanted in [False, True][: 1 + compiled]:
            executables.build_numba = build if wanted else _uncompiled  # type: ignore[assignment]
            for name, arguments in TAKES.items():
                _outcome(getattr(module, name), arguments[0], "plain")
    finally:
        executables.build_numba = build  # type: ignore[assignment]


def _uncompiled(source: PythonSource, **_: Any) -> Callable[..., Any]:
    """The text that numba would get, run by Python."""
    return build_python(source)


def _tell(handle: int, kind: str, content: Any) -> None:
    os.write(handle, json.dumps([kind, content]).encode() + b"\n")


def _run(job: Job, tell: int) -> None:
    os.environ.update(job.environment)
    sys.dont_write_bytecode = not job.bytecode
    _watch(tell)
    if not job.compiled:
        executables.build_numba = _uncompiled  # type: ignore[assignment]
    if job.dies_at:
        _dying(job.dies_at)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("error" if job.strict else "always")
        module = _module(job.file)
        if job.largest:  # from here on: Python itself would keep half of its code
            resource.setrlimit(resource.RLIMIT_FSIZE, (job.largest, job.largest))
        for name, argument, options in job.items:
            _tell(tell, "found", [module.SCALE, _outcome(getattr(module, name), argument, options)])
    for each in said:
        _tell(tell, "said", [issubclass(each.category, CacheWarning), str(each.message)])


def _outcome(function: Any, argument: str, options: str) -> list[str]:
    """The numbers and their types, or the exception."""
    try:
        found = tg.differentiable(function, **OPTIONS[options]).value_and_grad(ARGUMENTS[argument])
    except Exception as error:
        return [type(error).__name__, str(error)]
    arrays = [(type(leaf).__name__, np.asarray(leaf)) for leaf in leaves(found)]
    return [f"{kind} {array.dtype} {array.tobytes().hex()}" for kind, array in arrays]


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _watch(tell: int) -> None:
    """Tell each entry that is saved, before it is, and each that is loaded."""
    save, load = store.Store.save, store.Store.load

    def saving(self: store.Store, key: str, payload: bytes) -> None:
        _tell(tell, "saved", [key, hashlib.sha256(payload).hexdigest()])
        save(self, key, payload)

    def loading(self: store.Store, key: str) -> bytes | None:
        payload = load(self, key)
        if payload is not None:
            _tell(tell, "loaded", [key, hashlib.sha256(payload).hexdigest()])
        return payload

    store.Store.save, store.Store.load = saving, loading  # type: ignore[method-assign]


class _Calls:
    """The module `os` as the cache sees it: a process dies before one of its calls."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in CALLS:
            return found

        def run(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found(*args, **kwargs)

        return run


def _dying(at: int) -> None:
    store.os = _Calls(at)  # type: ignore[assignment]


__all__ = ["OPTIONS", "SOURCE", "TAKES", "WRITTEN", "Item", "Job", "Worker", "warm_up"]
