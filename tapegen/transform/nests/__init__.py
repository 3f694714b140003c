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
from tapegen.rules.libraries import matrices, numbers
from tapegen.transform.nests import (  # noqa: F401  (they fill the tables)
    arrange,
    calls,
    complex_numbers,
    draws,
    factorised,
    formulas,
    fourier,
    joins,
    products,
    reductions,
    tables,
)
from tapegen.transform.nests.abreast import abreast
from tapegen.transform.nests.ahead import ahead
from tapegen.transform.nests.calling import calling
from tapegen.transform.nests.checks import together
from tapegen.transform.nests.columns import columns
from tapegen.transform.nests.dots import in_one_pass
from tapegen.transform.nests.driver import Nests
from tapegen.transform.nests.filled import filled
from tapegen.transform.nests.fuse import fuse
from tapegen.transform.nests.held import held
from tapegen.transform.nests.lifetimes import apart
from tapegen.transform.nests.overflow import marked
from tapegen.transform.nests.quotients import divisors_chosen
from tapegen.transform.nests.remainders import compared
from tapegen.transform.nests.rows import rows
from tapegen.transform.nests.scalars import COMPLEX, OPERATIONS, from_library
from tapegen.transform.nests.sizes import named
from tapegen.transform.nests.strips import in_strips
from tapegen.transform.nests.unread import without_unread
from tapegen.transform.nests.writer import NoCompiledForm
from tapegen.transform.nests.written_out import written_out

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
        tables.FILL.setdefault(func, factorised.one)
        if "," in sizes.partition("->")[2]:
            tables.SEVERAL.setdefault(func, factorised.several)
    nests = without_unread(Nests(marked(written_out(function), wide=wide), boundscheck).run())
    fused = without_unread(fuse(apart(nests)))  # sizes of what was between the loops
    near = rows(held(columns(abreast(filled(fused)))))
    return calling(named(ahead(in_one_pass(in_strips(together(divisors_chosen(compared(near))))))))
