"""JIT build: generated source as callables, plain Python or machine code by numba.

All contact with numba is in this package.  The differences between its code and NumPy or Python, which generated source
must therefore avoid (numba 0.68):

* `np.add.at`, `a[...] += e` on a 0-d array (`a[()] += e` works), `[]` that nothing is appended to: not compiled at all;
* `x.T.reshape(n)` and other reshapes of arrays that are not contiguous: refused by numba at run time only;
* with `error_model="numpy"`: `1 // 0` and `1 % 0` are 0 and `1.0 / 0.0` is inf; with either model `2 ** -1` is 0 and
  integers wrap around;
* `np.zeros_like(x.T)`, `x.copy()` of an array in Fortran order: C order;
* the message of `IndexError` is "index is out of bounds" only;
* globals and closure cells are read once, at compile time.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from types import FunctionType, TracebackType
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.core import sigutils
from numba.core.compiler import Compiler, CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, NumbaPendingDeprecationWarning, NumbaPerformanceWarning
from numba.core.registry import CPUDispatcher

from tapegen.backend.background import interruptible_source
from tapegen.backend.background.availability import waiting
from tapegen.backend.background.deferred_compilation import compile_in_background
from tapegen.backend.cache.machine_code import MachineCodeCache
from tapegen.backend.compile_progress import compiling
from tapegen.backend.numba import code_memory, memory_limit, workspaces
from tapegen.backend.numba.call_resolution import calls_resolved_once
from tapegen.backend.numba.early_exits import interrupts
from tapegen.backend.numba.library import fft, lapack, messages, special_functions
from tapegen.backend.numba.library.callees import callees_are_parts
from tapegen.backend.numba.liveness import fast_liveness
from tapegen.backend.numba.patches import is_enabled, is_plain, warn_of
from tapegen.backend.numba.threads import run_chunks
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import BuildError, CacheWarning, CompileLimit, InternalError, Span, TapegenError
from tapegen.ir.passes import deep
from tapegen.ir.types import Array, Scalar, Type

building = global_compiler_lock
"""Held by the one thread that derives or compiles.

It is numba's own lock: while numba compiles it may ask for derivatives, and deriving may ask numba to compile, so two
locks could deadlock.  A process is forked between two compilations, never during one, or the child would block forever.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=building.acquire, after_in_parent=building.release, after_in_child=building.release)

LINES = 4000
"""Lines of code beyond which compiling takes minutes."""

SPLIT = "Split the function into several."

DISABLED = "NUMBA_DISABLE_JIT is set, so that numba compiles nothing."


