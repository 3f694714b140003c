"""The pipeline of loop passes: from array statements with expression trees to the loops that numba compiles.

`PASSES` declares the order.  Legalization and templates first express everything in terms of what loops and numba
support; `scalarize` turns each array statement into one loop nest, without temporary arrays.  Results and errors are
those of NumPy and Python.  All later passes are optimizations of loops.

* `analysis` - affine forms, symbolic bounds, dependences, iteration orders
* `legalize` - scalars: precision as NumPy has it, errors as Python raises them; `builder` emits statements
* `library` - functions that compiled code cannot call, as templates and as calls that numba supports
* `scalarize` - array statements as loop nests
* `locality` - fewer loops and arrays, and memory that is in cache when a loop accesses it again
* `stencils` - adjoints of stencils: gathers instead of scattered additions
* `parallel` - loops that several threads run
* `vectorize` - innermost loops that become vector instructions; less for numba to compile
"""

from __future__ import annotations

from collections.abc import Callable

from tapegen.ir import vector_math
from tapegen.ir.nodes import Function
from tapegen.ir.passes import Pass, run_passes
from tapegen.loops.legalize import complex_ops, registry  # noqa: F401  (they fill the tables)
from tapegen.loops.legalize.overflow_checks import insert_overflow_checks
from tapegen.loops.legalize.scalar_ops import COMPLEX, OPERATIONS, from_library
from tapegen.loops.legalize.short_axes import ShortAxes, specialize_short_axes
from tapegen.loops.library import fft, lapack, native_calls, random  # noqa: F401  (they fill the tables)
from tapegen.loops.library.bailout import insert_bailouts
from tapegen.loops.library.inline import inline_templates
from tapegen.loops.library.routine_calls import lower_routine_calls
from tapegen.loops.locality.array_contraction import contract_arrays
from tapegen.loops.locality.check_hoisting import hoist_checks
from tapegen.loops.locality.column_packing import pack_columns
from tapegen.loops.locality.dead_stores import eliminate_dead_stores
from tapegen.loops.locality.fusion import fuse_loops
from tapegen.loops.locality.imperfect_interchange import interchange_imperfect_nests
from tapegen.loops.locality.interchange import interchange_loops
from tapegen.loops.locality.live_range_splitting import split_live_ranges
from tapegen.loops.locality.outer_fusion import fuse_outer_loops
from tapegen.loops.locality.scalar_replacement import replace_scalars
from tapegen.loops.locality.store_forwarding import forward_stores
from tapegen.loops.locality.zero_init_sinking import sink_zero_init
from tapegen.loops.parallel.outlining import Verdict, chunks_of, outline_loops
from tapegen.loops.scalarize import concatenation, contractions, index_functions, permutations, reductions  # noqa: F401  (they fill the tables)
from tapegen.loops.scalarize.driver import scalarize
from tapegen.loops.stencils.scatter_separation import separate_scatters
from tapegen.loops.stencils.scatter_to_gather import convert_scatter_to_gather
from tapegen.loops.vectorize.check_coalescing import coalesce_checks
from tapegen.loops.vectorize.dot_fusion import fuse_dot_products
from tapegen.loops.vectorize.excluded_iterations import split_excluded_iterations
from tapegen.loops.vectorize.height_reduction import reduce_recurrence_height
from tapegen.loops.vectorize.if_conversion import if_convert_division
from tapegen.loops.vectorize.index_set_splitting import split_index_sets
from tapegen.loops.vectorize.loop_distribution import distribute_loops
from tapegen.loops.vectorize.loop_reversal import reverse_loops
from tapegen.loops.vectorize.modulo_reduction import reduce_modulo
from tapegen.loops.vectorize.short_loops import unroll_short_loops
from tapegen.loops.vectorize.size_cse import share_sizes
from tapegen.loops.vectorize.strip_mining import LONG, strip_mine_reductions
from tapegen.loops.vectorize.unroll_and_jam import unroll_and_jam
from tapegen.loops.vectorize.vector_calls import VECTORS, vectorize_math
from tapegen.rules.external_functions import matrices, numbers, vector_variants

__all__ = ["PASSES", "lower_to_loops"]

FINISHING: tuple[Pass[Function], ...] = (
    Pass("replace_scalars", replace_scalars, "elements that every iteration accesses, in registers"),
    Pass("forward_stores", forward_stores, "elements that an iteration has stored, in registers"),
    Pass("pack_columns", pack_columns, "columns that inner loops run along, in contiguous memory"),
    Pass("reduce_modulo", reduce_modulo, "comparisons instead of divisions"),
    Pass("if_convert_division", if_convert_division, "selected divisors instead of branches"),
    Pass("coalesce_checks", coalesce_checks, "fewer blocks of code to compile"),
    Pass("strip_mine_reductions", strip_mine_reductions, "terms of sums in blocks, for vector instructions"),
    Pass("vectorize_math", vectorize_math, "elementary functions of several iterations at once"),
    Pass("fuse_dot_products", fuse_dot_products, "vectors that several inner products read, from memory once"),
    Pass("unroll_and_jam", unroll_and_jam, "sums of several rows in one pass, each in its order"),
    Pass("share_sizes", share_sizes, "sizes that are mentioned several times have names: less to compile"),
    Pass("lower_routine_calls", lower_routine_calls, "calls of routines count their depth and pass C order", False),
)
"""The last passes, which the functions of parallel loops go through as well."""

