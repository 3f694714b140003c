"""Programs that nobody can call any more leave nothing behind but machine code."""

from __future__ import annotations

import gc
import linecache
import resource
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import ffi, newpassmanagers
from numba.core import registry
from numba.core.dispatcher import Dispatcher

import tapegen as tg
from tapegen.api import differentiable_function
from tapegen.frontend.source import callables
from tapegen.pipeline import nested
from tapegen.runtime.program_cache import MOST_PROGRAMS
from tests.judged import both
from tests.sources import define

X = np.array([0.5, -1.5, 2.0])
TEXT = "import numpy as np\ndef f(x):\n    y = x * {k}.5\n    for i in range(3):\n        y = y * np.sin(y) + {k}.25\n"
TEXT += "    return np.sum(y * y)\n"


def alive(refs: list[weakref.ref[Any]]) -> int:
    gc.collect()  # the function, with which its programs are given up
    gc.collect()
    return sum(ref() is not None for ref in refs)


def resident() -> int:
    """Bytes of memory that the process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def texts() -> set[str]:
    return {name for name in linecache.cache if name.startswith("<tapegen f")}


@both
def test_functions_that_are_dropped(backend: str) -> None:
    gc.collect()
    before = texts()
    refs: list[weakref.ref[Any]] = []
    for k in range(2 if backend == "numba" else 20):
        func = define(TEXT.format(k=k + 900_000))
        derived = tg.differentiable(func, backend=backend, cache=False)
        derived.grad(X)
        program = derived._last_used()
        refs += [weakref.ref(func), weakref.ref(program), weakref.ref(program.parts.built["joint"])]
        assert isinstance(program.parts.built["joint"], Dispatcher) == (backend == "numba")
    del func, derived, program
    assert alive(refs) == 0
    assert texts() <= before


def test_intermediate_representations_are_dropped() -> None:
    tg.differentiable(define(TEXT.format(k=920_000)), cache=False).grad(X)  # what numba compiles once
    engine = registry.cpu_target.target_context.codegen()._engine._ee
    before = len(engine._modules)
    derived = tg.differentiable(define(TEXT.format(k=920_001)), cache=False)
    derived.grad(X)
    (compiled,) = derived._last_used().parts.built["joint"].overloads.values()
    module = weakref.ref(compiled.library._final_module)
    assert len(engine._modules) == before
    assert module() is not None
    del derived, compiled
    assert alive([module]) == 0


def test_pass_managers_free_their_memory() -> None:
    tg.differentiable(define(TEXT.format(k=930_000)), cache=False).grad(X)
    for manager in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        assert manager._dispose is not ffi.ObjectRef._dispose  # which does nothing


@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells")
def test_resident_memory() -> None:
    """Besides machine code, 0.2 MB at most for each program that nobody uses any more."""
    sizes = []
    for k in range(80):
        tg.differentiable(define(TEXT.format(k=k + 940_000)), cache=False).grad(X)
        gc.collect()
        if k % 40 == 39:
            sizes.append(resident())
    machine_code = 0.13  # the object files of these programs
    assert (sizes[1] - sizes[0]) / 40 / 2**20 < 0.2 + machine_code


def test_programs_that_are_given_up() -> None:
    """A constant that changes makes a new program each time; the last ones are kept."""
    gc.collect()
    before = texts()
    func = define("def f(x, n, name=''):\n    return x * len(name) * n\n")
    derived = tg.differentiable(func, backend="python")
    refs = []
    for k in range(MOST_PROGRAMS + 40):
        derived.grad(0.5, 2.0, "a" * k)
        refs.append(weakref.ref(derived._last_used()))
    assert alive(refs) <= MOST_PROGRAMS + 1
    assert len(texts() - before) <= MOST_PROGRAMS + 1


@pytest.mark.parametrize("form", ["jacobian", "hessian"])
def test_derivatives_of_derivatives(form: str) -> None:
    refs = []
    for k in range(4):
        func = define(TEXT.format(k=k + 910_000))
        owner = getattr(tg, form)(func, backend="python")
        owner(X)
        refs.append(weakref.ref(func))
    del func, owner
    tg.higher_order._jacobian_of.cache_clear()
    differentiable_function._of_function.cache_clear()
    callables._calling.cache_clear()
    nested.PIPELINE._texts.clear()
    assert alive(refs) == 0
