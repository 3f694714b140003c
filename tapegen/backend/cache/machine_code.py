"""Cache entries of machine code that numba has compiled.

Entries hold the object code of one function for one combination of argument types, with the numba types that describe
it.  numba numbers the functions it compiles, so code of two processes may use one name for different functions.  In an
entry only the function itself is externally visible, under names derived from its key: one for Python, one for compiled
callers.  Those inline a copy of it where the function is small enough, which numba does with functions of any size.
"""

# mypy: disable-error-code="no-untyped-call, call-arg, attr-defined"

from __future__ import annotations

import copy
import io
import itertools
import os
import pickle
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import _dynfunc
from numba.core import config, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target
from numba.core.utils import _dynamic_modname, _dynamic_module

from tapegen.backend.cache.store import key_of, store
from tapegen.backend.numba import patches
from tapegen.backend.printer.source import PythonSource

_ENVIRONMENT = "_ZN08NumbaEnv"
_PLAIN = (types.Array, types.Integer, types.Float, types.Boolean, types.Complex, types.List, types.BaseTuple)
_INLINED = 200  # instructions; LLVM does not inline larger functions, but would compile the copy
_IDLE = ("THREAD", "CACHE", "DUMP", "DEBUG", "WARN", "COLOR")  # settings that do not affect code

_loaded: dict[str, Any] = {}


def processor() -> tuple[Any, ...]:
    """The processor that numba compiles for."""
    return cpu_target.target_context.codegen().magic_tuple()


class MachineCodeCache(NullCache):
    """The interface that a numba dispatcher queries before it compiles, and passes the result to.

    Parameters
    ----------
    source : PythonSource
        The source of the dispatcher.
    from_start : bool
        How the source is compiled, see `build_numba`.
    on_disk : bool
        Whether code is read from the cache and stored there.
    """

    def __init__(self, source: PythonSource, from_start: bool, *, on_disk: bool = True) -> None:
        self.source, self.from_start, self.on_disk = source, from_start, on_disk

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for argument types; None if there is none."""
        key = self.key(sig, target_context)
        kept = store() if self.on_disk else None
        if key is None:
            return None
        if key not in _loaded:  # numba asks while it holds its lock
            data = None if kept is None else kept.load(key)
            if data is None or not self.take(key, data, target_context):
                return None
        return _loaded[key]

    def take(self, key: str, data: bytes, target_context: Any) -> bool:
        """Accept stored code; whether this process can run it."""
        found = _rebuilt(data, key, target_context)
        if found is not None:
            _loaded[key] = found
        return found is not None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function."""
        if not _is_small(data.library.get_function(data.fndesc.llvm_func_name)):
            data.library._shared_module = _empty_module(data.target_context, data.library.name)
        key = self.key(sig, data.target_context)
        if key is not None and self.is_wanted():
            payload = _reduced(data, key)
            if payload is not None:
                self.keep(key, payload)

    def is_wanted(self) -> bool:
        """Whether compiled code is kept."""
        return self.on_disk and store() is not None

    def keep(self, key: str, payload: bytes) -> None:
        """Store code under its key."""
        kept = store()
        if kept is not None and self.on_disk:
            kept.save(key, payload)

    def key(self, sig: Any, target_context: Any) -> str | None:
        """The key of the code for argument types; None if it depends on objects of this process."""
        args = sig if isinstance(sig, tuple) else sig.args
        classes = all(isinstance(v, type) and issubclass(v, BaseException) for v in self.source.namespace.values())
        if not classes or not all(isinstance(arg, _PLAIN) for arg in args):
            return None
        settings = [
            f"{name}={value!r}"
            for name, value in sorted(vars(config).items())
            if name.isupper() and isinstance(value, bool | int | str) and not any(part in name for part in _IDLE)
        ]
        given = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("NUMBA_OPT", "NUMBA_CPU", "LLVM"))]
        names = [f"{name}: {value!r}" for name, value in sorted(self.source.namespace.items())]
        types_ = [f"{arg!s} {arg.key!r}" for arg in args]
        source = self.source
        texts = (source.text, source.entry, source.overlapping, self.from_start, patches.disabled())
        parts = (*texts, *types_, *target_context.codegen().magic_tuple())
        return key_of("machine", *map(str, parts), "\n".join(settings), "\n".join(given), "\n".join(names))