def compiles() -> bool:
    """Whether numba compiles at all: if its own switch is off, it returns the Python functions unchanged."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]  # it is set from the environment


def decorator_text(*, fastmath: bool = False) -> str:
    """The decorator under which compiled source keeps NumPy's semantics.

    numba's own bounds checks are off: the source itself contains those that are needed (`tapegen.loops`), few of them
    in inner loops, which keeps these vectorizable and halves the compile time.

    Parameters
    ----------
    fastmath : bool
        Whether sums may be reordered and NaN and infinity be assumed not to occur.
    """
    options = ['error_model="numpy"', *(["fastmath=True"] if fastmath else [])]
    return f"njit({', '.join(options)})"


def refuse_long(source: PythonSource) -> None:
    """Raise CompileLimit for a source that numba would compile for minutes."""
    count = source.text.count("\n")
    if count > LINES:
        reason = f"The code of {source.entry} has {count} lines; more than {LINES} take minutes to compile."
        raise CompileLimit(reason, SPLIT)


_inlined: dict[str, Any] = {}
"""Functions that are inlined into their callers, by source: compiled once for all programs that contain the source."""


@functools.cache
def _load_implementations() -> None:
    """Load numba's implementations without `scipy.linalg`.

    numba asks when they are loaded whether there is a BLAS, for which it loads `scipy.linalg`, which takes as long as
    the rest.  Code that calls a routine of BLAS asks again.
    """
    if "numba.np.arraymath" in sys.modules or not is_enabled("lazy_blas"):
        return
    from numba.np import linalg

    own = linalg.ensure_blas
    linalg.ensure_blas = _no_question
    try:
        from numba.np import arraymath
    finally:
        linalg.ensure_blas = own
    arraymath.ensure_blas = own  # type: ignore[attr-defined]


def _no_question() -> None:
    """There is a BLAS: tapegen requires SciPy."""


def build_python(
    source: PythonSource, tapes: Collection[str] = (), *, interruptible: bool = False
) -> Callable[..., Any]:
    """The entry function of a source, run by CPython.

    Tracebacks, `pdb` and `inspect.getsource` show the lines of the source.

    Parameters
    ----------
    source : PythonSource
        The source.
    tapes : collection of str
        The names of tapes, which must not grow without bound.
    interruptible : bool
        Whether its loops stop when machine code has become available (`background.interruptible_source`).

    Raises
    ------
    CompileLimit
        If the source exceeds the limits of CPython's parser.
    """
    function: FunctionType = _run(source, tapes, interruptible=interruptible)[source.entry]
    weakref.finalize(function, linecache.cache.pop, source.file_name, None)
    return function


def build_numba(
    source: PythonSource,
    *,
    boundscheck: bool | None = None,
    fastmath: bool | None = None,
    from_start: bool = False,
    kept: bool = False,
    background: bool = False,
) -> Dispatcher:
    """The entry function of a source as a numba dispatcher; it compiles when first called, or by `compile(types)`.

    Parameters
    ----------
    source : PythonSource
        A source with a decorator is compiled with the options of that.
    boundscheck, fastmath : bool, optional
        Options for a source without one (default: True, False).
    from_start : bool
        Whether all indices of elements count from the start of their axis, none from its end: `tapegen.loops` prints
        such source.
    kept : bool
        Whether compiled code is stored on disk.
    background : bool
        Whether the entry raises `Deferred` while a helper process compiles it.

    Raises
    ------
    ValueError
        If options are given for a source that has its own.
    BuildError
        If numba is switched off.
    """
    if not compiles():
        raise BuildError(DISABLED, "Unset it.")
    if is_enabled("workspaces"):
        workspaces.provide()
    _load_implementations()
    code_memory.free_pass_managers()
    memory_limit.provide()
    interrupts.provide()
    special_functions.provide()
    lapack.provide()
    fft.provide()
    messages.provide()
    if source.parallel:
        run_chunks.provide()
    namespace = _run(source)
    if source.decorator is None:
        options: Any = {"boundscheck": boundscheck is not False, "fastmath": bool(fastmath), "error_model": "numpy"}
        for name in source.functions:
            namespace[name] = njit(**options)(namespace[name])
    elif boundscheck is not None or fastmath is not None:
        raise ValueError(f"the text of {source.entry} says itself how it is compiled: @{source.decorator}")
    compilers = _compilers(from_start=from_start, overlapping=source.overlapping)
    for name in source.functions:
        own = namespace[name]
        own.targetoptions["no_cfunc_wrapper"] = True  # C calls none of them
        if name != source.entry:
            own.targetoptions["no_cpython_wrapper"] = True  # nor does Python, which has no code of it to enter
            own.__class__ = _Helper
        if own.targetoptions.get("forceinline"):
            namespace[name] = _inlined.setdefault(inspect.getsource(own.py_func), own)
        if namespace[name] is own:
            _prepare(own, compilers, source)
    # numba's contexts hold what is compiled, which holds its globals; numba releases it when the dispatcher is deleted
    entry = namespace.pop(source.entry)
    if isinstance(entry, Dispatcher):
        entry.targetoptions["nogil"] = True  # other threads of Python run meanwhile
        if (kept or background) and is_enabled("machine_code"):
            code = entry._cache = MachineCodeCache(source, from_start, on_disk=kept)  # type: ignore[attr-defined]
            if background:
                compile_in_background(entry, code)
        if source.only_reads:
            _share_with_read_only(entry)
        _keep_interrupts(entry)
        weakref.finalize(entry, _forget, namespace, source)
    return entry


class _Helper(CPUDispatcher):
    """A function that compiled code calls; in Python, where the `py_func` of its caller runs, it is its text."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)