PASSES: tuple[Pass[Function], ...] = (
    Pass("insert_bailouts", insert_bailouts, "messages that need Python: it runs instead", False, ("bailouts",)),
    Pass("inline_templates", inline_templates, "functions that compiled code cannot call, as their templates", False),
    Pass("insert_overflow_checks", insert_overflow_checks, "Python integers must not wrap around", False, ("wide",)),
    Pass("split_excluded_iterations", split_excluded_iterations, "pair loops that take vector instructions"),
    Pass("scalarize", scalarize, "array statements as loop nests", False, ("boundscheck", "messages", "speculative")),
    Pass("eliminate_dead_stores", eliminate_dead_stores, "what nothing reads is not computed"),
    Pass("split_live_ranges", split_live_ranges, "a name for each life of an array, which later passes tell apart"),
    Pass("unroll_short_loops", unroll_short_loops, "elements of small arrays as scalars"),
    Pass("interchange_loops", interchange_loops, "inner loops along adjacent elements"),
    Pass("reduce_recurrence_height", reduce_recurrence_height, "shorter chains of operations between iterations"),
    Pass("separate_scatters", separate_scatters, "additions to neighbours in nests of their own, to be gathered"),
    Pass("reverse_loops", reverse_loops, "loops that count up take vector instructions and fuse"),
    Pass("distribute_loops", distribute_loops, "additions that no iteration waits for, in loops of their own"),
    Pass("hoist_checks", hoist_checks, "loop nests next to each other, so that they can be fused"),
    Pass("convert_scatter_to_gather", convert_scatter_to_gather, "cotangents of stencils are stored once"),
    Pass("fuse_outer_loops", fuse_outer_loops, "rows that several loops pass through, while they are in cache"),
    Pass("contract_arrays", contract_arrays, "arrays of fewer axes where each iteration has a slice of its own"),
    Pass("fuse_loops", fuse_loops, "fewer passes through memory; arrays that one nest makes and reads become scalars"),
    Pass("eliminate_dead_stores", eliminate_dead_stores, "sizes of arrays that fusion has made scalars"),
    Pass("sink_zero_init", sink_zero_init, "zeros are written where they are first added to"),
    Pass("contract_arrays", contract_arrays, "arrays whose zeros are written in the iterations that access them"),
    Pass("interchange_imperfect_nests", interchange_imperfect_nests, "inner loops along rows instead of columns"),
    Pass("split_index_sets", split_index_sets, "loops without tests of their counters, between their first and last"),
    Pass("outline_loops", outline_loops, "loops that threads run, as functions of a chunk", True, ("verdicts",)),
    *FINISHING,
    Pass("specialize_short_axes", specialize_short_axes, "loops over coordinates unroll", True, ("short_axes",)),
)
"""The passes in order.

A pass relies on its predecessors: fused loop nests are recognized before zeros are sunk, columns are packed
before elements become scalars, and no array is allocated after `strip_mine_reductions`.
"""


def lower_to_loops(
    function: Function,
    *,
    boundscheck: bool = True,
    wide: bool = False,
    bailouts: bool = False,
    messages: bool = False,
    speculative: bool = False,
    short_axes: ShortAxes = (),
    verdicts: list[Verdict] | None = None,
    watch: Callable[[str, Function], None] | None = None,
) -> Function:
    """The same program without array expressions.

    Parameters
    ----------
    function : Function
        A finished function: sweeps joined, tapes laid out.  An axis of a parameter that its type does not mark as unit
        has another size than 1 (a size of 1 makes another specialization), and parameters do not overlap each other
        where one of them is written.
    boundscheck : bool
        Whether indices that are not proved to be within bounds are checked.
    wide : bool
        Whether integer arguments may have more than `integer_overflow.ARGUMENT_BITS` bits.
    bailouts : bool
        Whether Python runs in place of compiled code that bails out.
    messages : bool
        Whether there is a Python that writes messages for compiled code.
    speculative : bool
        Whether sizes that are rarely different may be assumed to be equal, because other code runs where the program
        raises `broadcasting.BROADCASTS`.
    short_axes : sequence
        Sizes of axes of parameters that may be assumed, because other code runs where the program raises
        `short_axes.OTHER_SIZE`.
    verdicts : list, optional
        Given for a program whose loops may run in parallel, it is filled with what became of them.
    watch : callable, optional
        Called with the program after each pass.

    Returns
    -------
    Function
        Loops, operations on scalars, and calls that numba supports.

    Raises
    ------
    NoCompiledForm
        If a call is neither lowered nor supported by numba.
    """
    _enter_external_functions()
    options = {
        "boundscheck": boundscheck,
        "wide": wide,
        "bailouts": bailouts,
        "messages": messages,
        "speculative": speculative,
        "short_axes": short_axes,
    }
    found = run_passes(PASSES, function, watch, verdicts=verdicts, **options)
    for routine, chunk in chunks_of(found).items():
        routine.function = run_passes(FINISHING, chunk)
    return found


def _enter_external_functions() -> None:
    """Register functions that users have declared since in the tables."""
    for func, dtype in numbers().items():
        OPERATIONS.setdefault(func, from_library)
        if dtype == "complex128":
            COMPLEX.setdefault(func, from_library)
    for func, name in vector_variants().items():
        VECTORS.setdefault(func, {"float64": getattr(vector_math, name)})
        LONG.add(func)
    for func, sizes in matrices().items():
        registry.FILL.setdefault(func, lapack.one)
        if "," in sizes.partition("->")[2]:
            registry.SEVERAL.setdefault(func, lapack.several)