def _reduced(result: Any, key: str) -> bytes | None:
    """A compile result as bytes; None where the code depends on this process."""
    library = result.library
    if result.objectmode or result.lifted or result.reload_init or library.has_dynamic_globals:
        return None
    names = {
        result.fndesc.llvm_cpython_wrapper_name: f"tapegen_{key}",
        result.fndesc.llvm_func_name: f"tapegen_{key}_native",
    }
    environments: list[tuple[str, list[Any]]] = []
    module = library._final_module.clone()
    for value in module.global_variables:
        if value.name.startswith(_ENVIRONMENT):
            found = lookup_environment(value.name)
            names[value.name] = f"tapegen_{key}_{len(environments)}"
            environments.append((names[value.name], [] if found is None else list(found.consts)))
            if value.name == result.fndesc.env_name:
                own = names[value.name]
    outside = []
    for value in [*module.functions, *module.global_variables]:
        if value.is_declaration:
            outside.append(value.name)
        elif value.name in names:
            value.linkage = "external"
            value.name = names[value.name]
        elif value.linkage not in (llvm.Linkage.private, llvm.Linkage.internal, llvm.Linkage.appending):
            value.linkage = "internal"
    outside = [name for name in outside if not name.startswith("llvm.")]
    if any(llvm.address_of_symbol(name) is None for name in outside):
        return None
    module.verify()
    descriptor = copy.copy(result.fndesc)
    descriptor.mangled_name = f"tapegen_{key}_native"
    descriptor.typemap = descriptor.calltypes = descriptor.global_dict = None
    descriptor.modname, descriptor.doc = _dynamic_modname, None
    code = library.codegen._tm.emit_object(module)
    copied = b""
    if _is_small(module.get_function(descriptor.mangled_name)):
        for value in [*module.functions, *module.global_variables]:
            if value.name in names.values():
                own_copy = value.name == descriptor.mangled_name
                value.linkage = "linkonce_odr" if own_copy else "available_externally"
        copied = module.as_bitcode()
    content = (
        code,
        copied,
        names[result.fndesc.llvm_cpython_wrapper_name],
        own,
        environments,
        outside,
        result.signature,
        descriptor,
    )
    try:
        return pickle.dumps(content, protocol=5)
    except Exception:  # a type that is not plain data after all
        return None


def _rebuilt(data: bytes, key: str, target_context: Any) -> Any:
    """A compile result from bytes; None if they cannot be used in this process."""
    try:
        code, copied, entry, own, environments, outside, signature, descriptor = _Reader(io.BytesIO(data)).load()
    except Exception:  # complete, but not what is expected: treated as a miss
        return None
    target_context.refresh()
    if any(llvm.address_of_symbol(name) is None for name in outside):
        return None  # the linker of LLVM would end the process
    codegen = target_context.codegen()
    copied = copied or _empty_module(target_context, f"tapegen_{key}").as_bitcode()
    library = codegen.unserialize_library((f"tapegen_{key}", "object", (code, copied)))
    made = {}
    for name, constants in environments:
        environment = made[name] = Environment({"__name__": f"tapegen.cached.{key}"})
        environment.env_name = name
        # arrays get NumPy's own dtype object, not an equal one
        environment.consts[:] = [
            np.dtype(c.str) if isinstance(c, np.dtype) and c.names is None else c for c in constants
        ]
        Environment._memo[name] = environment
        codegen.set_env(name, environment)
    address = codegen._engine.get_function_address(entry)
    function = _dynfunc.make_function(
        _dynamic_module, descriptor.qualname, "compiled code", address, made[own], (library,)
    )
    return CompileResult(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=made[own],
        entry_point=function,
        fndesc=descriptor,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=(),
        referenced_envs=tuple(made.values()),
    )


def _is_small(function: Any) -> bool:
    """Whether a function may be inlined into its callers."""
    instructions = (instruction for block in function.blocks for instruction in block.instructions)
    return len(list(itertools.islice(instructions, _INLINED + 1))) <= _INLINED


def _empty_module(target_context: Any, name: str) -> Any:
    """No code for callers to inline: they call the function by its name."""
    return llvm.parse_assembly(str(target_context.codegen()._create_empty_module(name)))


class _Reader(pickle.Unpickler):
    """Unpickles descriptions of types, and refuses to create anything else."""

    def find_class(self, module: str, name: str) -> Any:
        """A class or function that descriptions of types consist of."""
        package = module.partition(".")[0]
        known = package == "numba" and module.startswith(("numba.core.t", "numba.core.funcdesc", "numba.np.types"))
        if known or (module, name) in _READABLE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not expected here")


_READABLE = {("numpy", "dtype"), ("builtins", "getattr"), ("copyreg", "_reconstructor"), ("builtins", "object")}
