"""What is known of the variables of a program while it is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import TEMPORARY
from tapegen.ir.nodes import Call, Expr, Load, Slice, Tuple, Var
from tapegen.ir.types import Array, Type


def age(var: Var) -> int:
    """The creation age of a variable: a younger one has a higher age; operands of rules are older than all others."""
    return int(var.name.partition("#")[2] or 0)


@dataclass(eq=False, slots=True)
class SymbolTable:
    """The variables of a program, and what is known of them.

    Attributes
    ----------
    definitions : dict
        The expressions that integers and arrays were assigned.
    depends : dict
        Sources of integers and shapes without a definition.
    entries : dict
        What the arrays that a loop carries hold before it.
    substitution : dict
        Expressions that stand for a variable.
    shapes : dict
        Shapes that are known.
    samples, sample_shapes : dict
        Integer arguments, and the shapes of array arguments, in the call at hand.
    not_negative : set
        Integer arguments that the program requires to be nonnegative.
    roots : dict
        The allocations that an array may alias; None when they are not known.
    flat : set
        Results of `.flat`: a store writes into the array, a slice is a copy.
    kinds : dict
        Types of a variable on several paths, or of the items of a list.
    narrower : dict
        Arrays that hold integers of this dtype on some paths.
    short : set
        Python floats that are constants on all paths, which a float32 holds exactly: `total = 0.0` before nested loops
        that add to it.
    viewed : frozenset
        Scalars that may be a zero-dimensional array with a view.
    titles : dict
        The user's names of values that were computed as temporaries.
    """

    definitions: dict[Var, Expr] = field(default_factory=dict)
    depends: dict[Var, tuple[Expr, ...]] = field(default_factory=dict)
    entries: dict[Var, Expr] = field(default_factory=dict)
    substitution: dict[Var, Expr] = field(default_factory=dict)
    shapes: dict[Var, tuple[int, ...]] = field(default_factory=dict)
    samples: dict[Var, int] = field(default_factory=dict)
    sample_shapes: dict[Var, tuple[int, ...]] = field(default_factory=dict)
    not_negative: set[Var] = field(default_factory=set)
    roots: dict[Var, frozenset[Var] | None] = field(default_factory=dict)
    flat: set[Var] = field(default_factory=set)
    kinds: dict[Var, frozenset[Type]] = field(default_factory=dict)
    narrower: dict[Var, str] = field(default_factory=dict)
    short: set[Var] = field(default_factory=set)
    viewed: frozenset[Var] = frozenset()
    titles: dict[Var, str] = field(default_factory=dict)

    def entitle(self, var: Var, name: str) -> None:
        """Name a temporary after the user's variable that holds it."""
        if self.titles.get(var, var.name.partition("#")[0]) == TEMPORARY:
            self.titles[var] = name

    def roots_of(self, var: Var) -> frozenset[Var] | None:
        """The allocations that an array may alias; None when they are not known."""
        return self.roots.get(var, frozenset({var}))

    def may_overlap(self, a: Var, b: Var) -> bool:
        left, right = self.roots_of(a), self.roots_of(b)
        if left is None and right is None:
            return True
        if left is None or right is None:
            # a phi holds nothing that is younger than itself
            merge, roots = (a, right) if left is None else (b, left)
            return any(age(root) < age(merge) for root in roots or ())
        return not left.isdisjoint(right)

    def int_sources(self, expr: Expr) -> set[Var]:
        """The Vars that an integer expression depends on, through definitions of integer variables."""
        found: set[Var] = set()
        work = [expr]
        while work:
            item = self.resolve(work.pop())
            if isinstance(item, Call) and item.func is intrinsics.dim:
                item = self._makes_shape(item)
            for var in traversal.free_vars(item):
                if var in found:
                    continue
                found.add(var)
                if var in self.definitions:
                    work.append(self.definitions[var])
                elif var in self.depends:
                    work += self.depends[var]
                elif var in self.substitution:
                    work.append(self.substitution[var])
        return found

    def _makes_shape(self, extent: Call) -> Expr:
        """The sources of the extent of an array: for an item, not the index that selects it."""

        def of(part: Expr) -> Expr:
            return self._makes_shape(replace(extent, args=(part,))) if isinstance(part.type, Array) else part

        array = self.resolve(extent.args[0])
        made = self.definitions.get(array) if isinstance(array, Var) else None
        if isinstance(array, Var) and array in self.depends:
            return Tuple(tuple(map(of, self.depends[array])))
        if isinstance(made, Load):
            slices = [key for key in made.index if isinstance(key, Slice)]
            bounds = [bound for key in slices for bound in (key.lo, key.hi, key.step) if bound is not None]
            arrays = [key for key in made.index if not isinstance(key, Slice) and isinstance(key.type, Array)]
            return Tuple((of(made.array), *map(of, arrays), *bounds))
        return Tuple(tuple(map(of, made.args))) if isinstance(made, Call) else extent

    def resolve(self, expr: Expr) -> Expr:
        """A Var with its substitution applied."""
        while isinstance(expr, Var) and expr in self.substitution:
            expr = self.substitution[expr]
        return expr
