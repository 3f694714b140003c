"""What the generator knows while it writes: variables with concrete shapes, what is assigned, what may be spent."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.random_programs.profiles import Profile

T = TypeVar("T")
Shape = tuple[int, ...]
MAX_SIZE = 24
MAX_TRIPS = 60  # product of the trip counts around one statement


@dataclass(frozen=True)
class Var:
    """A variable in scope.

    `shape` is None for a scalar.  `low` and `high` bound an integer; a `free` integer has no bounds and may be
    reassigned, the others keep their value until the block that made them ends.  `value` is what an argument is.
    """

    name: str
    kind: str  # "float", "int" or "bool"
    shape: Shape | None = None
    writable: bool = True
    low: int = 0
    high: int = 0
    free: bool = False
    value: float | None = None  # what it is in the one call that is made


@dataclass(frozen=True)
class Helper:
    """A function that programs may call: parameters and result as variables without meaning outside."""

    name: str
    params: tuple[Var, ...]
    results: tuple[Var, ...]
    mutates: frozenset[int] = frozenset()
    keywords: bool = False  # the last parameter has a default and is given by keyword
    takes: str = ""  # the one-argument function it expects, if any


@dataclass
class Budget:
    """What may still be written."""

    statements: int
    trips: int = 1  # of the loops around the place
    depth: int = 0  # blocks around the place


@dataclass
class Scope:
    """The state of one function being written."""

    rng: random.Random
    profile: Profile
    budget: Budget
    names: Callable[[str], str]
    helpers: list[Helper] = field(default_factory=list)
    env: dict[str, Var] = field(default_factory=dict)
    dims: tuple[int, ...] = (3,)
    loops: list[str] = field(default_factory=list)  # "for"/"while" around the place
    frozen: frozenset[str] = frozenset()  # names that the block must not rebind
    returns: Callable[[], str] | None = None
    fault: str = ""  # what was planted, once it was

    # ---- choices ----

    @classmethod
    @functools.cache
    def table(cls, prefix: str) -> dict[str, Callable[..., Any]]:
        """The productions whose names start so."""
        return {name: getattr(cls, name) for name in sorted(dir(cls)) if name.startswith(prefix + "_")}

    @classmethod
    @functools.cache
    def few_of(cls, *names: str) -> dict[str, Callable[..., Any]]:
        """Some productions by name."""
        return {name: getattr(cls, name) for name in names}

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choice(self, items: Iterable[T]) -> T:
        pool = list(items)
        return pool[self.rng.randrange(len(pool))]

    def weighted(self, table: dict[str, Callable[..., Any]], *args: Any) -> Any:
        """The result of one production, drawn by weight; productions that cannot apply are drawn again."""
        names = [name for name in table if self.profile.weight(name) > 0]
        while names:
            name = self.rng.choices(names, [self.profile.weight(n) for n in names])[0]
            result = table[name](self, *args)
            if result is not None:
                return result
            names.remove(name)
        return None

    # ---- variables ----

    def variables(self, kind: str, test: Callable[[Var], bool] = lambda v: True) -> list[Var]:
        return [v for v in self.env.values() if v.kind == kind and test(v)]

    def scalars(self, kind: str = "float") -> list[Var]:
        return self.variables(kind, lambda v: v.shape is None)

    def arrays(self, test: Callable[[Var], bool] = lambda v: True) -> list[Var]:
        return self.variables("float", lambda v: v.shape is not None and test(v))

    def define(self, var: Var) -> Var:
        self.env[var.name] = var
        return var

    def fresh(self, stem: str) -> str:
        return self.names(stem)

    def may_rebind(self, name: str) -> bool:
        return name not in self.frozen

    def target(self, kind: str, shape: Shape | None, stem: str) -> str:
        """The name of an assignment: an old variable of the same type or a new one."""
        old = [
            v
            for v in self.variables(kind, lambda v: v.shape == shape)
            if self.may_rebind(v.name) and (kind != "int" or v.free)
        ]
        if old and self.chance(self.profile.weight("rebind")):
            return self.choice(old).name
        return self.fresh(stem)


def size(shape: Shape) -> int:
    """The number of entries."""
    total = 1
    for n in shape:
        total *= n
    return total


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two operands; None if there is none."""
    out: list[int] = []
    for k in range(1, max(len(a), len(b)) + 1):
        m = a[-k] if k <= len(a) else 1
        n = b[-k] if k <= len(b) else 1
        if m != n and 1 not in (m, n):
            return None
        out.append(n if m == 1 else m)
    return tuple(reversed(out))


def number(rng: random.Random) -> str:
    """A constant that is exact in binary, so that folding constants changes no bit."""
    return rng.choice(
        ("0.5", "2.0", "1.5", "0.25", "3.0", "-1.0", "1.0", "0.75", "-0.5", "-2.0", "0.125", "2", "3", "-1")
    )
