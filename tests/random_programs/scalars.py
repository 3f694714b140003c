"""Random expressions that give one number.

Every method named `scalar_*` or `test_*` is a production: it returns text, or None where it cannot apply.
"""

from __future__ import annotations

import abc

from tests.random_programs.grammar import MAX_SIZE, Helper, Scope, Shape, Var, number, size

# name in numpy, name in math (or ""), and a text that makes any argument safe
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sin": ("sin", ("{}",)),
    "cos": ("cos", ("{}",)),
    "tan": ("tan", ("0.5 * np.sin({})",)),
    "exp": ("exp", ("-abs({})", "np.tanh({})", "0.25 * np.sin({})")),
    "log": ("log", ("abs({}) + 0.5", "({0}) * ({0}) + 1.5")),
    "sqrt": ("sqrt", ("abs({}) + 0.5", "({0}) * ({0}) + 0.25")),
    "tanh": ("tanh", ("{}",)),
    "sinh": ("sinh", ("np.tanh({})",)),
    "cosh": ("cosh", ("np.sin({})",)),
    "arctan": ("atan", ("{}",)),
    "arcsin": ("asin", ("0.75 * np.sin({})",)),
    "arcsinh": ("asinh", ("{}",)),
    "log1p": ("log1p", ("abs({})", "0.5 * np.sin({})")),
    "expm1": ("expm1", ("np.tanh({})",)),
    "square": ("", ("{}",)),
    "cbrt": ("", ("abs({}) + 0.5",)),
    "reciprocal": ("", ("abs({}) + 0.5",)),
    "log2": ("log2", ("abs({}) + 0.5",)),
    "log10": ("log10", ("abs({}) + 0.5",)),
    "exp2": ("", ("np.tanh({})",)),
    "abs": ("fabs", ("{}",)),
    "negative": ("", ("{}",)),
}
UNGUARDED = frozenset({"exp", "log", "sqrt", "tan", "cosh", "log1p", "reciprocal", "cbrt"})
FLAT = ("np.sign({})", "np.floor({})", "np.ceil({})", "np.rint({})")
SCALAR_LEAVES = ("scalar_variable", "scalar_constant", "scalar_element", "scalar_zero_d")
TEST_LEAVES = ("test_compare", "test_integer", "test_bool")
FLAT_SCALAR = (*FLAT, "math.floor({})", "round({})", "int({})", "(({}) // 0.5)")


