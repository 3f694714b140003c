"""The program form that every pass reads and writes: small, flat, typed, in structured SSA.

* `types` - element types and ranks of values
* `nodes` - expressions, statements and functions
* `intrinsics` - marker callables for what Python writes as syntax
* `progress_bars` - progress bars of loops
* `names` - fresh names, and the spelling of cotangents, tangents and tapes
* `builders` - smart constructors, with local algebraic simplification
* `traversal` - visitors and rewriters: reads, writes, free variables, substitution
* `dead_code` - dead code elimination: what no live statement needs is removed
* `disjoint_sets` - union-find, for alias sets
* `affine` - affine forms of integer expressions, or of other unknowns
* `printer` - IR dump for debugging
* `verifier` - the invariants below as a check
* `passes` - pass pipelines as data, the switch of single passes, and the interpreter's limits while they run
* `fingerprint` - structural hash of a program, the content key of stored derivatives
* `vector_math` - branch-free elementary functions that LLVM vectorizes
* `protocols` - how lower layers recognize objects of higher layers

Invariants of a lowered program:

1. ``Function.params`` are flat: one Var for each array or scalar leaf of the arguments.  The body ends in the only
   ``Return``, whose values are flat too.  Structures (pytrees) exist only in the frontend's abstract values.
2. Every name has one type.  Names are a pure function of the program.  User names are kept; a second definition of
   ``x`` in the same block is ``x_1``; intermediate results are ``t``, ``t_1``, ...
3. Structured SSA.  A name with one ``Assign`` is a value.  A name with several is a *phi*, and these are its only
   definitions: (a) a loop-carried variable: once before the loop, and at most once on each path through the body, at
   the end of that path, so that every other read in the body sees the value at the start of the iteration; (b) a
   joined variable: once at the end of each branch of one ``If`` that falls through.  Parallel definitions (a swap)
   are one ``Assign`` with several targets and a ``Tuple`` value.
4. Escapes are tails.  ``Break`` and ``Continue`` stand only at the end of a block; what followed an ``If`` with an
   escaping branch has been moved into its other branch.  A return inside a loop is: result assigned, flag set,
   ``Break``, and an ``If`` on the flag after the loop.
5. Atoms.  The operands of a ``Call`` with a floating result are atoms (``Var`` or ``Const``), or tuples of atoms.
   Integer and boolean expressions stay whole, with Python's short-circuit evaluation; each is pure.  A ``Load`` with
   a floating result is always the value of its own ``Assign``.
6. Arrays are memory locations.  A Python alias ``b = a`` makes no statement: both names are the same ``Var``.  An
   array ``Var`` is a location (a parameter, an allocation, any fresh result), a view (of a basic-index ``Load`` or a
   function that returns a view), or a phi of arrays.  Rebinding moves a reference; contents do not change.  In-place
   operations on whole arrays are ``Store`` statements with an empty index.  The value of a ``Store`` has been
   computed before the store.
7. An operator on Python scalars follows Python's errors, on NumPy scalars and arrays NumPy's; ``Scalar.python`` says
   which.
8. The ``origin`` of a statement is the user's whole statement (for ``If``, ``For`` and ``While`` the header line).
9. Run-time lists (``ListOf``) are memory locations with the intrinsics ``new_list``, ``append``, ``pop``,
   ``set_item``, ``item``.
10. A recursive function is a ``Routine``: a ``Call`` of it is pure.  It reads arrays and returns new ones.

Nodes cache their free variables, reads and callees, so that a pass asks about each name without walking the program.
"""
