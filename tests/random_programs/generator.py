"""Random programs: parameters, helpers, a body, a result that depends on most of what was computed."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

from tests.random_programs.grammar import MAX_SIZE, Budget, Helper, Shape, Var, size
from tests.random_programs.profiles import PROFILES, Profile, swarm
from tests.random_programs.program import HEADER, Program
from tests.random_programs.scalars import FUNCTIONS
from tests.random_programs.statements import Statements, indented

FAMILIES = ("scalar", "array", "test", "stmt", "loop")
PRODUCTIONS = sorted(
    [p for family in FAMILIES for p in Statements.table(family)] + [f"function_{name}" for name in FUNCTIONS]
)
# names that generated code might want for itself, names that fold together, names of things it may call
NASTY = (
    "t t_1 x_1 x_bar x_tape x_dot a_bar b_tape trips trip out out_bar value value_bar seed tape place adjoint result "
    "np_1 math_1 "
    "f_bar y_bar _ __ _t _tape t_tape i_1 k_1 counter α é ϕ λ_bar match case type print_ len_ range_ "
    "zeros sin dot sum_to strong_mul tan b_1 x_2 t_2 pullback forward backward x_bar_1 returned done stop flag n_tape"
).split()


class Names:
    """Hands out names, each one once."""

    def __init__(self, rng: random.Random, nasty: float) -> None:
        self.rng, self.nasty = rng, nasty
        self.used: set[str] = {"f", "np", "math"}

    def __call__(self, stem: str) -> str:
        if self.rng.random() < self.nasty:
            free = [name for name in NASTY if name not in self.used]
            if free:
                stem = self.rng.choice(free)
        name, k = stem, 0
        while name in self.used:
            k += 1
            name = f"{stem}{k}"
        self.used.add(name)
        return name


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, profile: str) -> None:
        self.rng = random.Random(f"{profile}/{seed}")
        self.seed = seed
        self.profile: Profile = swarm(profile, self.rng, PRODUCTIONS)
        nasty = (
            self.profile.weight("nasty_names") if self.rng.random() < 0.5 else self.profile.weight("nasty_names") / 3
        )
        self.names = Names(self.rng, nasty)
        self.dims = self.sizes()
        self.helpers: list[Helper] = []
        self.arguments: list[str] = []
        self.single = self.rng.random() < self.profile.weight("single")

    def sizes(self) -> tuple[int, ...]:
        pool = [2, 3, 4, 3]
        if self.rng.random() < self.profile.weight("unit_size"):
            pool.append(1)
        if self.rng.random() < self.profile.weight("zero_size"):
            pool.append(0)
        return tuple(self.rng.sample(pool, 2))

    def scope(self, statements: int) -> Statements:
        return Statements(self.rng, self.profile, Budget(statements), self.names, self.helpers, dims=self.dims)

    # ---- parameters ----

    def shape(self) -> Shape:
        while True:
            rank = self.rng.choice((1, 1, 1, 2, 2, 3, 0)) if self.rng.random() < 0.9 else 1
            one = self.profile.weight("unit_size") / 3
            shape = tuple(1 if self.rng.random() < one else self.rng.choice(self.dims) for _ in range(rank))
            if size(shape) <= MAX_SIZE:
                return shape

    def number(self) -> str:
        value = self.rng.choice((self.rng.uniform(-2, 2), self.rng.gauss(0, 1), self.rng.randint(-4, 4) / 2))
        return repr(round(value, 3))

    def nested(self, shape: Shape, item: Callable[[], str]) -> str:
        if not shape:
            return item()
        return f"[{', '.join(self.nested(shape[1:], item) for _ in range(shape[0]))}]"

    def array_text(self, shape: Shape) -> str:
        """An array argument, in one of many memory layouts."""
        dtype = ", dtype=np.float32" if self.single else ""
        layout = self.rng.random() < self.profile.weight("layout")
        if 0 in shape:
            return f"np.zeros({shape}{dtype})"
        if not shape or not layout:
            return f"np.array({self.nested(shape, self.number)}{dtype})"
        kind = self.rng.choice(("reversed", "strided", "fortran", "columns", "frozen"))
        if kind == "reversed":
            return f"np.array({self.nested(shape, self.number)}{dtype})[::-1]"
        if kind == "strided":
            return f"np.array({self.nested((*shape[:-1], 2 * shape[-1]), self.number)}{dtype})[..., ::2]"
        if kind == "fortran":
            return f"np.asfortranarray(np.array({self.nested(shape, self.number)}{dtype}))"
        if kind == "columns":
            return f"np.array({self.nested(shape[::-1], self.number)}{dtype}).T"
        return f"frozen(np.array({self.nested(shape, self.number)}{dtype}))"

    def parameter(self, kind: str) -> Var:
        if kind == "float":
            text = self.number()
            self.arguments.append(text if self.rng.random() < 0.85 else f"np.float64({text})")
            return Var(self.names(self.rng.choice("xyzpq")), "float", value=float(text))
        if kind == "int":
            value = self.rng.randint(0, 4)
            self.arguments.append(str(value))
            return Var(self.names(self.rng.choice("nmk")), "int", low=0, high=4, value=value)
        if kind == "bool":
            self.arguments.append(self.rng.choice(("True", "False")))
            return Var(self.names("flag"), "bool")
        if kind == "index":
            n, count = max(1, min(self.dims)), self.rng.choice((1, 2, 3, *self.dims))
            items = [self.rng.randrange(-n, n) for _ in range(max(1, count))]
            self.arguments.append(f"np.array({items})")
            return Var(self.names("idx"), "int", (len(items),), low=-n, high=n - 1)
        if kind == "mask":
            shape = (self.rng.choice(self.dims),)
            self.arguments.append(
                f"np.array({self.nested(shape, lambda: self.rng.choice(('True', 'False')))}, dtype=np.bool_)"
            )
            return Var(self.names("mask"), "bool", shape)
        shape = self.shape()
        text = self.array_text(shape)
        self.arguments.append(text)
        return Var(self.names(self.rng.choice("abuvw")), "float", shape, writable=not text.startswith("frozen"))

    def parameters(self) -> list[Var]:
        kinds = [self.rng.choice(("float", "array", "array")) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        if self.rng.random() < self.profile.weight("integer_param"):
            kinds.append(self.rng.choice(("int", "int", "int", "index", "mask", "bool")))
        self.rng.shuffle(kinds)
        return [self.parameter(kind) for kind in kinds]

    # ---- results ----

    def result(self, scope: Statements, shape: Shape | None) -> str:
        """A value that most variables reach."""
        terms = []
        for v in list(scope.env.values()):
            if v.kind != "float" or self.rng.random() < 0.15:
                continue
            if v.shape == shape:
                terms.append(v.name if shape is None or self.rng.random() < 0.6 else f"{v.name} * {scope.scalar(0)}")
            elif v.shape is None:
                terms.append(f"{v.name}")
            else:
                terms.append(
                    self.rng.choice((f"np.sum({v.name})", f"np.sum({v.name} * {v.name})", f"0.5 * {v.name}.sum()"))
                )
        self.rng.shuffle(terms)
        terms = terms[:6] or [scope.scalar(1)]
        text = " + ".join(terms)
        if shape is None:
            return text
        plain = [v.name for v in scope.arrays(lambda v: v.shape == shape)]
        if plain and self.rng.random() < 0.3:
            return self.rng.choice(plain)
        return f"{scope.array(shape, 1)} + ({text})"

    def returner(self, scope: Statements, shapes: list[Shape | None]) -> Callable[[], str]:
        def text() -> str:
            return "return " + ", ".join(self.result(scope, shape) for shape in shapes)

        return text

    # ---- functions ----

    def helper(self) -> tuple[list[str], Helper]:
        """A function to call: it may write into arguments, call earlier helpers, itself or a function given."""
        kind = self.rng.choice(("plain", "plain", "plain", "recursive", "takes", "default"))
        name = self.names(self.rng.choice(("helper", "step", "g", "h")))
        scope = self.scope(self.rng.randint(1, 5))
        params, mutates = [], set()
        for k in range(self.rng.choice((1, 2, 2, 3))):
            if self.rng.random() < 0.45:
                shape = self.shape() or (self.dims[0],)
                writes = self.rng.random() < 0.5
                params.append(Var(self.names("a"), "float", shape, writable=writes))
                if writes:
                    mutates.add(k)
            else:
                params.append(Var(self.names("u"), "float"))
        arrays = [v.shape for v in params if v.shape is not None]
        shapes: list[Shape | None] = [
            self.rng.choice([None, None, *arrays]) for _ in range(self.rng.choice((1, 1, 1, 2)))
        ]
        head = [v.name for v in params]
        signature, keywords, takes = head, False, ""
        scope.env = {v.name: v for v in params}
        if kind == "default" and params[-1].shape is None and len(params) > 1:
            keywords, signature = True, [*head[:-1], f"{head[-1]}=0.5"]
        if kind == "takes" and not keywords:
            takes = self.names("function")
            signature = [*head, takes]
        scope.returns = self.returner(scope, shapes) if self.rng.random() < 0.4 else None
        body, _ = scope.block(scope.budget.statements)
        if takes:
            x = self.names("y")
            body.append(f"{x} = {takes}({scope.scalar(1)})")
            scope.define(Var(x, "float"))
        final = self.returner(scope, shapes)()
        if kind == "recursive" and not keywords and shapes == [None] and params[0].shape is None and not mutates:
            depth = self.names("depth")
            params.append(Var(depth, "int", high=3))
            head, signature = [*head, depth], [*head, depth]
            again = f"{name}({', '.join(['0.5 * ' + head[0], *head[1:-1], depth + ' - 1'])})"
            body = [f"if {depth} > 0:", f"    return {again} + {head[0]}", *body]
        helper = Helper(
            name, tuple(params), tuple(Var("", "float", s) for s in shapes), frozenset(mutates), keywords, takes
        )
        return [f"def {name}({', '.join(signature)}):", *indented([*body, final]), "", ""], helper

    def program(self) -> Program:
        top: list[str] = []
        if self.rng.random() < self.profile.weight("helpers"):
            for _ in range(self.rng.choice((1, 1, 2))):
                lines, helper = self.helper()
                top += lines
                self.helpers.append(helper)
        params = self.parameters()
        scope = self.scope(min(40, 1 + int(self.rng.expovariate(1 / 7))))
        scope.env = {v.name: v for v in params}
        if self.rng.random() < 0.2:
            top = [
                f"SCALE = {self.number()}",
                f"TABLE = np.array([{self.number()}, {self.number()}, {self.number()}])",
                "",
                "",
                *top,
            ]
            scope.define(Var("SCALE", "float"))
            scope.define(Var("TABLE", "float", (3,), writable=False))
            scope.frozen |= {"SCALE", "TABLE"}
        arrays = [v.shape for v in params if v.shape and v.kind == "float"]
        shapes: list[Shape | None] = [None]
        if self.rng.random() < 0.35:
            shapes = [self.rng.choice([None, *arrays]) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        final = self.returner(scope, shapes)
        scope.returns = final
        body, _ = scope.block(scope.budget.statements)
        body.append(final())
        source = (
            HEADER + "\n\n" + "\n".join([*top, f"def f({', '.join(v.name for v in params)}):", *indented(body)]) + "\n"
        )
        floats = [k for k, v in enumerate(params) if v.kind == "float"]
        if len(floats) > 1 and self.rng.random() < 0.2:
            floats = sorted(self.rng.sample(floats, self.rng.randint(1, len(floats) - 1)))
        return Program(tidy(source), tuple(self.arguments), tuple(floats), self.profile.name, self.seed, scope.fault)


def tidy(source: str) -> str:
    """The text as a person would set it: no needless parentheses, blank lines around functions."""
    tree = ast.parse(source)
    parts: list[str] = []
    for node in tree.body:
        gap = "\n\n" if isinstance(node, ast.FunctionDef) else ""
        parts.append(gap + ast.unparse(node))
    return "\n".join(parts) + "\n"


def generate(seed: int, profile: str) -> Program:
    """The program of a seed: the same text on every machine."""
    return Writer(seed, profile).program()


def profiles() -> tuple[str, ...]:
    return tuple(PROFILES)


__all__ = ["NASTY", "PRODUCTIONS", "Any", "generate", "profiles", "tidy"]
