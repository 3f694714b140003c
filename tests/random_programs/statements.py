"""Random blocks, calls and planted faults.  Every method named `stmt_*` or `loop_*` is a production."""

from __future__ import annotations

from tests.random_programs.grammar import MAX_TRIPS, Var, number
from tests.random_programs.idioms import Idioms
from tests.random_programs.simple import Lines

JUMPS = ("break", "continue", "return", "raise")


def indented(lines: Lines) -> Lines:
    return ["    " + line for line in lines]


class Statements(Idioms):
    """Writes blocks."""

    def block(self, count: int) -> tuple[Lines, bool]:
        """Up to `count` statements; and whether the block always leaves by a jump."""
        lines: Lines = []
        for _ in range(count):
            if self.budget.statements <= 0:
                break
            self.budget.statements -= 1
            lines += self.weighted(self.table("stmt")) or []
            if lines and lines[-1].split()[0] in JUMPS and not lines[-1].startswith(" "):
                return lines, True
        return lines or ["pass"], False

    # ---- blocks ----

    def branch(self, count: int) -> tuple[Lines, dict[str, Var] | None]:
        """A block from the present state; the state at its end, None if it always jumps."""
        before = dict(self.env)
        with self.inside():
            lines, jumped = self.block(count)
        after, self.env = self.env, before
        return lines, None if jumped else after

    def stmt_if(self) -> Lines | None:
        if self.deep():
            return None
        lines: Lines = []
        ends: list[dict[str, Var] | None] = []
        for k in range(self.rng.choice((1, 1, 1, 2))):
            lines.append(f"{'elif' if k else 'if'} {self.test(2)}:")
            body, end = self.branch(self.few())
            lines += indented(body)
            ends.append(end)
        if self.chance(0.55):
            body, end = self.branch(self.few())
            lines += ["else:", *indented(body)]
            ends.append(end)
        else:
            ends.append(dict(self.env))
        falling = [end for end in ends if end is not None]
        self.env = self.joined(falling) if falling else self.env
        return lines

    @staticmethod
    def joined(ends: list[dict[str, Var]]) -> dict[str, Var]:
        """What every way into a point has assigned, with one type."""
        out = {}
        for name, first in ends[0].items():
            others = [end.get(name) for end in ends]
            if any(v is None or v.kind != first.kind or v.shape != first.shape for v in others):
                continue
            known = [v for v in others if v is not None]
            writable, free = all(v.writable for v in known), any(v.free for v in known)
            low, high = min(v.low for v in known), max(v.high for v in known)
            out[name] = Var(name, first.kind, first.shape, writable, low, high, free)
        return out

    def body_of_loop(self, trips: int, kind: str, new: tuple[Var, ...], certain: bool = True) -> tuple[Lines, bool]:
        """The body of a loop over new variables; and whether each iteration runs to its end.

        What the body defines is known after the loop only when it surely runs (`certain` and `trips` > 0).
        """
        before = dict(self.env)
        for var in new:
            self.define(var)
        with self.inside(trips, kind, tuple(v.name for v in new)):
            lines, jumped = self.block(self.few())
        whole = not jumped and not any(
            line.split()[0] in ("break", "continue", "return") for line in lines if line.split()
        )
        after = self.env
        sure = certain and trips > 0
        self.env = (
            after if whole and sure and self.chance(0.4) else {name: after.get(name, v) for name, v in before.items()}
        )
        if sure and kind == "for" and self.chance(0.3):  # the loop variables keep what the last iteration gave them
            self.env |= {v.name: v for v in new}
        return lines, whole

    def stmt_for(self) -> Lines | None:
        if self.deep() or self.budget.trips >= MAX_TRIPS:
            return None
        head = self.weighted(self.table("loop"))
        if head is None:
            return None
        text, trips, new = head
        if trips * self.budget.trips > MAX_TRIPS:
            return None
        body, _ = self.body_of_loop(trips, "for", new)
        lines = [f"for {text}:", *indented(body)]
        return lines + self.after_loop(lines)

    def after_loop(self, lines: Lines) -> Lines:
        if any(line.strip() == "break" for line in lines) and self.chance(0.15):
            body, _ = self.branch(1)
            return ["else:", *indented(body)]
        return []

    def stmt_count(self) -> Lines | None:
        """A loop whose length is an integer parameter."""
        pool = [v for v in self.scalars("int") if not v.free and v.low >= 0 and 0 < v.high <= 5]
        if not pool or self.deep() or self.budget.trips * 5 > MAX_TRIPS:
            return None
        n, loop = self.choice(pool), self.fresh("i")
        text, low, high = self.choice(
            (
                (n.name, 0, max(0, n.high - 1)),
                (n.name, 0, max(0, n.high - 1)),
                (f"{n.name} - 1, -1, -1", 0, max(0, n.high - 1)),
                (f"{n.name}, 0, -1", 1, max(1, n.high)),
                (f"0, {n.name}, 2", 0, max(0, n.high - 1)),
                (f"{n.name}, -1, -2", 0, n.high),
                (f"1, {n.name} + 1", 1, max(1, n.high)),
                (f"{n.name}, 5", n.low, 4),
                (f"-{n.name}, {n.name}, 3", -n.high, max(0, n.high - 1)),
            )
        )
        body, _ = self.body_of_loop(5, "for", (Var(loop, "int", low=low, high=high),), certain=False)
        return [f"for {loop} in range({text}):", *indented(body)]

    def loop_array(self) -> tuple[str, int, tuple[Var, ...]] | None:
        pool = self.arrays(lambda v: bool(v.shape))
        if not pool:
            return None
        array, item = self.choice(pool), self.fresh("item")
        shape = array.shape or ()
        var = Var(item, "float", shape[1:] or None, array.writable)
        if self.chance(0.3):
            k = self.fresh("n")
            return f"{k}, {item} in enumerate({array.name})", shape[0], (Var(k, "int", high=max(0, shape[0] - 1)), var)
        return f"{item} in {array.name}", shape[0], (var,)

    def loop_zip(self) -> tuple[str, int, tuple[Var, ...]] | None:
        pool = self.arrays(lambda v: v.shape is not None and len(v.shape) == 1)
        if not pool:
            return None
        a, b = self.choice(pool), self.choice(pool)
        u, v = self.fresh("u"), self.fresh("v")
        return (
            f"{u}, {v} in zip({a.name}, {b.name})",
            min((a.shape or ())[0], (b.shape or ())[0]),
            (Var(u, "float"), Var(v, "float")),
        )

    def loop_constants(self) -> tuple[str, int, tuple[Var, ...]]:
        item = self.fresh("c")
        return f"{item} in ({number(self.rng)}, {number(self.rng)})", 2, (Var(item, "float"),)

    def stmt_while(self) -> Lines | None:
        trips = self.rng.choice((1, 2, 3, 4, 0))
        if self.deep() or max(1, trips) * self.budget.trips > MAX_TRIPS:
            return None
        k = self.fresh("k")
        certain = self.chance(0.4)
        first, second = f"{k} < {trips}", self.test(1)
        condition = first if certain else f"{second} and {first}" if self.chance(0.7) else f"{first} and {second}"
        # counted first, so that a `continue` cannot run for ever
        body, _ = self.body_of_loop(trips, "while", (Var(k, "int", low=1, high=max(1, trips)),), certain)
        lines = [f"while {condition}:", f"    {k} += 1", *indented(body)]
        left = self.fresh("m") if self.chance(0.3) else ""
        if left:  # counts down beside it, or only in some iterations
            step = f"    {left} -= 1" if self.chance(0.6) else f"    {left} -= {k} % 2"
            lines.insert(2, step)
        self.env.pop(k, None)
        self.define(Var(k, "int", low=0, high=trips))
        self.frozen |= {k}
        if not left:
            return [f"{k} = 0", *lines, *self.after_loop(lines)]
        x = self.target("float", None, "x")
        self.define(Var(x, "float"))
        lines.append(f"    {x} = 0.5 * {x} + 0.1 * {left} * {x}")
        return [f"{k} = 0", f"{left} = {trips}", f"{x} = {self.tame(self.scalar(1))}", *lines, *self.after_loop(lines)]

    def stmt_break(self) -> Lines | None:
        if not self.loops or self.deep():
            return None
        body, _ = self.branch(self.rng.choice((0, 0, 1, 2)))
        if body[-1].split()[0] not in JUMPS or body[-1].startswith(" "):
            body.append(self.choice(("break", "continue")))
        return [f"if {self.test(1)}:", *indented(body)]

    def stmt_early_return(self) -> Lines | None:
        if self.returns is None:
            return None
        return [f"if {self.test(1)}:", f"    {self.returns()}"]

    # ---- lists, functions ----

    def stmt_list(self) -> Lines | None:
        if self.deep():
            return None
        xs, loop, trips = self.fresh("xs"), self.fresh("i"), self.rng.randint(1, 4)
        self.define(Var(loop, "int", high=trips - 1))
        with self.inside(trips, "for", (loop,)):
            lines = [f"for {loop} in range({trips}):", f"    {xs}.append({self.tame(self.scalar())})"]
        del self.env[loop]
        items = [self.scalar(1) for _ in range(self.rng.choice((0, 0, 2)))]
        lines.insert(0, f"{xs} = [{', '.join(items)}]")
        if self.chance(0.3):
            lines.append(f"{xs}[0] = {self.scalar(1)}")
        x = self.target("float", None, "x")
        self.define(Var(x, "float"))
        use = [
            f"{x} = {xs}[-1] * {xs}[0]",
            f"{x} = sum({xs})",
            f"{x} = {xs}.pop() * len({xs})",
            f"{x} = {xs}[{self.rng.randrange(trips)}] + np.sum(np.array({xs}))",
        ]
        return [*lines, self.choice(use)]

    def stmt_comprehension(self) -> Lines:
        loop, n = self.fresh("i"), max(1, self.choice(self.dims))
        before = dict(self.env)
        self.define(Var(loop, "int", high=n - 1))
        text = self.scalar(2)
        self.env = before
        if self.chance(0.5):
            name = self.target("float", (n,), "b")
            self.define_array(name, (n,))
            return [f"{name} = np.array([1.0 * {text} for {loop} in range({n})])"]
        return self.assign(self.target("float", None, "x"), f"sum([{text} for {loop} in range({n})])")

    def stmt_closure(self) -> Lines:
        g, u = self.fresh("g"), self.fresh("u")
        x = self.scalars()
        outer = self.choice(x).name if x else "0.5"
        body = self.choice((f"{u} * {outer}", f"np.sin({u}) + {outer}", f"{u} * {u} - {outer} * {u}"))
        lines = [f"{g} = lambda {u}: {body}"] if self.chance(0.5) else [f"def {g}({u}):", f"    return {body}"]
        if x and self.may_rebind(outer) and self.chance(0.4):
            lines += self.assign(outer, self.tame(self.scalar(1)))  # a closure sees the variable, not its value
        return lines + self.assign(self.target("float", None, "x"), f"{g}({self.scalar(1)}) + {g}({self.scalar(0)})")

    def stmt_call(self) -> Lines | None:
        if not self.helpers:
            return None
        helper = self.choice(self.helpers)
        text = self.call(helper)
        if text is None:
            return None
        names: list[str] = []
        for result in helper.results:
            name = self.target("float", result.shape, "y" if result.shape is None else "b")
            names.append(name if name not in names else self.fresh("y"))
        for name, result in zip(names, helper.results, strict=True):
            self.define(Var(name, "float", result.shape))
        return [f"{', '.join(names)} = {text}" if names else text]

    # ---- faults ----

    def stmt_fault(self) -> Lines | None:
        if self.fault:
            return None
        x = self.scalar(1)
        array = self.arrays(lambda v: v.shape is not None and len(v.shape) == 1 and self.may_rebind(v.name))
        name = self.fresh("z")
        options = {
            "zero division": [f"{name} = {x} / (1 - 1)", f"{name} = {x} / (0.0 * 1.0)"],
            "domain": [
                f"{name} = math.sqrt(-1.0 - abs({x}))",
                f"{name} = math.log(-abs({x}))",
                f"{name} = math.asin(2.0 + abs({x}))",
            ],
            "overflow": [f"{name} = math.exp(1000.0 + abs({x}))"],
            "raise": ["raise ValueError('planted')", "raise RuntimeError"],
            "assert": [f"assert abs({x}) < 0.0, 'planted'", f"assert abs({x}) < 0"],
            "step": ["for z_ in range(3, 0, 0):\n    pass"],
            "unbound": [
                f"for {name} in range(0):\n    {name}_u = 1.0\n{name}_v = {name}_u * {x}",
                f"if {x} > 1e9:\n    {name} = {x}\n{name}_v = {name} * 2.0",
            ],
        }
        if array:
            a = self.choice(array)
            n = (a.shape or ())[0]
            options["index"] = [
                f"{name} = {a.name}[{n + 1}]",
                f"{name} = {a.name}[{-n - 1}]",
                f"{a.name}[{n}] = {x}",
                f"{name} = {a.name}[int(7 + abs({x}))]",
            ]
            options["shape"] = [
                f"{name} = {a.name} + np.ones({n + 3})",
                f"{name} = {a.name} @ np.ones({n + 2})",
                f"{name} = {a.name}.reshape({n + 1}, 7)",
                f"{a.name} += np.ones((2, {n}))",
                f"{a.name}[:] = np.ones({n + 3})",
            ]
            options["ambiguous"] = [f"{name} = 1.0 if np.append({a.name}, [1.0, 2.0]) > 0.0 else 2.0"]
        self.fault = self.choice(options)
        return self.choice(options[self.fault]).split("\n")
