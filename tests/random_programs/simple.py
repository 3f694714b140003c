"""Random statements without blocks of their own, and the short idioms that need one loop.

Every method named `stmt_*` is a production: it returns lines, or None where it cannot apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.random_programs.arrays import Arrays
from tests.random_programs.grammar import Shape, Var, broadcast, size

Lines = list[str]


class Simple(Arrays):
    """Writes assignments, stores, views and aliases."""

    @contextmanager
    def inside(self, trips: int = 1, loop: str = "", keep: tuple[str, ...] = ()) -> Iterator[None]:
        """Write a nested block: names in `keep` are not rebound in it."""
        trips_before, frozen = self.budget.trips, self.frozen
        self.budget.trips *= max(1, trips)
        self.budget.depth += 1
        self.frozen |= frozenset(keep)
        if loop:
            self.loops.append(loop)
        yield
        if loop:
            self.loops.pop()
        self.frozen = frozen
        self.budget.depth -= 1
        self.budget.trips = trips_before

    def few(self) -> int:
        return self.rng.choice((1, 1, 2, 2, 3, 4))

    def deep(self) -> bool:
        return self.budget.depth >= 4

    # ---- scalars ----

    def tame(self, text: str) -> str:
        """Keep a value small that is carried around a loop."""
        if not self.loops or not self.chance(self.profile.weight("in_loop_wrap")):
            return text
        return self.choice(("np.tanh({})", "0.5 * {}", "np.sin({})", "{0} / (1.0 + abs({0}))", "math.tanh({})")).format(
            text
        )

    def tame_array(self, text: str) -> str:
        if not self.loops or not self.chance(self.profile.weight("in_loop_wrap")):
            return text
        return self.choice(("np.tanh({})", "0.5 * {}", "np.sin({})", "{0} / (1.0 + abs({0}))")).format(text)

    def assign(self, name: str, text: str) -> Lines:
        self.define(Var(name, "float"))
        return [f"{name} = {text}"]

    def stmt_assign(self) -> Lines:
        name = self.target("float", None, "x")
        return self.assign(name, self.tame(self.scalar()))

    def stmt_augment(self) -> Lines | None:
        pool = [v.name for v in self.scalars() if self.may_rebind(v.name)]
        if not pool:
            return None
        name = self.choice(pool)
        return [f"{name} {self.update(lambda: self.scalar(2), self.tame)}"]

    def update(self, value: Callable[[], str], tame: Callable[[str], str]) -> str:
        """An augmented assignment without its target."""
        operator = self.rng.choice(("+=", "+=", "-=", "*=", "/=", "**=", "%="))
        if operator == "*=":
            return f"*= {self.choice(('np.cos({})', '0.5 + np.tanh({})', '{}')).format(value())}"
        if operator == "/=":
            return f"/= {self.positive(value())}"
        if operator == "%=":
            return f"%= {self.positive(value())}" if self.chance(0.3) else f"+= {tame(value())}"
        if operator == "**=":
            return "**= 2" if not self.loops else "*= 0.5"
        return f"{operator} {tame(value())}"

    def stmt_tuple(self) -> Lines:
        a, b = self.target("float", None, "x"), self.target("float", None, "y")
        if a == b:
            b = self.fresh("y")
        line = f"{a}, {b} = {self.tame(self.scalar())}, {self.tame(self.scalar())}"
        self.define(Var(a, "float"))
        self.define(Var(b, "float"))
        return [line]

    def stmt_walrus(self) -> Lines:
        inner = self.fresh("w")
        text = f"({inner} := {self.scalar(1)})"
        self.define(Var(inner, "float"))
        return self.assign(self.target("float", None, "x"), self.tame(f"({text} * {self.scalar(1)})"))

    def stmt_pass(self) -> Lines:
        return [self.choice(("pass", "assert True", "'a string'"))]

    def stmt_bool(self) -> Lines:
        name = self.target("bool", None, "flag")
        text = self.test(2)
        self.define(Var(name, "bool"))
        return [f"{name} = {text}"]

    def stmt_integer(self) -> Lines:
        old = [v.name for v in self.scalars("int") if v.free and self.may_rebind(v.name)]
        if old and self.chance(0.6):
            name = self.choice(old)
            return [
                self.choice(
                    (
                        f"{name} += 1",
                        f"{name} = {self.integer(1)} % 5",
                        f"{name} += {self.integer(0)}",
                        f"{name} -= 2",
                        f"{name} = ({name} * 2 + 1) % 7",
                    )
                )
            ]
        text = self.choice((self.integer(1), "0", f"{self.integer(1)} % 4", f"int({self.scalar(1)})", "1"))
        name = self.fresh("k")
        self.define(Var(name, "int", free=True))
        return [f"{name} = {text}"]

    def stmt_promote(self) -> Lines | None:
        """A variable that starts as an integer and ends as a float."""
        if self.deep():
            return None
        name, loop, trips = self.fresh("s"), self.fresh("i"), self.rng.randint(0, 3)
        self.define(Var(loop, "int", high=max(0, trips - 1)))
        lines = [
            f"{name} = {self.choice(('0', '1', '2'))}",
            f"for {loop} in range({trips}):",
            f"    {name} += {self.tame(self.scalar(1))}",
        ]
        del self.env[loop]
        self.define(Var(name, "float"))
        return lines

    # ---- arrays ----

    def define_array(self, name: str, shape: Shape, writable: bool = True) -> None:
        self.define(Var(name, "float", shape, writable))

    def stmt_array(self) -> Lines:
        shape = self.any_shape()
        name = self.target("float", shape, "b")
        text = self.tame_array(self.array(shape))
        if text.isidentifier():
            text += ".copy()"
        self.define_array(name, shape)
        return [f"{name} = {text}"]

    def written(self, test: Callable[[Var], bool] = lambda v: True) -> Var | None:
        pool = self.arrays(lambda v: v.writable and test(v))
        return self.choice(pool) if pool else None

    def stmt_array_augment(self) -> Lines | None:
        array = self.written(lambda v: bool(v.shape))
        if array is None or not self.may_rebind(array.name):
            return None
        shape = array.shape or ()
        smaller = [v.name for v in self.arrays(lambda v: bool(v.shape)) if broadcast(v.shape or (), shape) == shape]

        def value() -> str:
            if self.chance(0.25):
                return self.scalar(1)
            return self.choice(smaller) if self.chance(0.3) else self.array(shape)

        return [f"{array.name} {self.update(value, self.tame_array)}"]

    def place(self, array: Var) -> tuple[str, Shape | None]:
        """An index of an array and the shape it selects: None for a number."""
        shape = array.shape or ()
        if not shape:
            return "()", None
        if self.rng.random() < 0.55:
            return ", ".join(self.index(n) for n in shape), None
        if self.chance(0.1):
            return self.choice((":", "...")), shape
        parts, left = [], []
        for n in shape:
            if self.chance(0.3):
                parts.append(self.index(n))
            else:
                text, length = self.cut(n)
                parts.append(text)
                left.append(length)
        if not left:
            return ", ".join(parts), None
        while len(parts) > 1 and parts[-1] == ":":
            parts.pop()
        return ", ".join(parts), tuple(left)

    def stmt_store(self) -> Lines | None:
        array = self.written(lambda v: v.shape is not None and 0 not in v.shape)
        if array is None:
            return None
        index, shape = self.place(array)
        if shape is None or self.chance(0.3):
            value = lambda: self.scalar(2)  # noqa: E731
            tame = self.tame
        else:
            value = lambda: self.array(shape)  # noqa: E731
            tame = self.tame_array
        if self.chance(0.5):
            before = f" - {array.name}[{index}]" if self.chance(0.15) else ""
            return [f"{array.name}[{index}] = {tame(value())}{before}"]
        return [f"{array.name}[{index}] {self.update(value, tame)}"]

    def stmt_dynamic_store(self) -> Lines | None:
        """A store into a slice whose length depends on an integer."""
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        if array is None:
            return None
        k = self.index((array.shape or ())[0])
        cut = self.choice((f"{k}:", f":{k}", f"{k}::2"))
        if self.chance(0.3):
            other = self.arrays(lambda v: v.shape == array.shape)
            return [f"{array.name}[{cut}] {self.choice(('=', '+=', '-='))} 0.5 * {self.choice(other).name}[{cut}]"]
        return [f"{array.name}[{cut}] {self.choice(('=', '+=', '*='))} {self.tame(self.scalar(1))}"]

    def stmt_view(self) -> Lines | None:
        pool = self.arrays(lambda v: bool(v.shape) and size(v.shape or ()) > 0)
        if not pool:
            return None
        array = self.choice(pool)
        shape = array.shape or ()
        options: list[tuple[str, Shape]] = []
        cuts = [self.cut(n) for n in shape]
        options.append((f"{array.name}[{', '.join(text for text, _ in cuts)}]", tuple(n for _, n in cuts)))
        text, n = self.cut(shape[0])
        options += [
            (f"{array.name}[{text}]", (n, *shape[1:])),
            (f"{array.name}[::-1]", shape),
            (f"np.flip({array.name})", shape),
            (f"np.flip({array.name}, 0)", shape),
            (f"{array.name}.T", shape[::-1]),
        ]
        if len(shape) > 1:
            options += [
                (f"{array.name}[{self.index(shape[0])}]", shape[1:]),
                (f"{array.name}[:, {self.index(shape[1])}]", (shape[0], *shape[2:])),
                (f"{array.name}.ravel()", (size(shape),)),
                (f"{array.name}.reshape(-1)", (size(shape),)),
                (f"np.swapaxes({array.name}, 0, 1)", (shape[1], shape[0], *shape[2:])),
                (f"{array.name}[..., ::-1]", shape),
            ]
        else:
            options += [(f"{array.name}[:, None]", (*shape, 1)), (f"{array.name}.reshape(1, -1)", (1, *shape))]
            if shape[0] == 4:
                options.append((f"{array.name}.reshape(2, 2)", (2, 2)))
        if 1 in shape and len(shape) > 1:
            options.append((f"np.squeeze({array.name})", tuple(n for n in shape if n != 1)))
        text, new = self.choice([option for option in options if option[1]])
        name = self.target("float", new, "v") if array.writable else self.fresh("v")
        self.define_array(name, new, array.writable)
        return [f"{name} = {text}"]

    def stmt_alias(self) -> Lines | None:
        pool = self.arrays(lambda v: bool(v.shape) and v.writable)
        if not pool:
            return None
        array = self.choice(pool)
        same = [v for v in pool if v.shape == array.shape]
        other = self.choice(same)
        name = self.target("float", array.shape, "c")
        text = f"{array.name} if {self.test(1)} else {other.name}"
        self.define_array(name, array.shape or ())
        if self.chance(0.3):
            return [f"{name} = {text}"]
        if self.chance(0.2):
            second = self.fresh("d")
            self.define_array(second, array.shape or ())
            return [f"{name} = {second} = {array.name}" + (".copy()" if self.chance(0.5) else "")]
        return [f"{name} = {array.name}"]

    def stmt_swap(self) -> Lines | None:
        pool = [
            v for v in self.scalars() + self.arrays(lambda v: v.writable and bool(v.shape)) if self.may_rebind(v.name)
        ]
        pairs = [(a.name, b.name) for a in pool for b in pool if a.name < b.name and a.shape == b.shape]
        array = self.written(lambda v: v.shape is not None and 0 not in v.shape and len(v.shape) > 0)
        if array is not None and self.chance(0.3):
            i, j = self.element(array), self.element(array)
            return [f"{i}, {j} = {j}, {i}"]
        if not pairs:
            return None
        a, b = self.choice(pairs)
        return [f"{a}, {b} = {b}, {a}"]

    def stmt_scatter(self) -> Lines | None:
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        if array is None:
            return None
        n = (array.shape or ())[0]
        pool = self.variables("int", lambda v: v.shape is not None and -n <= v.low and v.high < n)
        if pool and self.chance(0.7):
            index = self.choice(pool)
            text, count = index.name, (index.shape or ())[0]
        else:
            count = self.rng.randint(1, 3)
            text = f"np.array({[self.rng.randrange(-n, n) for _ in range(count)]})"
        value = self.tame_array(self.array((count,))) if self.chance(0.7) else self.scalar(1)
        if self.chance(0.3):
            return [f"np.add.at({array.name}, {text}, {value})"]
        return [f"{array.name}[{text}] {self.choice(('=', '+=', '*=', '-='))} {value}"]

    def stmt_mask(self) -> Lines | None:
        if self.chance(0.3):
            shape = self.any_shape()
            name, text = self.fresh("m"), self.mask(shape)
            self.define(Var(name, "bool", shape))
            return [f"{name} = {text}"]
        array = self.written(lambda v: bool(v.shape))
        if array is None:
            return None
        mask = self.mask(array.shape or ())
        if self.chance(0.3):
            other = self.choice(self.arrays(lambda v: v.shape == array.shape))
            return [f"{array.name}[{mask}] = 0.5 * {other.name}[{mask}]"]
        return [f"{array.name}[{mask}] {self.choice(('=', '+=', '*='))} {self.tame(self.scalar(1))}"]

    def stmt_buffer(self) -> Lines | None:
        """An array made empty and filled in a loop."""
        if self.deep():
            return None
        name, loop, n = self.fresh("buf"), self.fresh("i"), max(1, self.choice(self.dims))
        self.define(Var(loop, "int", high=n - 1))
        maker = self.choice(("np.zeros", "np.empty"))
        with self.inside(n, "for", (loop,)):
            text = self.tame(self.scalar())
        del self.env[loop]
        self.define_array(name, (n,))
        operator = self.choice(("=", "+=")) if maker == "np.zeros" else "="
        return [f"{name} = {maker}({n})", f"for {loop} in range({n}):", f"    {name}[{loop}] {operator} {text}"]

    def stmt_recurrence(self) -> Lines | None:
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 1)
        if array is None or self.deep():
            return None
        a, n, i = array.name, (array.shape or ())[0], self.fresh("i")
        self.define(Var(i, "int", low=1, high=n - 1))
        head, near = self.choice(
            ((f"range(1, {n})", f"{i} - 1"), (f"range({n} - 1, 0, -1)", f"{i} - 1"), (f"range(1, len({a}))", "0"))
        )
        with self.inside(n, "for", (i,)):
            text = self.choice(
                (
                    "{e} * {a}[{j}]",
                    "{a}[{i}] + {e} * {a}[{j}]",
                    "np.sin({a}[{i}] * {a}[{j}]) + {e}",
                    "{a}[{j}] / (2.0 + {a}[{i}] ** 2)",
                )
            ).format(a=a, i=i, j=near, e=self.scalar(1))
        del self.env[i]
        return [f"for {i} in {head}:", f"    {a}[{i}] {self.choice(('=', '+=', '='))} {text}"]

    def stmt_delayed(self) -> Lines | None:
        """Read, overwrite, then use what was read (and what shares its memory)."""
        array = self.written(lambda v: bool(v.shape) and 0 not in (v.shape or ()))
        if array is None:
            return None
        element, x, v = self.element(array), self.fresh("x"), self.fresh("v")
        lines = [
            f"{x} = {element} * {self.scalar(1)}",
            f"{v} = {array.name}[::-1]",
            f"{element} = {self.tame(self.scalar(1))}",
        ]
        self.define(Var(x, "float"))
        self.define_array(v, array.shape or ())
        if self.chance(0.5):
            lines.append(f"{array.name} {self.update(lambda: self.scalar(1), self.tame)}")
        return [*lines, f"{x} = np.sin({x}) + {x} * np.sum({v})"]