class Scalars(Scope, abc.ABC):
    """Writes scalar expressions, integers, indices and conditions.

    All compound results stand in parentheses; the printer removes the needless ones.
    """

    @abc.abstractmethod
    def array(self, shape: Shape, depth: int | None = None) -> str:
        """An array expression; written in `arrays`."""

    def any_shape(self) -> Shape:
        """A shape that variables have, or one made of the program's sizes."""
        pool = [v.shape for v in self.arrays(lambda v: bool(v.shape))]
        if pool and self.chance(0.8):
            return self.choice(pool)
        while True:
            rank = self.rng.choice((1, 1, 2, 2, 3))
            shape = tuple(
                1 if self.chance(self.profile.weight("unit_size") / 2) else self.choice(self.dims) for _ in range(rank)
            )
            if size(shape) <= MAX_SIZE:
                return shape

    # ---- scalars ----

    def scalar(self, depth: int | None = None) -> str:
        depth = self.rng.choice((1, 1, 2, 2, 3)) if depth is None else depth
        return self.weighted(self.table("scalar") if depth > 0 else self.few_of(*SCALAR_LEAVES), depth) or number(
            self.rng
        )

    def scalar_variable(self, depth: int) -> str | None:
        pool = self.scalars()
        return self.choice(pool).name if pool else None

    def scalar_constant(self, depth: int) -> str:
        return f"({number(self.rng)})"

    def scalar_element(self, depth: int) -> str | None:
        pool = self.arrays(lambda v: bool(v.shape) and 0 not in v.shape)
        if not pool:
            return None
        array = self.choice(pool)
        return self.element(array)

    def scalar_zero_d(self, depth: int) -> str | None:
        pool = self.arrays(lambda v: v.shape == ())
        return self.choice(("{}[()]", "{}.item()", "(1.0 * {})")).format(self.choice(pool).name) if pool else None

    def scalar_binary(self, depth: int) -> str:
        return f"({self.scalar(depth - 1)} {self.choice('+-*')} {self.scalar(depth - 1)})"

    def scalar_divide(self, depth: int) -> str:
        top, bottom = self.scalar(depth - 1), self.scalar(depth - 1)
        if self.chance(self.profile.weight("raw")):
            return f"({top} / {bottom})"
        return f"({top} / {self.positive(bottom)})"

    def positive(self, text: str) -> str:
        return self.choice(
            (f"(abs({text}) + 0.5)", f"({text} * {text} + 1.5)", f"(2.0 + np.sin({text}))", f"(1.0 + abs({text}))")
        )

    def scalar_negative(self, depth: int) -> str:
        return f"(-{self.scalar(depth - 1)})"

    def scalar_power(self, depth: int) -> str:
        return self.power(self.scalar(depth - 1), self.scalar(depth - 1))

    def power(self, base: str, exponent: str) -> str:
        if self.chance(0.6):
            return f"({base} ** {self.choice(('2', '3', '2', '2.0', '0', '1', '3.0'))})"
        counts = [v.name for v in self.scalars("int") if v.low >= 0 and v.high <= 4 and not v.free]
        if counts and self.chance(0.5):
            return f"({base} ** {self.choice(counts)})"
        safe = f"(abs({base}) + 0.5)"
        return self.choice(
            (
                f"({safe} ** 0.5)",
                f"({safe} ** -1)",
                f"({safe} ** -0.5)",
                f"({safe} ** 1.5)",
                f"({safe} ** np.tanh({exponent}))",
                f"(2.0 ** np.tanh({base}))",
                f"({safe} ** -2)",
            )
        )

    def scalar_function(self, depth: int) -> str:
        return self.function(self.scalar(depth - 1), True)

    def function(self, argument: str, scalar: bool) -> str:
        name = self.weighted({f"function_{f}": (lambda _, f=f: f) for f in FUNCTIONS})
        in_math, guards = FUNCTIONS[name]
        guard = "{}" if name in UNGUARDED and self.chance(self.profile.weight("raw")) else self.choice(guards)
        inside = guard.format(argument)
        return f"math.{in_math}({inside})" if scalar and in_math and self.chance(0.5) else f"np.{name}({inside})"

    def scalar_two(self, depth: int) -> str:
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        return self.choice(
            (
                f"np.maximum({a}, {b})",
                f"np.minimum({a}, {b})",
                f"np.arctan2({a}, {self.positive(b)})",
                f"math.atan2({a}, {self.positive(b)})",
                f"np.hypot({a}, {self.positive(b)})",
                f"math.hypot({a}, {self.positive(b)})",
                f"np.clip({a}, -1.5, 1.5)",
                f"np.logaddexp({a}, {b})",
            )
        )

    def scalar_builtin(self, depth: int) -> str:
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        return self.choice(
            (f"abs({a})", f"max({a}, {b})", f"min({a}, {b})", f"float({a})", f"pow({a}, 2)", f"max({a}, {b}, 0.5)")
        )

    def scalar_ternary(self, depth: int) -> str:
        return f"({self.scalar(depth - 1)} if {self.test(1)} else {self.scalar(depth - 1)})"

    def scalar_where(self, depth: int) -> str:
        return f"(1.0 * np.where({self.test(0)}, {self.scalar(depth - 1)}, {self.scalar(depth - 1)}))"

    def scalar_integer(self, depth: int) -> str | None:
        text = self.integer(1)
        return self.choice((f"(0.5 * {text})", f"({text} / 4)", f"({text} * {self.scalar(depth - 1)})", text))

    def scalar_round(self, depth: int) -> str:
        return f"(0.5 * {self.choice(FLAT_SCALAR).format(self.scalar(depth - 1))})"

    def scalar_modulo(self, depth: int) -> str:
        return self.modulo(self.scalar(depth - 1), self.scalar(depth - 1))

    def modulo(self, a: str, b: str) -> str:
        return self.choice(
            (
                f"({a} % {self.positive(b)})",
                f"({a} % -{self.positive(b)})",
                f"(0.5 * ({a} // {self.positive(b)}))",
                f"({a} % 0.75)",
                f"np.mod({a}, {self.positive(b)})",
                f"np.remainder({self.positive(a)}, -{self.positive(b)})",
                f"({a} // 0.5 + {a} % 0.5)",
            )
        )

    def scalar_pole(self, depth: int) -> str:
        """An infinite derivative, at the arguments that are whole numbers; some are masked."""
        given = [v for v in self.scalars() if v.value is not None]
        if given and self.chance(0.5):  # at an argument of the call
            v = self.choice(given)
            return self.choice(
                (
                    f"(0.0 * math.sqrt(abs({v.name} - ({v.value}))))",
                    f"min(math.sqrt(abs({v.name} - ({v.value}))), -1.0)",
                    f"(1.0 * np.where({v.name} != {v.value}, np.sqrt(abs({v.name} - ({v.value}))), 0.5))",
                )
            )
        x = self.scalar(depth - 1)
        return self.choice(
            (
                f"(1.0 * np.where({x} - np.rint({x}) != 0.0, np.sqrt(abs({x} - np.rint({x}))), 0.0))",
                f"(0.0 * math.sqrt(abs({x} - round({x}))))",
                f"(1.0 * np.where({x} - np.floor({x}) > 0.5, np.cbrt({x} - np.floor({x})), {x}))",
                f"np.minimum(np.sqrt(abs({x} - np.rint({x}))), -1.0)",
            )
        )

    def scalar_two_results(self, depth: int) -> str:
        """One of the results of a function that has two."""
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        function = self.choice(("divmod({}, {})", "np.divmod({}, {})", "np.modf({0} / {1})", "math.modf({0} / {1})"))
        return f"({function.format(a, self.positive(b))}[{self.choice('01')}] * 0.5)"

    def scalar_statistic(self, depth: int) -> str:
        """Functions that are formulas of others."""
        n = self.choice([n for n in self.dims if n] or [2])
        name = self.choice(("median", "ptp", "trapezoid"))
        return f"np.{name}({self.array((n,), depth - 1)})"

    def scalar_reduce(self, depth: int) -> str | None:
        shape = self.any_shape()
        text = self.array(shape, depth - 1)
        names = ["sum", "mean", "sum"] + (["max", "min", "prod", "std", "var"] if size(shape) else [])
        if not size(shape):
            names = ["sum"]
        name = self.choice(names)
        if name == "std" and not self.chance(self.profile.weight("raw")):
            name = "var"
        if self.chance(0.3):
            return f"({text}).{name}()"
        return f"np.{name}({text})"

    def scalar_dot(self, depth: int) -> str | None:
        n = self.choice(self.dims)
        a, b = self.array((n,), depth - 1), self.array((n,), depth - 1)
        return self.choice((f"({a} @ {b})", f"np.dot({a}, {b})", f"np.sum({a} * {b})"))

    def scalar_dynamic_slice(self, depth: int) -> str | None:
        """The sum of a slice whose length depends on an integer."""
        pool = self.arrays(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        if not pool:
            return None
        array = self.choice(pool)
        k = self.index(array.shape[0])
        cut = self.choice((f"{k}:", f":{k}", f"{k}::2", f"{k}:{k} + 2", f"{k}::-1"))
        return f"np.sum({array.name}[{cut}])"

    def scalar_masked(self, depth: int) -> str | None:
        """The sum of the entries that satisfy a condition: their number is known only when it runs."""
        pool = self.arrays(lambda v: bool(v.shape))
        if not pool:
            return None
        array = self.choice(pool)
        return f"np.sum({array.name}[{array.name} {self.choice('<>')} {self.scalar(0)}])"

    def scalar_call(self, depth: int) -> str | None:
        pool = [h for h in self.helpers if len(h.results) == 1 and h.results[0].shape is None]
        return self.call(self.choice(pool), depth) if pool else None

    # ---- calls ----

    def call(self, helper: Helper, depth: int = 1) -> str | None:
        """A call with arguments of the right shapes; None if an array that it writes into cannot be given."""
        texts = []
        for k, param in enumerate(helper.params):
            if k in helper.mutates:
                pool = self.arrays(lambda v, p=param: v.shape == p.shape and v.writable)
                if not pool:
                    return None
                texts.append(self.choice(pool).name)
            elif param.kind == "int":
                texts.append(str(self.rng.randint(param.low, param.high)))
            elif param.shape is None:
                texts.append(self.scalar(max(0, depth - 1)))
            else:
                texts.append(self.array(param.shape, max(0, depth - 1)))
        if helper.takes:
            texts.append(self.choice(("np.sin", "np.tanh", "lambda u: u * u", f"lambda u: u * {self.scalar(0)}")))
        if helper.keywords:
            if self.chance(0.4):
                texts.pop()
            else:
                texts[-1] = f"{helper.params[-1].name}={texts[-1]}"
        return f"{helper.name}({', '.join(texts)})"

    # ---- integers, indices, conditions ----

    def integer(self, depth: int) -> str:
        pool = [v.name for v in self.scalars("int")]
        if not pool or self.chance(0.15):
            return str(self.rng.randint(0, 3))
        name = self.choice(pool)
        if depth <= 0 or self.chance(0.4):
            return name
        return self.choice(
            (
                f"({name} + 1)",
                f"({name} - 1)",
                f"({name} % 3)",
                f"({name} // 2)",
                f"(2 * {name})",
                f"({name} % 2 + 1)",
                f"(-{name})",
            )
        )

    def index(self, n: int) -> str:
        """An index that is in range for an axis of n > 0 entries, negative ones included."""
        options = [str(self.rng.randrange(n)), str(-1 - self.rng.randrange(n))]
        for v in self.scalars("int"):
            for shift in (0, -1, 1):
                if not v.free and -n <= v.low + shift and v.high + shift < n:
                    options += [v.name if not shift else f"{v.name} {'+-'[shift < 0]} 1"] * 4
            if not v.free and v.low >= 0 and v.high < n:
                options += [f"{n - 1} - {v.name}", f"-1 - {v.name}"]
            options += [f"{v.name} % {n}"] * (2 if v.free else 1)
        return self.choice(options)

    def element(self, array: Var) -> str:
        assert array.shape
        parts = [self.index(n) for n in array.shape]
        if len(parts) > 1 and self.chance(0.15):
            return array.name + "".join(f"[{part}]" for part in parts)
        return f"{array.name}[{', '.join(parts)}]"

    def cut(self, n: int) -> tuple[str, int]:
        """A slice of an axis and its length."""
        options = [":", "::-1", "::2", "1:", ":-1", "-2:", ":2", "1::2", ":0:-1", "1:-1"]
        text = self.choice(options)
        parts = [int(p) if p else None for p in text.split(":")]
        return text, len(range(*slice(*parts).indices(n)))

    def test(self, depth: int) -> str:
        return self.weighted(self.table("test") if depth > 0 else self.few_of(*TEST_LEAVES), depth) or "True"

    def test_compare(self, depth: int) -> str:
        return f"({self.scalar(1)} {self.choice(('<', '>', '<=', '>=', '<', '>', '!='))} {self.scalar(0)})"

    def test_integer(self, depth: int) -> str | None:
        if not self.scalars("int"):
            return None
        return f"({self.integer(1)} {self.choice(('==', '<', '>', '!=', '>='))} {self.rng.randint(0, 3)})"

    def test_bool(self, depth: int) -> str | None:
        pool = self.scalars("bool")
        return self.choice(pool).name if pool else None

    def test_join(self, depth: int) -> str:
        return f"({self.test(depth - 1)} {self.choice(('and', 'or'))} {self.test(depth - 1)})"

    def test_not(self, depth: int) -> str:
        return f"(not {self.test(depth - 1)})"

    def test_chain(self, depth: int) -> str:
        return f"({self.scalar(0)} < {self.scalar(1)} <= {self.scalar(0)})"

    def test_any(self, depth: int) -> str | None:
        pool = self.arrays(lambda v: bool(v.shape))
        if not pool:
            return None
        array = self.choice(pool)
        return f"np.{self.choice(('any', 'all'))}({array.name} {self.choice('<>')} {self.scalar(0)})"
