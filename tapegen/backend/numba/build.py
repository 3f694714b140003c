"""Generated text as callables: plain Python, or machine code by numba.

All contact with numba is in this package.  What its code does differently from NumPy and Python, and what the
text it gets must therefore avoid (numba 0.68):

* `np.add.at`, `a[...] += e` on a 0-d array (`a[()] += e` works), `[]` that nothing is appended to: not compiled at all;
* `x.T.reshape(n)` and other reshapes of arrays that are not contiguous: refused by numba only when run;
* with `error_model="numpy"`: `1 // 0` and `1 % 0` are 0 and `1.0 / 0.0` is inf; with either model `2 ** -1` is 0 and
  integers wrap around;
* `np.zeros_like(x.T)`, `x.copy()` of an array in Fortran order: C order;
* `IndexError` says "index is out of bounds" and no more;
* globals and closure cells are read once, when compiling.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import os
import warnings
import weakref
from collections.abc import Callable, Collection
from types import FunctionType, TracebackType
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.core.compiler import Compiler, CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, NumbaPendingDeprecationWarning, NumbaPerformanceWarning

from tapegen.backend.cache.machine_code import KeptCode
from tapegen.backend.numba import code_memory, memory_limit
from tapegen.backend.numba.library import fft, lapack, special_functions
from tapegen.backend.numba.liveness import fast_liveness
from tapegen.backend.numba.patches import is_enabled, is_plain, warn_of
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import BuildError, CacheWarning, CompileLimit, InternalError, Span, TapegenError
from tapegen.ir.recursion_limit import deep
from tapegen.ir.types import Array, Scalar, Type

building = global_compiler_lock
"""Held by the one thread that derives or compiles.

It is numba's own lock: while numba compiles it may ask for derivatives, and deriving may ask numba to compile, so there
must not be two.  A process is forked between two compilations, never in one, where the child would wait for ever.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=building.acquire, after_in_parent=building.release, after_in_child=building.release)

LINES = 4000
"""Lines of code beyond which compiling takes minutes."""

SPLIT = "Split the function into several."

DISABLED = "NUMBA_DISABLE_JIT is set, so that numba compiles nothing."


def compiles() -> bool:
    """Whether numba compiles at all: where its own switch is off, it hands back the Python functions it is given."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]  # it is set from the environment


def decorator_text(*, fastmath: bool = False) -> str:
    """The decorator under which compiled text keeps NumPy's meaning.

    Without numba's own bounds checks: the text itself holds those that are needed (`transform.nests`), few of them in
    inner loops, which keeps these fit for vector instructions and halves the time of compilation.

    Parameters
    ----------
    fastmath : bool
        Whether sums may be reordered and NaN and infinity be taken not to occur.
    """
    options = ['error_model="numpy"', *(["fastmath=True"] if fastmath else [])]
    return f"njit({', '.join(options)})"


def refuse_long(source: PythonSource) -> None:
    """Raise CompileLimit for a text that numba would work on for minutes."""
    count = source.text.count("\n")
    if count > LINES:
        reason = f"The code of {source.entry} has {count} lines; more than {LINES} take minutes to compile."
        raise CompileLimit(reason, SPLIT)


_inlined: dict[str, Any] = {}
"""Functions that become part of their callers, by their text: compiled once, whichever programs hold that text."""

_LARGEST_IN_HEAP = 2**25 - 2**16
"""Just below the largest size from which glibc learns (32 MB)."""


@functools.cache
def _keep_memory() -> None:
    """Let memory that a call frees serve the next one.

    Tapes and cotangents are allocated in each call.  glibc gives large blocks back to the system, and taking them anew
    costs a page fault for every 4 kB, which may be most of the time of a gradient; once a program has freed a block of
    32 MB, it keeps up to twice that.  The block is never touched, so it costs nothing; elsewhere this does nothing.
    """
    np.empty(_LARGEST_IN_HEAP, np.uint8)


def build_python(source: PythonSource, tapes: Collection[str] = ()) -> Callable[..., Any]:
    """The entry function of a text, run by CPython.

    Tracebacks, `pdb` and `inspect.getsource` show the lines of the text.

    Parameters
    ----------
    source : PythonSource
        The text.
    tapes : collection of str
        The names of tapes, which must not grow for ever.

    Raises
    ------
    CompileLimit
        If the text is more than CPython's parser takes.
    """
    function: FunctionType = _run(source, tapes)[source.entry]
    weakref.finalize(function, linecache.cache.pop, source.file_name, None)
    return function


def build_numba(
    source: PythonSource,
    *,
    boundscheck: bool | None = None,
    fastmath: bool | None = None,
    from_start: bool = False,
    kept: bool = False,
) -> Dispatcher:
    """The entry function of a text as a numba dispatcher; it compiles when first called, or by `compile(types)`.

    Parameters
    ----------
    source : PythonSource
        A text with a decorator is compiled as it says.
    boundscheck, fastmath : bool, optional
        Options for a text without one (default: True, False).
    from_start : bool
        Whether all indices of elements count from the start of their axis, none from its end: what `transform.nests`
        writes.
    kept : bool
        Whether compiled code is kept on disk.

    Raises
    ------
    ValueError
        If options are given for a text that has its own.
    BuildError
        If numba is switched off.
    """
    if not compiles():
        raise BuildError(DISABLED, "Unset it.")
    _keep_memory()
    code_memory.free_pass_managers()
    memory_limit.provide()
    special_functions.provide()
    lapack.provide()
    fft.provide()
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
        if own.targetoptions.get("forceinline"):
            own.targetoptions["no_cfunc_wrapper"] = True  # C does not call it; Python may, by `py_func` of its caller
            namespace[name] = _inlined.setdefault(inspect.getsource(own.py_func), own)
        if namespace[name] is own:
            _prepare(own, compilers)
    # numba's contexts hold what is compiled, that holds its globals, and numba lets go of it when the dispatcher dies
    entry = namespace.pop(source.entry)
    if isinstance(entry, Dispatcher):
        if kept and is_enabled("machine_code"):
            entry._cache = KeptCode(source, from_start)  # type: ignore[attr-defined]
        weakref.finalize(entry, _forget, namespace, source)
    return entry


def _compilers(*, from_start: bool, overlapping: bool) -> tuple[type[CompilerBase], ...]:
    """The compilers for a text; numba's own where its internals are not touched."""
    if is_plain():
        return (Compiler,)
    try:
        from tapegen.backend.numba.compiler import compilers_for  # they take numba's arrays, which are large
    except (ImportError, AttributeError) as error:
        warn_of(f"compiled code is that of numba's own compiler ({error})")
        return (Compiler,)
    return compilers_for(from_start=from_start, overlapping=overlapping)


