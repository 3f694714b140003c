"""The state of a loop: what a second run of it needs, and why some loops cannot run twice."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from tapegen.analysis.memory_access import depends_on_layout, viewed
from tapegen.errors import TapegenError
from tapegen.ir import intrinsics, traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Effect, For, Function, Stmt, Store, Var, While
from tapegen.ir.types import Array, ListOf, RandomGenerator
from tapegen.transform.analyses import Facts
from tapegen.transform.autodiff.reverse import Sweeps
from tapegen.transform.simplify.cleanup import reads_of


class Refused(TapegenError):
    """A loop that cannot be checkpointed, and why.

    Attributes
    ----------
    position : int
        Its position among the loops of the primal.
    """

    position = -1

    def __init__(self, why: str) -> None:
        super().__init__(why, "Let it record.")


@dataclass(slots=True)
class State:
    """What the second run of a loop needs.

    Attributes
    ----------
    values : list of Var
        Carried values, and arrays that the loop writes: the checkpoints hold them.
    copied : set of Var
        Those whose elements the loop writes: a checkpoint is a copy.
    views : list of Assign
        Definitions before the loop of views of these arrays, in order.
    kept : dict
        Values that change after the loop -> their values before it.
    rewritten : set of Var
        Those of these arrays whose elements change.
    """

    values: list[Var]
    copied: set[Var]
    views: list[Assign] = field(default_factory=list)
    kept: dict[Var, Var] = field(default_factory=dict)
    rewritten: set[Var] = field(default_factory=set)


class StateFinder:
    """Finds what the second run of a loop needs, or refuses."""

    def __init__(self, loop: For | While, program: Function, sweeps: Sweeps, facts: Facts, names: NameSupply) -> None:
        self.loop, self.program, self.sweeps, self.facts, self.names = loop, program, sweeps, facts, names
        self.effects, self.scopes = facts.effects, facts.scopes
        self.inside = set(traversal.statements((loop,)))
        self.written = frozenset().union(*(self.effects.writes.get(stmt, frozenset()) for stmt in self.inside))

    def find(self, plain: Block, backward: Block) -> State:
        self._refuse_what_cannot_run_again(plain)
        inputs = sorted(reads_of(plain), key=lambda var: var.name)
        assigned = traversal.assigned_in(*plain)
        views: dict[Var, Assign] = {}
        memory: dict[Var, None] = {}
        state = State([], set())
        generators = [var for var in inputs if isinstance(var.type, RandomGenerator)]
        if len(generators) > 1:
            raise Refused("it draws from several generators, which may be one and the same")
        state.values += generators
        for var in inputs:
            if var in generators:
                continue
            writes = self._is_place(var) and bool(self.effects.roots(var) & self.written)
            if var in assigned:
                state.values.append(var)
                if writes:
                    memory.setdefault(var)
            elif writes:
                memory.setdefault(self._base(var, assigned, views))
        state.views = sorted(views.values(), key=self._order().__getitem__)
        self._refuse_aliases(memory)
        state.values += [var for var in memory if var not in assigned]
        state.copied = set(memory)
        self._refuse_layouts(state, plain)
        indexed = {var for stmt in state.views for var in traversal.free_vars(stmt.value)} - set(views)
        later = self._later()
        changed = traversal.assigned_in(*later, *backward)
        rewritten = frozenset().union(*(self.effects.writes.get(stmt, frozenset()) for stmt in later))
        for var in sorted({*inputs, *indexed} - assigned - set(state.values) - set(views), key=lambda var: var.name):
            contents = self._is_place(var) and bool(self.effects.roots(var) & rewritten)
            if contents and isinstance(var.type, ListOf):
                raise Refused(f"the list '{var.name}' changes after the loop")
            if contents:
                state.rewritten.add(var)
            if contents or var in changed:
                state.kept[var] = Var(self.names.fresh(var.name), var.type)
        return state

    def _refuse_what_cannot_run_again(self, plain: Block) -> None:
        assigned = traversal.assigned_in(*plain)
        if not self.sweeps.made.isdisjoint(assigned):
            raise Refused("which cotangents belong to its arrays depends on the run")
        for stmt in traversal.statements(plain):
            target = stmt.array if isinstance(stmt, Store) else None
            if target in self.sweeps.references:
                raise Refused("which cotangents belong to its arrays depends on the run")
            if isinstance(stmt, Assign) and isinstance(stmt.value, Call) and stmt.value.func in _REPLAYED:
                raise Refused("it takes derivatives of a function that draws random numbers")
            if isinstance(stmt, Assign) and isinstance(stmt.value.type, RandomGenerator):
                raise Refused("it makes a generator of random numbers")
            if isinstance(stmt, Effect) and stmt.call.func in (intrinsics.append, intrinsics.set_item):
                raise Refused(f"the list '{stmt.call.args[0].name}' changes in it")  # type: ignore[union-attr]
            if isinstance(stmt, Assign) and isinstance(stmt.value, Call):
                roots = frozenset().union(*map(self.effects.roots, filter(self._is_place, stmt.targets)))
                if stmt.value.func is intrinsics.pop:
                    raise Refused("a list changes in it")
                if stmt.value.func is intrinsics.item and roots & self.written:
                    raise Refused("it writes into arrays of a list")

    def _is_place(self, var: Var) -> bool:
        return isinstance(var.type, (Array, ListOf))

    def _base(self, var: Var, assigned: Set[Var], views: dict[Var, Assign]) -> Var:
        """The array of which a variable is a view that was made before the loop, or the variable itself."""
        assigns = self.scopes.assigns.get(var, [])
        source = viewed(assigns[0].value) if len(assigns) == 1 else None
        if source is None:
            return var
        base = self._base(source, assigned, views) if source not in assigned else source
        if source in assigned or self.scopes.is_merge(source):
            raise Refused(f"'{var.name}' is a view of an array that is another one after an iteration")
        views[var] = assigns[0]
        return base

    def _order(self) -> dict[Stmt, int]:
        return {stmt: k for k, stmt in enumerate(traversal.statements(self.program.body))}

    def _later(self) -> Block:
        """The statements that run after the loop has begun, but for its own; those around it run again."""
        order = self._order()
        around = [scope.header for scope in self.scopes.at[self.loop].chain if scope.is_loop]
        first = min(order[stmt] for stmt in (self.loop, *around) if stmt is not None)
        return tuple(stmt for stmt, k in order.items() if k >= first and stmt not in self.inside)

    def _refuse_aliases(self, memory: Mapping[Var, None]) -> None:
        """Each array that the loop writes must have one name at the start of an iteration."""
        outer = {
            root
            for root in self.written
            if (made := self.effects.allocations.get(root)) is None or made not in self.inside
        }
        for root in sorted(outer):
            names = [var for var in memory if root in self.effects.roots(var)]
            if any(isinstance(var.type, ListOf) for var in names):
                raise Refused(f"the list '{names[0].name}' changes in it")
            if not names:
                raise Refused(f"it writes into '{root}' through another object")
            if len(names) > 1 and not self._are_permuted(names):
                listed = " and ".join(f"'{var.name}'" for var in names)
                raise Refused(f"{listed} may be the same array")
        for var in memory:
            if isinstance(var.type, ListOf):
                raise Refused(f"the list '{var.name}' changes in it")

    @staticmethod
    def _refuse_layouts(state: State, plain: Block) -> None:
        """A copy in C order has other views than an array of columns."""
        called = frozenset().union(*map(traversal.calls, (*plain, *state.views)))
        for var in sorted(state.copied, key=lambda var: var.name):
            in_rows = isinstance(var.type, Array) and (var.type.rank < 2 or var.type.layout == "C")
            if not in_rows and any(map(depends_on_layout, called)):
                raise Refused(f"the layout of '{var.name}' decides what is a view of it")

    def _are_permuted(self, names: list[Var]) -> bool:
        """Whether variables hold different arrays before the loop, and each iteration permutes them."""
        group = set(names)
        firsts: list[frozenset[str]] = []
        for var in names:
            for assign in self.scopes.assigns.get(var, ()):
                pairs = dict(traversal.pairs(assign))
                if set(pairs) == group == set(pairs.values()):
                    continue
                if assign not in self.inside:
                    value = pairs.get(var)
                    roots = self.effects.roots(value) if isinstance(value, Var) else None
                    if roots is None:
                        root = [name for name, made in self.effects.allocations.items() if made is assign]
                        roots = frozenset(root)
                    firsts.append(roots)
                    continue
                return False
            if var in self.program.params:
                firsts.append(frozenset({var.name}))
        if len(firsts) != len(names) or any(len(roots) != 1 for roots in firsts):
            return False
        return len(frozenset().union(*firsts)) == len(names)


_REPLAYED = (intrinsics.copy_generator, intrinsics.replay_draws)
"""What puts the state of a generator back."""
