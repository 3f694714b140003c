"""Hypothesis strategy for small programs with loops, views and subscripts, as text for `tests.ir_text`."""

from hypothesis import strategies as st

ARRAYS = {"a": 1, "b": 1, "m": 2}
SIZE = 14
"""Size of every axis: larger than any subscript that the programs form on purpose."""


class _Writer:
    def __init__(self, draw: st.DrawFn, *, exact: bool) -> None:
        self.draw, self.exact = draw, exact
        self.lines: list[str] = []
        self.count = 0
        self.arrays = [dict(ARRAYS)]  # name -> rank, by block
        self.integers: list[list[str]] = [[] if exact else ["n"]]
        self.floats: list[list[str]] = [["0.5"]]

    def choose(self, *options):
        return self.draw(st.sampled_from(options))

    def fresh(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def integer(self) -> str:
        names = [name for block in self.integers for name in block]
        parts = []
        for name in self.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []:
            parts.append(self.choose(name, name, name, f"2 * {name}", f"(0 - {name})"))
        constant = self.choose(0, 0, 1, 2, -1)
        if not parts:
            return str(constant)
        return " + ".join([*parts, str(constant)]) if constant else " + ".join(parts)

    def subscript(self) -> str:
        kinds = ["integer"] * 8 + ["last", "divided", "least"]
        match self.choose(*kinds, *([] if self.exact else ["loaded"])):
            case "last":
                return self.choose("-1", "-2")
            case "divided":
                return self.choose(f"({self.integer()}) // 2", f"({self.integer()}) % 3")
            case "least":
                return self.choose(f"min({self.integer()}, 3)", f"max({self.integer()}, 1)", f"abs({self.integer()})")
            case "loaded":
                return "p[1]"
        return self.integer()

    def slice(self) -> str:
        lo, hi = (self.choose("", self.integer(), str(self.choose(1, 3, -3))) for _ in range(2))
        return f"{lo}:{hi}" + self.choose("", "", "", ":2", ":-1", ":-3")

    def index(self, rank: int) -> tuple[str, int]:
        """An index and the rank of what it selects."""
        items = []
        left = 0
        for _ in range(rank):
            if self.choose(*"iiiiis") == "s":
                items.append(self.slice())
                left += 1
            else:
                items.append(self.subscript())
        if rank == 2 and self.choose(*"yyyyn") == "n":
            left += ":" not in items.pop()
        return ", ".join(items), left

    def condition(self) -> str:
        test = f"{self.integer()} {self.choose('<', '<=', '>', '>=', '==', '!=')} {self.integer()}"
        match self.choose("plain", "plain", "and", "or", "not", *([] if self.exact else ["float"])):
            case "and":
                return f"{test} and {self.integer()} < {self.integer()}"
            case "or":
                return f"{test} or {self.integer()} < {self.integer()}"
            case "not":
                return f"not ({test})"
            case "float":
                return self.choose("x < 0.0", f"x < 0.0 and {test}", f"x < 0.0 or {test}")
        return test

    def array(self) -> tuple[str, int]:
        return self.choose(*(item for block in self.arrays for item in block.items()))

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, depth: int, budget: int, *, in_loop: bool = False) -> None:
        self.arrays.append({})
        self.integers.append([])
        self.floats.append([])
        before = len(self.lines)
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth, budget, in_loop=in_loop)
        if len(self.lines) == before:
            self.emit(depth, "pass")
        self.arrays.pop()
        self.integers.pop()
        self.floats.pop()

    def statement(self, depth: int, budget: int, *, in_loop: bool) -> None:
        kinds = ["read"] * 3 + ["write"] * 3 + ["view"]
        if budget:
            kinds += ["for"] * 3 + ["if", "while"]
        if not self.exact:
            kinds += ["fresh", "choice", "integer", "whole"] + (["leave"] if in_loop else [])
        getattr(self, f"_{self.choose(*kinds)}")(depth, budget)

    def _read(self, depth: int, budget: int) -> None:
        name, rank = self.array()
        index, left = self.index(rank)
        if left == 0:
            value = self.fresh("x")
            self.emit(depth, f"{value} = {name}[{index}]")
            self.floats[-1].append(value)
        else:
            view = self.fresh("v")
            self.emit(depth, f"{view} = {name}[{index}]")
            self.emit(depth, f"{self.fresh('y')} = np.exp({view})")
            self.arrays[-1][view] = left

    def _write(self, depth: int, budget: int) -> None:
        name, rank = self.array()
        index, _ = self.index(rank)
        value = self.choose(*(value for block in self.floats for value in block))
        self.emit(depth, f"{name}[{index}] {self.choose('=', '=', '+=')} {value}")

    def _view(self, depth: int, budget: int) -> None:
        name, rank = self.array()
        made = self.choose("index", "index", "T", "flip", *([] if self.exact else ["ravel"]))
        view = self.fresh("v")
        left = rank
        if made == "index":
            index, left = self.index(rank)
            if left == 0:
                return
            self.emit(depth, f"{view} = {name}[{index}]")
        elif made == "T":
            self.emit(depth, f"{view} = {name}.T")
        else:
            self.emit(depth, f"{view} = np.{made}({name})")
            left = 1 if made == "ravel" else rank
        self.arrays[-1][view] = left

    def _for(self, depth: int, budget: int) -> None:
        counter = self.fresh("i")
        outer = [name for block in self.integers for name in block]
        stop = self.choose("3", "4", *(f"{name} + 1" for name in outer), *outer)
        bounds = self.choose(stop, stop, f"1, {stop}", f"{stop}, 0, -1", f"0, {stop}, 2", f"{stop}, -1, -2")
        self.emit(depth, f"for {counter} in range({bounds}):")
        self.integers.append([counter])
        self.block(depth + 1, budget - 1, in_loop=True)
        self.integers.pop()

    def _while(self, depth: int, budget: int) -> None:
        counter = self.fresh("k")
        start, step, stop = self.choose(("0", "+ 1", "< 3"), ("3", "- 1", "> 0"), ("1", "+ 2", "< 6"))
        if self.integers[0] == ["n"] and self.choose(True, False):
            stop = "< n" if step != "- 1" else stop
        self.emit(depth, f"{counter} = {start}")
        self.emit(depth, f"while {counter} {stop}:")
        self.integers.append([counter])
        self.block(depth + 1, budget - 1)
        self.integers.pop()
        self.emit(depth + 1, f"{counter} = {counter} {step}")

    def _if(self, depth: int, budget: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.block(depth + 1, budget - 1)
        if self.choose(True, False):
            self.emit(depth, "else:")
            self.block(depth + 1, budget - 1)

    def _leave(self, depth: int, budget: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.block(depth + 1, 0)
        self.emit(depth + 1, self.choose("break", "continue"))

    def _fresh(self, depth: int, budget: int) -> None:
        name = self.fresh("u")
        self.emit(depth, f"{name} = {self.choose('np.zeros(14)', 'np.zeros_like(a)', 'np.exp(b)')}")
        self.arrays[-1][name] = 1

    def _choice(self, depth: int, budget: int) -> None:
        vectors = [name for block in self.arrays for name, rank in block.items() if rank == 1]
        name = self.fresh("c")
        first, second = self.choose(*vectors), self.choose(*vectors)
        if self.choose(True, False):
            self.emit(depth, f"{name} = {first} if {self.condition()} else {second}")
        else:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, f"{name} = {first}")
            self.emit(depth, "else:")
            self.emit(depth + 1, f"{name} = {second}")
        self.arrays[-1][name] = 1

    def _integer(self, depth: int, budget: int) -> None:
        name = self.fresh("j")
        value = self.choose(
            self.integer(), self.subscript(), f"1 if {self.condition()} else 2", "p[2]", "a.shape[0] - 13"
        )
        self.emit(depth, f"{name} = {value}")
        self.integers[-1].append(name)

    def _whole(self, depth: int, budget: int) -> None:
        name, _ = self.array()
        self.emit(depth, self.choose(f"{name} += 0.5", f"{self.fresh('y')} = np.exp({name})"))


@st.composite
def programs(draw: st.DrawFn, *, exact: bool = False) -> str:
    """A program; `exact` ones have constant sizes and bounds, and no condition but on counters."""
    writer = _Writer(draw, exact=exact)
    writer.block(1, 3)
    writer.block(1, 2)
    if not exact:
        return "\n".join(["def f(a: A1, b: A1, m: A2, p: I1, x: F, n: I):", *writer.lines])
    places = [f"    {name} = np.zeros({'14' if rank == 1 else '(14, 14)'})" for name, rank in ARRAYS.items()]
    return "\n".join(["def f():", *places, *writer.lines])