def _forget(namespace: dict[str, Any], source: PythonSource) -> None:
    """Let go of what belongs to a text that nobody runs any more; what other texts may share stays."""
    for name in source.functions:
        if name in namespace and not namespace[name].targetoptions.get("forceinline"):
            del namespace[name]
    linecache.cache.pop(source.file_name, None)


def empty_list(item: Type) -> Any:
    """An empty list for compiled code, which cannot tell what an empty list of Python would hold."""
    assert isinstance(item, Array | Scalar)
    dtype = numba.from_dtype(np.dtype(item.dtype))
    return numba.typed.List.empty_list(dtype[(slice(None),) * item.rank] if isinstance(item, Array) else dtype)


def compile_failure(error: Exception, source: PythonSource) -> tuple[str, Span | None] | None:
    """Why and where in the user's source numba could not compile a text; None for an error that its code raises."""
    if isinstance(error, CompileLimit):
        return error.reason, error.span
    if not isinstance(error, NumbaError):
        return None
    loc = getattr(error, "loc", None)
    span = source.origin(loc.line) if loc is not None and loc.filename == source.file_name else None
    return f"numba does not take {f'`{span.text()}`' if span is not None else f'the code of {source.entry}'}", span


def error_line(source: PythonSource, traceback: TracebackType | None) -> int:
    """The line of a text, compiled or not, at which an error was raised; 0 if it is not in the traceback."""
    found = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == source.file_name:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found


_MODULE = "<dynamic>"
"""What numba calls the module of functions that no module holds; it finds one that calls itself under no other name."""


def _run(source: PythonSource, tapes: Collection[str] = ()) -> dict[str, Any]:
    """Execute the text; the name of its file carries a hash of it, so that no two texts share one."""
    try:
        tree: Any = source.text
        if tapes:
            tree = memory_limit.Watched(tapes).visit(ast.parse(source.text))
        code = compile(tree, source.file_name, "exec")
    except (RecursionError, MemoryError) as error:
        raise CompileLimit(
            f"The code of {source.entry} is more than Python's compiler takes ({error}).",
            SPLIT,
        ) from None
    linecache.cache[source.file_name] = (len(source.text), None, source.text.splitlines(True), source.file_name)
    namespace = {"__name__": _MODULE, **memory_limit.NAMES, **source.namespace}
    exec(code, namespace)
    return namespace


def _is_ours(error: Exception) -> bool:
    """Whether what has gone wrong in numba's compiler is a part of tapegen that runs in it."""
    own, traceback = "", error.__traceback__
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0]
        own, traceback = package if package in ("tapegen", "numba", "llvmlite") else own, traceback.tb_next
    return own == "tapegen"


def _while_compiling(error: Exception) -> InternalError:
    """A fault of tapegen, of which those who know the program tell more."""
    fault = InternalError(f"tapegen itself failed while compiling: {error}.", "This is a fault of tapegen.")
    fault.stage = "compiling"
    return fault


def _prepare(dispatcher: Any, compilers: tuple[type[CompilerBase], ...]) -> None:
    """Errors name their line, and warnings the user can do nothing about are not shown.

    The first of the compilers that takes the function is used; the last one takes all that any of them takes.
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
        with global_compiler_lock, live_names(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaPerformanceWarning)  # "@ is faster on contiguous arrays"
            warnings.simplefilter("ignore", NumbaPendingDeprecationWarning)  # the lists that a pullback takes
            try:
                with deep():  # numba recurses from block to block of a long function
                    compiled = first_that_compiles(signature)
                code_memory.hand_over_modules(dispatcher)
                return compiled
            except RecursionError:
                name = dispatcher.py_func.__name__
                raise CompileLimit(f"The code of {name} is more than numba takes.", SPLIT) from None
            except (NumbaError, TapegenError, CacheWarning):  # a filter may turn warnings into errors
                raise
            except Exception as error:  # the caller must not take it for one of the running code
                if _is_ours(error):
                    raise _while_compiling(error) from error
                name = dispatcher.py_func.__name__
                reason = f"numba failed on the code of {name} ({type(error).__name__}: {error})."
                raise BuildError(reason, 'Use backend="python".') from error

    dispatcher.compile = quiet