def _share_with_read_only(dispatcher: Any) -> None:
    """Let a dispatcher run the code for writable arrays on read-only ones; numba compiles once more for those."""
    compile_ = dispatcher.compile

    def once(signature: Any) -> Any:
        given = tuple(sigutils.normalize_signature(signature)[0])  # type: ignore[no-untyped-call]
        writable = tuple(map(_writable, given))
        found = compile_(writable)
        if writable != given:
            code = dispatcher.overloads[given] = dispatcher.overloads[writable]
            dispatcher._insert([type_._code for type_ in given], code.entry_point, False)
        return found

    dispatcher.compile = once


def _keep_interrupts(dispatcher: Any) -> None:
    """Let Ctrl-C end a call that compiles, wherever it arrives."""
    compile_ = dispatcher.compile

    def compile(signature: Any) -> Any:
        with interrupts.kept():
            return compile_(signature)

    dispatcher.compile = compile


def _writable(type_: Any) -> Any:
    """The numba type of an array that is like one of another type, and writable."""
    plain = type(type_) is numba.types.Array and not type_.mutable
    return type_.copy(readonly=False) if plain else type_


def _compilers(*, from_start: bool, overlapping: bool) -> tuple[type[CompilerBase], ...]:
    """The compilers for a source; numba's own where its internals are not patched."""
    if is_plain():
        return (Compiler,)
    try:
        from tapegen.backend.numba.compiler import compilers_for  # they hold numba's arrays, which are large
    except (ImportError, AttributeError) as error:
        warn_of(f"compiled code is that of numba's own compiler ({error})")
        return (Compiler,)
    return compilers_for(from_start=from_start, overlapping=overlapping)


def _forget(namespace: dict[str, Any], source: PythonSource) -> None:
    """Release what belongs to a source that is no longer used; what other sources may share stays."""
    for name in source.functions:
        if name in namespace and not namespace[name].targetoptions.get("forceinline"):
            del namespace[name]
    linecache.cache.pop(source.file_name, None)


def typed(dispatcher: Any, values: Sequence[Any]) -> list[Any]:
    """The types of values as numba sees them."""
    return [dispatcher.typeof_pyval(value) for value in values]


def parameter_type(type_: Type) -> Any:
    """The numba type of a scalar or contiguous array."""
    assert isinstance(type_, Array | Scalar)
    dtype = numba.from_dtype(np.dtype(type_.dtype))
    return numba.types.Array(dtype, type_.rank, "C") if isinstance(type_, Array) else dtype


def compile_for(dispatcher: Any, types: Sequence[Any]) -> list[Any]:
    """Compile for argument types, in this process or, if it is compiling this already, in the background.

    Returns
    -------
    list
        The types of the results.
    """
    with waiting():
        dispatcher.compile(tuple(types))
    found = dispatcher.overloads[tuple(types)].signature.return_type
    return list(getattr(found, "types", [found]))  # a tuple has several


def empty_list(item: Type) -> Any:
    """An empty list for compiled code, which cannot infer the item type of an empty Python list."""
    assert isinstance(item, Array | Scalar)
    dtype = numba.from_dtype(np.dtype(item.dtype))
    return numba.typed.List.empty_list(dtype[(slice(None),) * item.rank] if isinstance(item, Array) else dtype)


def compile_failure(error: Exception, source: PythonSource) -> tuple[str, Span | None] | None:
    """Why and where in the user's source numba could not compile; None for an error that its code raises."""
    if isinstance(error, CompileLimit):
        return error.reason, error.span
    if not isinstance(error, NumbaError):
        return None
    loc = getattr(error, "loc", None)
    span = source.origin(loc.line) if loc is not None and loc.filename == source.file_name else None
    return f"numba does not take {f'`{span.text()}`' if span is not None else f'the code of {source.entry}'}", span


