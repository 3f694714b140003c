"""Array statements as loop nests: the text that numba compiles.

`scalarise` turns a finished function, whose statements may hold whole expression trees of arrays, into one of loops,
operations on numbers and a few calls that numba takes as they stand.  There is one nest for each statement, with no
arrays in between; what the program does, and which errors it raises, is what NumPy and Python do:

* `writer` - where the other modules write: statements, names, checks; `driver` walks over the program
* `affine`, `bounds`, `known` - linear forms of indices, and what is known about them along a walk
* `slices`, `broadcasting` - bounds clipped and sizes compared, once before the loops
* `elements`, `arrange`, `formulas` - an expression as a rule for its elements
* `loops` - nests in the order of memory, with care for overlap (`sharing`)
* `reductions`, `products`, `joins`, `calls`, `fourier`, `factorised` - what is more than a rule for elements
* `scalars`, `domains`, `counting`, `overflow` - numbers: precision as NumPy has it, errors as Python raises them
* `written_out`, `texts`, `matrix_texts` - functions that compiled code cannot call, written out first
* `views` - names for parts of arrays
* `calling` - calls of the program's own functions
* `lifetimes` - a name for each life of an array; `fuse`, `gather`, `accesses` - fewer loops and arrays
* `filled` - zeros where they are first added to; `abreast`, `columns`, `held`, `rows` - what lies apart in memory, near
  while a loop comes back to it; `rooms` - memory for that
* `inner`, `waiting`, `deciding`, `remainders`, `quotients`, `strips`, `vectors` - innermost loops as a processor likes
  them
* `dots`, `ahead` - inner products that read the same vectors, on one trip and on the next one
* `unread`, `checks`, `sizes` - less for numba to look at
"""

from __future__ import annotations

from tapegen.ir.nodes import Function
from tapegen.loops.legalize import complex_ops, registry  # noqa: F401  (they fill the tables)
from tapegen.loops.legalize.builder import NoCompiledForm
from tapegen.loops.legalize.overflow_checks import marked
from tapegen.loops.legalize.scalar_ops import COMPLEX, OPERATIONS, from_library
from tapegen.loops.library import fft, lapack, native_calls, random  # noqa: F401  (they fill the tables)
from tapegen.loops.library.inline import written_out
from tapegen.loops.library.routine_calls import calling
from tapegen.loops.locality.column_packing import columns
from tapegen.loops.locality.dead_stores import without_unread
from tapegen.loops.locality.fusion import fuse
from tapegen.loops.locality.interchange import abreast
from tapegen.loops.locality.live_range_splitting import apart
from tapegen.loops.locality.pairwise_packing import rows
from tapegen.loops.locality.scalar_replacement import held
from tapegen.loops.locality.zero_init_sinking import filled
from tapegen.loops.scalarize import concatenation, contractions, index_functions, permutations, reductions  # noqa: F401  (they fill the tables)
from tapegen.loops.scalarize.driver import Nests
from tapegen.loops.vectorize.check_coalescing import together
from tapegen.loops.vectorize.dot_fusion import in_one_pass
from tapegen.loops.vectorize.if_conversion import divisors_chosen
from tapegen.loops.vectorize.modulo_reduction import compared
from tapegen.loops.vectorize.size_cse import named
from tapegen.loops.vectorize.strip_mining import in_strips
from tapegen.loops.vectorize.unroll_and_jam import ahead
from tapegen.rules.external_functions import matrices, numbers

__all__ = ["NoCompiledForm", "scalarise"]


def scalarise(function: Function, *, boundscheck: bool = True, wide: bool = False) -> Function:
    """The same program without array expressions.

    Parameters
    ----------
    function : Function
        A finished function: sweeps joined, tapes laid out.  An axis of a parameter that its type does not mark as unit
        has another size than 1 (a size of 1 makes another specialisation), and parameters do not overlap each other
        where one of them is written.
    boundscheck : bool
        Whether indices that are not proved to be within bounds are checked.
    wide : bool
        Whether integer arguments may have more than `magnitudes.ARGUMENT_BITS` bits.

    Returns
    -------
    Function
        Loops, operations on numbers, and calls that numba takes.

    Raises
    ------
    NoCompiledForm
        If a call is neither lowered nor taken by numba.
    """
    for func, dtype in numbers().items():
        OPERATIONS.setdefault(func, from_library)
        if dtype == "complex128":
            COMPLEX.setdefault(func, from_library)
    for func, sizes in matrices().items():
        registry.FILL.setdefault(func, lapack.one)
        if "," in sizes.partition("->")[2]:
            registry.SEVERAL.setdefault(func, lapack.several)
    nests = without_unread(Nests(marked(written_out(function), wide=wide), boundscheck).run())
    fused = without_unread(fuse(apart(nests)))  # sizes of what was between the loops
    near = rows(held(columns(abreast(filled(fused)))))
    return calling(named(ahead(in_one_pass(in_strips(together(divisors_chosen(compared(near))))))))
