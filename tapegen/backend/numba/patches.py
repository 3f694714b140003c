"""Patches of numba: which of its internals are replaced or extended, each with a purpose, a self-test and a switch.

Compiled source runs on stock numba unchanged; the patches make it compile and run faster, and let errors report their
line.  Each patch declares what it relies on: where a version of numba or llvmlite differs, that patch alone is switched
off, with a warning.  ``TAPEGEN_PLAIN_NUMBA=1`` in the environment switches off all of them, and
``TAPEGEN_PLAIN_NUMBA=alias_scopes,liveness`` those that it names.  ``python -m benchmarks.patches`` measures the gain
of each.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite
import numba

from tapegen.errors import PerformanceWarning

SWITCH = "TAPEGEN_PLAIN_NUMBA"
"""The environment variable that switches patches off."""


@dataclass(frozen=True)
class Uses:
    """A part of numba or llvmlite that a patch relies on.

    Attributes
    ----------
    path : str
        ``module:attribute.attribute``.
    parameters : tuple of str, optional
        The parameters by position that it must have, `self` included.
    """

    path: str
    parameters: tuple[str, ...] | None = None

    def fits(self) -> bool:
        """Whether it exists, and has the expected parameters."""
        module, _, names = self.path.partition(":")
        try:
            found: Any = functools.reduce(getattr, names.split("."), importlib.import_module(module))
            return self.parameters is None or tuple(inspect.signature(found).parameters) == self.parameters
        except (ImportError, AttributeError, TypeError, ValueError):
            return False


@dataclass(frozen=True)
class Patch:
    """One departure from stock numba.

    Attributes
    ----------
    name : str
        The name that `SWITCH` refers to.
    purpose : str
        Its benefit.
    uses : tuple of Uses
        The internals that it relies on.
    test : callable, optional
        A further condition.
    """

    name: str
    purpose: str
    uses: tuple[Uses, ...]
    test: Callable[[], bool] = lambda: True

    def fits(self) -> bool:
        """Whether numba is as the patch expects it."""
        return all(part.fits() for part in self.uses) and self.test()


def _live_map_agrees() -> bool:
    """Whether the sets of live variables are those that numba finds, on two blocks."""
    from numba.core import analysis

    from tapegen.backend.numba.liveness import live_map

    class Graph:
        """0 -> 1 -> 1."""

        def topo_order(self) -> list[int]:
            return [0, 1]

        def successors(self, block: int) -> list[tuple[int, None]]:
            return [(1, None)]

        def predecessors(self, block: int) -> list[tuple[int, None]]:
            return [(0, None), (1, None)] if block else []

    used, given = {0: {"a"}, 1: {"b", "c"}}, {0: {"b", "c"}, 1: {"c"}}
    found = live_map(Graph(), {0: None, 1: None}, used, given)
    numbas: Any = analysis.compute_live_map
    return bool(found == numbas(Graph(), {0: None, 1: None}, used, given))


def _large_arrays_are_aligned() -> bool:
    """Whether numba lays out the blocks of another allocator as `workspaces` expects it."""
    from tapegen.backend.numba.workspaces import is_as_expected

    try:
        return is_as_expected()
    except (KeyError, ValueError, RuntimeError, OSError):  # numba's table of functions, or LLVM's language, differs
        return False


_LOWER = "numba.core.lowering:Lower."

PATCHES = (
    Patch(
        "error_lines",
        "errors of compiled code carry the line at which they were raised",
        (
            Uses(
                "numba.core.callconv:CPUCallConv.set_static_user_exc",
                ("self", "builder", "exc", "exc_args", "loc", "func_name"),
            ),
            Uses("numba.core.cpu:CPUContext.call_conv"),
        ),
    ),
    Patch(
        "direct_exits",
        "errors leave a function without `try` without a look at how many of these are around them",
        (
            Uses("numba.core.callconv:CPUCallConv.check_try_status", ("self", "builder")),
            Uses("numba.core.callconv:CPUCallConv.return_status_propagate", ("self", "builder", "status")),
            Uses("numba.core.callconv:CPUCallConv._get_excinfo_argument", ("self", "func")),
            Uses("numba.core.callconv:TryStatus"),
        ),
    ),
    Patch(
        "register_promotion",
        "variables are SSA values instead of stack slots: less for LLVM to promote",
        (
            Uses(_LOWER + "storevar", ("self", "value", "name", "argidx")),
            Uses(_LOWER + "delvar", ("self", "name")),
            Uses(_LOWER + "_alloca_var", ("self", "name", "fetype")),
            Uses(_LOWER + "lower_normal_function", ("self", "fndesc")),
            Uses(_LOWER + "_disable_sroa_like_opt"),
        ),
    ),
    Patch(
        "shared_error_exits",
        "errors of long functions leave through one chain of blocks that release arrays",
        (
            Uses(_LOWER + "lower_block", ("self", "block")),
            Uses(_LOWER + "return_exception", ("self", "exc_class", "exc_args", "loc")),
            Uses("numba.core.callconv:CPUCallConv._return_errcode_raw"),
        ),
    ),
    Patch(
        "two_tier_optimization",
        "long functions are optimized once instead of twice, and all at level 2",
        (
            Uses("numba.core.codegen:JITCodeLibrary._optimize_final_module", ("self",)),
            Uses("numba.core.codegen:JITCPUCodegen._module_pass_manager", ("self", "kwargs")),
            Uses("numba.core.codegen:JITCodeLibrary._optimize_functions", ("self", "ll_module")),
            Uses("llvmlite.binding.newpassmanagers:FunctionPassManager.add_sroa_pass"),
            Uses("llvmlite.binding.newpassmanagers:FunctionPassManager.add_refprune_pass"),
            Uses("llvmlite.binding.newpassmanagers:create_new_function_pass_manager", ()),
        ),
    ),
    Patch(
        "range_loops",
        "loops over `range(n)` without a division and without an iterator in memory",
        (Uses(_LOWER + "lower_expr", ("self", "resty", "expr")), Uses("numba.core.types:range_iter64_type")),
    ),
    Patch(
        "pairs_in_registers",
        "the two parts of what an iterator gives do not go through memory",
        (
            Uses("numba.core.base:BaseContext.pair_first", ("self", "builder", "val", "ty")),
            Uses("numba.core.base:BaseContext.pair_second", ("self", "builder", "val", "ty")),
        ),
    ),
    Patch(
        "list_operations",
        "lists of arrays are changed by functions that are called, not inlined at each place",
        (
            Uses("numba.core.cpu:CPUContext.get_function", ("self", "fn", "sig", "_firstcall")),
            Uses("numba.core.cpu:CPUContext.build_list", ("self", "builder", "list_type", "items")),
            Uses("numba.cpython.listobj:ListInstance.allocate"),
        ),
    ),
    Patch(
        "allocation",
        "new arrays and longer tapes without a function, products and systems of any layout by one; all ask for memory",
        (
            Uses("numba.np.arrayobj:_empty_nd_impl", ("context", "builder", "arrtype", "shapes")),
            Uses("numba.np.arrayobj:get_itemsize", ("context", "array_type")),
            Uses(
                "numba.np.arrayobj:populate_array",
                ("array", "data", "shape", "strides", "itemsize", "meminfo", "parent"),
            ),
            Uses("numba.np.arrayobj:_call_allocator", ("arrtype", "size", "align")),
            Uses("numba.core.base:BaseContext.compile_internal", ("self", "builder", "impl", "sig", "args", "locals")),
            Uses("numba.core.runtime.context:NRTContext.meminfo_alloc_aligned", ("self", "builder", "size", "align")),
            Uses(
                "numba.core.runtime.context:NRTContext.meminfo_alloc_aligned_unchecked",
                ("self", "builder", "size", "align"),
            ),
            Uses("numba.core.untyped_passes:IRProcessing"),
        ),
    ),
    Patch(
        "interrupts",
        "long loops end at Ctrl-C",
        (
            Uses(_LOWER + "return_exception", ("self", "exc_class", "exc_args", "loc")),
            Uses("numba.core.callconv:CPUCallConv._return_errcode_raw"),
            Uses("numba.core.callconv:RETCODE_EXC"),
            Uses("numba.core.untyped_passes:IRProcessing"),
        ),
    ),
    Patch(
        "workspaces",
        "the memory of large arrays is kept for the next ones",
        (Uses("numba.core.runtime._nrt_python:c_helpers"),),
        _large_arrays_are_aligned,
    ),
    Patch(
        "non_negative_indices",
        "indices that count from the start of an axis are unsigned: no test for negative ones in inner loops",
        (
            Uses(_LOWER + "lower_getitem", ("self", "resty", "expr", "value", "index", "signature")),
            Uses(_LOWER + "lower_setitem", ("self", "target_var", "index_var", "value_var", "signature")),
        ),
    ),
    Patch(
        "element_access",
        "elements and shapes are read from the values of arrays, not from copies of these in memory",
        (
            Uses("numba.np.arrayobj:load_item", ("context", "builder", "arrayty", "ptr")),
            Uses("numba.np.arrayobj:store_item", ("context", "builder", "arrayty", "val", "ptr")),
            Uses("numba.core.datamodel.models:StructModel.get_field_position", ("self", "field")),
        ),
    ),
    Patch(
        "alias_scopes",
        "LLVM is told which arrays share no memory: vector instructions without run-time overlap tests",
        (
            Uses("numba.core.base:BaseContext.unpack_value", ("self", "builder", "ty", "ptr", "align")),
            Uses("numba.core.base:BaseContext.pack_value", ("self", "builder", "ty", "value", "ptr", "align")),
        ),
    ),
    Patch(
        "fewer_passes",
        "passes that find nothing in generated text are left out",
        (
            Uses("numba.core.typed_passes:NopythonRewrites"),
            Uses("numba.core.typed_passes:PreLowerStripPhis"),
            Uses("numba.core.untyped_passes:InlineClosureLikes"),
            Uses("numba.core.untyped_passes:ReconstructSSA"),
        ),
    ),
    Patch(
        "liveness",
        "live names as bit sets",
        (Uses("numba.core.analysis:compute_live_map", ("cfg", "blocks", "var_use_map", "var_def_map")),),
        _live_map_agrees,
    ),
    Patch(
        "call_resolution",
        "the signature of a call of known argument types is found once, and so are numba's registries",
        (
            Uses("numba.core.types.functions:BaseFunction.get_call_type", ("self", "context", "args", "kws")),
            Uses("numba.core.types.functions:BaseFunction.get_impl_key", ("self", "sig")),
            Uses("numba.core.targetconfig:ConfigStack.top_or_none", ()),
            Uses(
                "numba.core.typing.templates:_TemplateTargetHelperMixin._get_target_registry",
                ("self", "reason"),
            ),
            Uses("numba.core.registry:cpu_target.target_context._registries"),
            Uses("numba.core.typing.templates:builtin_registry"),
        ),
    ),
    Patch(
        "callees",
        "functions that only compiled code calls are optimized as parts of their callers, and have no entry points",
        (
            Uses("numba.core.typed_passes:NativeLowering.run_pass", ("self", "state")),
            Uses("numba.core.cpu:CPUContext.get_executable", ("self", "library", "fndesc", "env")),
            Uses("numba.core.codegen:JITCodeLibrary._optimize_final_module", ("self",)),
            Uses("numba.core.codegen:JITCodeLibrary._finalize_final_module", ("self",)),
            Uses("numba.core.codegen:JITCodeLibrary._finalize_dynamic_globals", ("self",)),
            Uses("numba.core.codegen:JITCodeLibrary._verify_declare_only_symbols", ("self",)),
            Uses("numba.core.codegen:JITCodeLibrary.get_pointer_to_function", ("self", "name")),
        ),
    ),
    Patch(
        "lazy_blas",
        "scipy.linalg is loaded when a program calls BLAS",
        (Uses("numba.np.linalg:ensure_blas", ()),),
    ),
    Patch(
        "code_memory",
        "the intermediate representation of programs that are dropped is freed",
        (
            Uses("llvmlite.binding.newpassmanagers:NewPassManager._dispose"),
            Uses("numba.core.codegen:JITCPUCodegen"),
        ),
    ),
    Patch(
        "machine_code",
        "machine code is stored on disk for the next process",
        (
            Uses("numba.core.codegen:CPUCodegen.unserialize_library", ("self", "serialized")),
            Uses("numba.core.caching:NullCache"),
        ),
    ),
)
"""All patches."""


@functools.cache
def is_enabled(name: str) -> bool:
    """Whether a patch is applied.

    Parameters
    ----------
    name : str
        One of `PATCHES`.
    """
    (patch,) = [patch for patch in PATCHES if patch.name == name]
    given = os.environ.get(SWITCH, "")
    if given == "1" or name in given.split(","):
        return False
    if patch.fits():
        return True
    warn_of(f"'{name}' is off ({patch.purpose})")
    return False


def is_plain() -> bool:
    """Whether all patches are switched off."""
    return os.environ.get(SWITCH) == "1"


def warn_of(what: str) -> None:
    """Warn that numba differs from the versions that tapegen was written for."""
    warnings.warn(
        f"numba {numba.__version__} with llvmlite {llvmlite.__version__} differs from the versions that this "
        f"tapegen knows: {what}. Results are the same, and take longer.",
        PerformanceWarning,
        stacklevel=3,
    )


def disabled() -> tuple[str, ...]:
    """The patches that are not applied, for keys of compiled code."""
    return tuple(patch.name for patch in PATCHES if not is_enabled(patch.name))