def error_line(source: PythonSource, traceback: TracebackType | None) -> int:
    """The line of a source, compiled or not, at which an error was raised; 0 if it is not in the traceback."""
    found = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == source.file_name:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found


_MODULE = "<dynamic>"
"""The name that numba gives to the module of functions without one; a recursive function is found only under it."""


def _run(source: PythonSource, tapes: Collection[str] = (), *, interruptible: bool = False) -> dict[str, Any]:
    """Execute the source; its file name contains a hash of it, so that no two sources share a name."""
    try:
        tree: Any = source.text
        if tapes:
            tree = memory_limit.Watched(tapes).visit(ast.parse(source.text))
        if interruptible:
            tree = interruptible_source.Interruptible().visit(ast.parse(source.text) if tree is source.text else tree)
        code = compile(tree, source.file_name, "exec")
    except (RecursionError, MemoryError) as error:
        raise CompileLimit(
            f"The code of {source.entry} is too large for Python's compiler ({error}).",
            SPLIT,
        ) from None
    linecache.cache[source.file_name] = (len(source.text), None, source.text.splitlines(True), source.file_name)
    namespace = {"__name__": _MODULE, **memory_limit.NAMES, **interruptible_source.NAMES, **source.namespace}
    exec(code, namespace)
    return namespace


def _is_ours(error: Exception) -> bool:
    """Whether an error in numba's compiler comes from a part of tapegen that runs in it."""
    own, traceback = "", error.__traceback__
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        own, traceback = package if package in ("tapegen", "numba", "llvmlite") else own, traceback.tb_next
    return own == "tapegen"


def _while_compiling(error: Exception) -> InternalError:
    """An internal error of tapegen, to which callers that know the program add details."""
    fault = InternalError(f"tapegen itself failed while compiling: {error}.", "This is a fault of tapegen.")
    fault.stage = "compiling"
    return fault


def _prepare(dispatcher: Any, compilers: tuple[type[CompilerBase], ...], source: PythonSource) -> None:
    """Errors report their line, and warnings the user cannot act on are hidden.

    The first of the compilers that accepts the function is used; the last one accepts all that any of them accepts.
    """
    compile_ = dispatcher.compile

    def first_that_compiles(signature: Any) -> Any:
        *quick, last = compilers
        for compiler in quick:
            dispatcher._compiler.pipeline_class = compiler
            try:
                return compile_(signature)
            except NumbaError:
                dispatcher._compiler._failed_cache.clear()  # or the error is raised again
        dispatcher._compiler.pipeline_class = last
        return compile_(signature)

    def quiet(signature: Any) -> Any:
        live_names = fast_liveness if is_enabled("liveness") else contextlib.nullcontext
        resolved = calls_resolved_once if is_enabled("call_resolution") else contextlib.nullcontext
        parts = callees_are_parts if is_enabled("callees") else contextlib.nullcontext
        with global_compiler_lock, live_names(), resolved(), parts(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaPerformanceWarning)  # "@ is faster on contiguous arrays"
            warnings.simplefilter("ignore", NumbaPendingDeprecationWarning)  # the lists that a pullback accepts
            try:
                with deep(), compiling(dispatcher, source, signature):  # numba recurses from block to block
                    compiled = first_that_compiles(signature)
                code_memory.hand_over_modules(dispatcher)
                return compiled
            except RecursionError:
                name = dispatcher.py_func.__name__
                raise CompileLimit(f"The code of {name} is too large for numba.", SPLIT) from None
            except (NumbaError, TapegenError, CacheWarning):  # a filter may turn warnings into errors
                raise
            except Exception as error:  # the caller must not mistake it for an error of the running code
                if interrupts.is_of_signal_handler(error):
                    raise
                if _is_ours(error):
                    raise _while_compiling(error) from error
                name = dispatcher.py_func.__name__
                reason = f"numba failed on the code of {name} ({type(error).__name__}: {error})."
                raise BuildError(reason, 'Use backend="python".') from error

    dispatcher.compile = quiet
