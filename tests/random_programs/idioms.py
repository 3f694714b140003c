"""Short pieces of program that need several statements to mean anything.

Every method named `stmt_*` is a production: it returns lines, or None where it cannot apply.
"""

from __future__ import annotations

from tests.random_programs.grammar import MAX_SIZE, MAX_TRIPS, Shape, Var, broadcast, size
from tests.random_programs.simple import Lines, Simple


class Idioms(Simple):
    """Writes lists, counters, searches, moving buffers and pairs."""

    # ---- lists ----

    def position(self, n: int, grows: bool) -> str:
        """An index into a list; into one that does not grow it must be known."""
        return self.index(n) if grows else str(self.rng.randrange(-n, n))

    def items(self, xs: Var, grows: bool) -> Lines:
        """Something done to the items of a list whose length is known."""
        (n,) = xs.shape or (0,)
        i, j = self.position(n, grows), self.position(n, grows)
        item, other = f"{xs.name}[{i}]", f"{xs.name}[{j}]"
        value = self.tame(self.scalar(1))
        return self.choice(
            (
                [f"{item} = {value}"],
                [f"{item} = {other} * {value}"],
                [f"{item} += {value}"],
                [f"{item} += 0.5 * {other}"],
                [f"{item} *= {self.scalar(0)}"],
                [f"{item}, {other} = {other}, {item}"],
                [f"{xs.name}.append({xs.name}.pop() * {self.scalar(0)})"],
            )
        )

    def stmt_items(self) -> Lines | None:
        """A list whose items are replaced, added to, swapped; at once or in a loop."""
        if self.deep():
            return None
        n = self.rng.randint(1, 4)
        xs = Var(self.fresh("xs"), "list", (n,))
        grows = self.chance(0.5)
        if not grows:
            lines = [f"{xs.name} = [{', '.join(self.scalar(1) for _ in range(n))}]"]
        else:
            loop = self.fresh("i")
            self.define(Var(loop, "int", high=n - 1))
            with self.inside(n, "for", (loop,)):
                lines = [
                    f"{xs.name} = []",
                    f"for {loop} in range({n}):",
                    f"    {xs.name}.append(1.0 * {self.scalar(1)})",
                ]
            del self.env[loop]
        for _ in range(self.rng.choice((1, 1, 2))):
            lines += self.items(xs, grows)
        if self.chance(0.5):
            head, trips, new = self.loop_range()
            before = dict(self.env)
            for var in new:
                self.define(var)
            with self.inside(trips, "for", tuple(v.name for v in new)):
                body = [line for _ in range(self.rng.choice((1, 2))) for line in self.items(xs, grows)]
                if self.chance(0.3):
                    body = [f"if {self.test(1)}:", *[f"    {line}" for line in body]]
            self.env = before
            lines += [f"for {head}:", *[f"    {line}" for line in body]]
        x = self.target("float", None, "x")
        self.define(Var(x, "float"))
        i, item = self.position(n, grows), self.fresh("item")
        ends: list[Lines] = [
            [f"{x} = sum({xs.name})"],
            [f"{x} = {xs.name}[{i}] * {xs.name}[-1] + np.sum(np.array({xs.name}))"],
            [f"{x} = np.sum(np.array({xs.name}))", f"{x} += {xs.name}[{i}] * {xs.name}[-1]"],
            [f"{x} = sum({xs.name}) * 0.5", f"{x} += {xs.name}[{i}] * {xs.name}[-1]"],
            [f"{x} = {self.scalar(0)}", f"for {item} in {xs.name}:", f"    {x} = 0.5 * {x} + {item} * {item}"],
            [f"{x} = sum([{item} * {item} for {item} in {xs.name}])"],
        ]
        return lines + self.choice(ends)

    def stmt_lists(self) -> Lines | None:
        """One list or another, depending on a test."""
        n = self.rng.randint(1, 3)
        xs, ys, zs = self.fresh("xs"), self.fresh("ys"), self.fresh("zs")
        lines = [
            f"{xs} = [{', '.join(self.scalar(1) for _ in range(n))}]",
            f"{ys} = [{', '.join(self.scalar(1) for _ in range(n))}]",
        ]
        if self.chance(0.6):
            lines += self.items(Var(self.choice((xs, ys)), "list", (n,)), grows=False)
        test = self.test(1)
        lines += self.choice(
            (
                [f"{zs} = {xs} if {test} else {ys}"],
                [f"if {test}:", f"    {zs} = {xs}", "else:", f"    {zs} = {ys}"],
                [f"{zs} = {xs}", f"if {test}:", f"    {zs} = {ys}"],
            )
        )
        x = self.target("float", None, "x")
        self.define(Var(x, "float"))
        return [*lines, f"{x} = sum({zs}) * {xs}[0] + {ys}[-1]"]

    def stmt_pair(self) -> Lines | None:
        """A tuple that branches and loops replace."""
        if self.deep():
            return None
        p, loop = self.fresh("pair"), self.fresh("i")
        x = self.target("float", None, "x")
        pool = self.arrays(lambda v: bool(v.shape) and 0 not in (v.shape or ()))
        if pool and self.chance(0.4):  # a number and an array
            a = self.choice(pool)
            other = self.choice([v for v in pool if v.shape == a.shape])
            lines = [
                f"{p} = ({self.scalar(1)}, {a.name})",
                f"if {self.test(1)}:",
                f"    {p} = ({p}[0] * {self.scalar(0)}, {other.name})",
                f"{x} = {p}[0] * {self.element(Var(f'{p}[1]', 'float', a.shape))}",
            ]
            self.define(Var(x, "float"))
            return lines
        first, second = self.scalar(1), self.scalar(1)
        lines = [f"{p} = ({first}, {second})"]
        if self.chance(0.4):
            lines += [f"if {self.test(1)}:", f"    {p} = ({p}[1], {self.scalar(1)})"]
        if self.chance(0.6):
            trips = self.rng.randint(1, 3)
            with self.inside(trips, "for"):
                step = f"({p}[1], {self.choice(('np.sin({0}[0])', '0.5 * {0}[0] * {0}[1]', '{0}[0] - 0.5 * {0}[1]'))})"
                lines += [f"for {loop} in range({trips}):", f"    {p} = {step.format(p)}"]
        self.define(Var(x, "float"))
        y = self.fresh("y")
        self.define(Var(y, "float"))
        return [*lines, f"{x}, {y} = {p}"]

    # ---- integers that the run keeps ----

    def loop_range(self) -> tuple[str, int, tuple[Var, ...]]:
        name = self.fresh(self.choice("ijk"))
        arrays = self.arrays(lambda v: bool(v.shape))
        if arrays and self.chance(0.3):
            array = self.choice(arrays)
            n = (array.shape or ())[0]
            text = self.choice(
                (
                    f"len({array.name})",
                    f"{array.name}.shape[0]",
                    f"{array.name}.size // {max(1, size(array.shape or ()) // max(1, n))}",
                )
            )
            low, high, head = 0, n - 1, f"range({text})"
            return f"{name} in {head}", n, (Var(name, "int", low=0, high=max(0, high)),)
        values = self.choice(
            (
                range(3),
                range(2),
                range(4),
                range(0),
                range(1),
                range(5),
                range(1, 4),
                range(3, 0, -1),
                range(0, 5, 2),
                range(2, -1, -1),
                range(-2, 2),
                range(4, 1, -2),
                range(1, 6, 2),
                range(1, 6, 3),
                range(5, 0, -2),
                range(0, 7, 3),
                range(6, -1, -3),
            )
        )
        low, high = (min(values), max(values)) if values else (0, 0)
        parts = [values.start, values.stop, values.step]
        head = (
            f"range({parts[1]})"
            if parts[0] == 0 and parts[2] == 1
            else f"range({', '.join(map(str, parts if parts[2] != 1 else parts[:2]))})"
        )
        if parts[0] == 0 and parts[2] == 1 and self.chance(0.15):
            head = f"reversed({head})"
        return f"{name} in {head}", len(values), (Var(name, "int", low=low, high=high),)

    def stmt_state(self) -> Lines | None:
        """An integer that a loop moves, in every iteration or in some; it chooses elements and scales numbers."""
        head, trips, new = self.loop_range()
        if self.deep() or trips * self.budget.trips > MAX_TRIPS:
            return None
        k, x = self.fresh("k"), self.target("float", None, "x")
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        lines = [f"{k} = {self.rng.randint(-1, 3)}", f"{x} = {self.tame(self.scalar(1))}"]
        self.define(Var(x, "float"))
        self.define(Var(k, "int", free=True))
        before = dict(self.env)
        for var in new:
            self.define(var)
        with self.inside(trips, "for", (k, x, *(v.name for v in new))):
            move = self.choice(
                (
                    f"{k} += {self.choice(('1', '2', '-1', '3'))}",
                    f"{k} -= {self.choice(('1', '2'))}",
                    f"{k} = ({k} * 2 + 1) % 5",
                    f"{k} += {new[0].name}",
                    f"{k} = {k} + 1 if {self.test(1)} else {k}",
                    f"{k} = {new[0].name} - {k}",
                )
            )
            moves = [move]
            if self.chance(0.35):
                moves = [f"if {self.test(1)}:", f"    {move}"]
                if self.chance(0.3):
                    moves += ["else:", f"    {k} -= 1"]
            uses = [f"{x} = 0.5 * {x} + {self.choice(('0.1', '0.25', '-0.5'))} * {k} * {x}"]
            if array is not None:
                (n,) = array.shape or (1,)
                place = f"{array.name}[{k} % {n}]"
                uses += [
                    f"{x} = np.sin({x} * {place})",
                    f"{place} = {x} * {place}",
                    f"{place} += np.tanh({x} * {self.scalar(1)})",
                    f"{place} *= {self.scalar(0)}",
                ]
            body = self.rng.sample(uses, min(len(uses), self.rng.choice((1, 1, 2))))
            order = [moves, body] if self.chance(0.5) else [body, moves]
            if self.chance(0.2):
                order.insert(1, [f"if {self.test(1)}:", f"    {self.choice(('break', 'continue'))}"])
        self.env = before
        self.define(Var(k, "int", free=True))
        lines += [f"for {head}:", *[f"    {line}" for part in order for line in part]]
        return [*lines, f"{x} = {x} + 0.1 * {k} * {self.scalar(0)}"] if self.chance(0.5) else lines

    def stmt_long(self) -> Lines | None:
        """A loop of more iterations than a growing tape has room for at first."""
        if self.loops or self.deep():
            return None
        k, x, y = self.fresh("k"), self.target("float", None, "x"), self.fresh("y")
        trips = self.rng.choice((65, 66, 70, 129))
        first, second = self.tame(self.scalar(1)), self.tame(self.scalar(1))
        lines = [f"{k} = 0", f"{x} = {first}", f"{y} = {second}"]
        self.define(Var(x, "float"))
        self.define(Var(y, "float"))
        step = self.choice(
            (
                [f"{x} = np.sin({x}) + 0.5 * {y} * {y}", f"{y} = 0.5 * {y} * {x} + 0.25"],
                [f"{x} = np.tanh({x} * {y} + 0.5)", f"{y} = np.sin({y}) * {x}"],
                [f"{x}, {y} = {y} * np.cos({x}), np.sin({x}) + 0.25 * {y}"],
                [
                    f"if {x} < {y}:",
                    f"    {x} = np.sin({x} * {x}) + 0.75",
                    "else:",
                    f"    {y} = np.tanh({y} * {x}) + 0.5",
                ],
            )
        )
        head = self.choice((f"while {k} < {trips}:", f"while abs({x}) < 1e3 and {k} < {trips}:"))
        tail = self.choice(([], [], [f"if abs({y}) > 1e3:", "    break"]))
        return [*lines, head, *[f"    {line}" for line in (f"{k} += 1", *step, *tail)]]

    def stmt_sized(self) -> Lines | None:
        """An array whose size is an argument: one entry may be broadcast."""
        pool = [v for v in self.scalars("int") if v.value]
        if not pool or self.loops or self.budget.depth:
            return None
        n = self.choice(pool)
        size_ = int(n.value or 1)
        long = [v for v in self.arrays(lambda v: v.shape is not None and len(v.shape) == 1) if v.shape[0] >= size_]
        wide = [v for v in self.arrays(lambda v: v.shape is not None and len(v.shape) == 2) if v.shape[0] >= size_]
        name, second = self.fresh("part"), self.fresh("more")
        options = [(f"np.ones({n.name}) * {self.scalar(1)}", (size_,))]
        options += [(f"np.full(({n.name}, {m}), 1.0 * {self.scalar(1)})", (size_, m)) for m in self.dims if m]
        options += [(f"{v.name}[:{n.name}] * {self.scalar(0)}", (size_,)) for v in long]
        options += [(f"np.sin({v.name}[:{n.name}])", (size_, v.shape[1])) for v in wide if v.shape]
        text, shape = self.choice(options)
        if size(shape) > MAX_SIZE or 0 in shape:
            return None
        lines = [f"{name} = {text}"]
        self.define_array(name, shape)
        fitting = [
            v for v in self.arrays(lambda v: bool(v.shape)) if broadcast(v.shape or (), shape) and v.name != name
        ]
        if fitting:
            other = self.choice(fitting)
            both = broadcast(other.shape or (), shape) or ()
            if size(both) <= MAX_SIZE:
                pair = [name, other.name]
                self.rng.shuffle(pair)
                operator = self.choice((" * ", " + ", " - "))
                lines.append(f"{second} = {operator.join(pair)}")
                self.define_array(second, both)
        return lines

    def stmt_search(self) -> Lines | None:
        """A loop that ends early, and what its variable says afterwards."""
        head, trips, new = self.loop_range()
        if self.deep() or not trips or trips * self.budget.trips > MAX_TRIPS:
            return None
        loop, x = new[0], self.target("float", None, "x")
        lines = [f"{x} = {self.tame(self.scalar(1))}"]
        self.define(Var(x, "float"))
        before = dict(self.env)
        self.define(loop)
        with self.inside(trips, "for", (x, loop.name)):
            work = f"{x} = {self.choice(('np.sin({x}) + {e}', '0.5 * {x} * {e}', '{x} * {e} / (1.0 + abs({x}))'))}"
            body = [work.format(x=x, e=self.scalar(1))]
            body.insert(self.rng.choice((0, 1)), f"if {self.test(1)}:\n        break")
        self.env = before
        self.define(loop)
        lines += [f"for {head}:", *[f"    {line}" for line in body]]
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        if array is not None and self.chance(0.6):
            place = f"{array.name}[{loop.name} % {(array.shape or (1,))[0]}]"
            lines.append(self.choice((f"{x} = {x} * {place}", f"{place} *= {x}", f"{place} = {x}")))
        else:
            lines.append(f"{x} = {x} * ({loop.name} + 1)")
        return [line for text in lines for line in text.split("\n")]

    # ---- arrays that change names ----

    def stmt_buffers(self) -> Lines | None:
        """Two arrays in turn: one is computed from the other, then they change names."""
        array = self.written(lambda v: bool(v.shape) and 0 not in (v.shape or ()) and self.may_rebind(v.name))
        trips = self.rng.randint(1, 4)
        if array is None or self.deep() or trips * self.budget.trips > MAX_TRIPS:
            return None
        a, b, c, i = array.name, self.fresh("new"), self.fresh("old"), self.fresh("i")
        shape = array.shape or ()
        self.define_array(b, shape)
        self.define(Var(i, "int", high=trips - 1))
        with self.inside(trips, "for", (a, b, i)):
            step = self.choice(
                (
                    [f"{b}[...] = {self.tame_array(f'{a} * {self.scalar(1)}')}"],
                    [f"{b}[0] = {self.tame_array(f'{a}[-1] * {a}[0]')}"],
                    [f"{b}[:] = 0.5 * {a} + 0.5 * {b} * {self.scalar(0)}"],
                    [f"{b} += np.sin({a}) * {self.scalar(0)}"],
                    [f"{b}[1:] = 0.5 * {a}[:-1] * {a}[1:]"],
                    *self.element_by_element(a, b, shape),
                    *self.element_by_element(a, b, shape),
                )
            )
            swap = self.choice(
                (
                    [f"{a}, {b} = {b}, {a}"],
                    [f"{a}, {b} = {b}, {a}"],
                    [f"{c} = {a}", f"{a} = {b}", f"{b} = {c}"],
                    [f"if {self.test(1)}:", f"    {a}, {b} = {b}, {a}"],
                    [f"{a} = {b}.copy()"],
                    [f"{c}[...] = {a}", f"{a}, {b}, {c} = {b}, {c}, {a}"],
                )
            )
        del self.env[i]
        make = self.choice((f"{a}.copy()", f"np.zeros_like({a})", f"0.5 * {a}"))
        lines = [f"{b} = {make}"]
        if any(line.startswith(f"{c}[") for line in swap):
            lines.append(f"{c} = np.zeros_like({a})")
            self.define_array(c, shape)
        return [*lines, f"for {i} in range({trips}):", *[f"    {line}" for line in [*step, *swap]]]

    def element_by_element(self, a: str, b: str, shape: Shape) -> list[Lines]:
        """Ways to compute one array from another in a loop over its entries."""
        if len(shape) != 1:
            return []
        j, t = self.fresh("j"), self.fresh("entry")
        head = f"for {j} in range({shape[0]}):"
        return [
            [head, f"    {b}[{j}] = np.sin({a}[{j}]) * {a}[0]"],
            [head, f"    {t} = np.tanh({a}[{j}])", f"    {b}[{j}] = {t}", f"    {a}[{j}] = {t} * {t}"],
            [head, f"    {t} = np.sin({a}[{j}] * {b}[{j}])", f"    {b}[{j}] = {t}", f"    {b}[{j}] += 0.5 * {t} * {t}"],
        ]

    def stmt_turned(self) -> Lines | None:
        """A loop over an array and another view of it: what one reads, the other may have written."""
        array = self.written(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 1)
        if array is None or self.deep():
            return None
        a, n, v, i = array.name, (array.shape or (2,))[0], self.fresh("turned"), self.fresh("i")
        view, size_ = self.choice(
            (
                (f"np.flip({a})", n),
                (f"np.flip({a}, 0)", n),
                (f"{a}[::-1]", n),
                (f"{a}[1:]", n - 1),
                (f"{a}[::2]", (n + 1) // 2),
                (f"{a}[:]", n),
            )
        )
        places = [
            f"{v}[{i}]",
            f"{v}[{size_ - 1} - {i}]",
            f"{v}[-1 - {i}]",
            f"{a}[{i}]",
            f"{a}[{n - 1} - {i}]",
            f"{a}[0]",
        ]
        read, other, write = self.choice(places), self.choice(places), self.choice(places)
        self.define(Var(i, "int", high=size_ - 1))
        with self.inside(size_, "for", (a, i)):
            text = self.choice(
                ("np.sin({0}) * {2}", "{0} * {1}", "{0} * {0} + 0.5 * {1}", "0.5 * {0} - {1} * {2}")
            ).format(read, other, self.scalar(0))
        del self.env[i]
        self.define_array(v, (size_,))
        head = self.choice((f"range({size_})", f"range({size_} - 1, -1, -1)", f"range({(size_ + 1) // 2})"))
        return [f"{v} = {view}", f"for {i} in {head}:", f"    {write} {self.choice(('=', '=', '+='))} {text}"]

    def stmt_exchange(self) -> Lines | None:
        """Rows, elements or parts of an array change places."""
        array = self.written(lambda v: bool(v.shape) and 0 not in (v.shape or ()))
        if array is None:
            return None
        a, n, t = array.name, (array.shape or (1,))[0], self.fresh("swapped")
        i, j = self.index(n), self.index(n)
        rows = len(array.shape or ()) > 1
        copy = ".copy()" if rows else ""
        return self.choice(
            (
                [f"{t} = {a}[{i}]{copy}", f"{a}[{i}] = {a}[{j}]", f"{a}[{j}] = {t}"],
                [f"{a}[[{i}, {j}]] = {a}[[{j}, {i}]]"],
                [f"{a}[:] = {a}[::-1].copy()"],
                [f"{a}[[{i}, {j}]] *= {self.scalar(0)}"],
                [f"{a}[1:] = {a}[:-1] * {self.scalar(0)}"],
                [f"{a}[1:] += 0.5 * {a}[:-1]"],
                [f"{t} = {a}[{i}]{copy} * {a}[{j}]", f"{a}[{i}] = {t}", f"{a}[{j}] += {t}"],
                [f"{t} = {a}[{i}] + {self.scalar(1)}", f"{a}[{j}] = {self.scalar(1)}", f"{a}[{i}] = {t}"],
                [f"{t} = {a}[{i}]{copy}", f"{a}[{j}] *= {self.scalar(0)}", f"{a}[{i}] = {t} + {self.scalar(1)}"],
            )
        )
