"""Grow a program: propose a statement, run the whole program, keep the statement if nothing went wrong."""

from __future__ import annotations

import contextlib
import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.grown import templates, values
from tests.grown.program import HEAD, Program, Statement

HOLE = re.compile(r"\{\{|\}\}|\{(\w+)\}")
POOL = "a b c d e g h o p q r s t u y z acc buf col cur cut low out row tmp tot".split()
HERE = Statement("__here__(locals())")
PAIR = Statement("@dataclasses.dataclass\nclass Pair:", [Statement("a: object"), Statement("b: object")])
TRIPS = 400
TRIES = 10


class Unfilled(Exception):
    """No value at hand fits a hole."""


class TooLong(Exception):
    """A program that loops too often."""


def tags_of(value: Any) -> str:
    """Letters of the holes that a value may fill (see `templates`)."""
    if isinstance(value, np.ndarray):
        found = "QR"
        if value.dtype.kind == "f":
            found += "A" + ("V" if value.ndim == 1 and value.size else "") + ("M" if value.ndim == 2 else "")
            found += "S" if value.ndim == 0 else ""
            found += "T" if value.flags.writeable else ""
        elif value.dtype.kind == "c":
            found += "Z"
        elif value.dtype.kind == "b":
            found += "X"
        else:
            found += "r"
        return found
    if values.is_number(value):
        return "SQ"
    if values.is_integer(value):
        return "I"
    if values.is_complex(value):
        return "Z"
    if isinstance(value, list):
        return "LH"
    if isinstance(value, tuple):
        return "L"
    if isinstance(value, dict):
        return "D"
    if hasattr(type(value), "__dataclass_fields__"):
        return "P"
    return ""


def paths_of(names: dict[str, Any]) -> list[tuple[str, str]]:
    """Expressions that read the values at hand and their parts, with the holes that they fill."""
    found = []
    for name, value in names.items():
        if name.startswith("__") or callable(value):
            continue
        letters = tags_of(value)
        found.append((name, letters + ("U" if values.is_number(value) else "") + "Oo"))
        for part, child in list(values.children(value))[:3]:
            found.append((name + part, tags_of(child) + ("U" if values.is_number(child) else "") + "O"))
            for inner, grandchild in list(values.children(child))[:2]:
                found.append((name + part + inner, tags_of(grandchild) + "O"))
    return found


class Grower:
    """Grows one program.

    Parameters
    ----------
    seed : int
        The same seed gives the same program.
    size : int
        About how many statements.
    """

    def __init__(self, seed: int, size: int = 10) -> None:
        self.rng = random.Random(seed)
        self.size = size
        self.paths: list[tuple[str, str]] = []
        self.outer: list[tuple[str, str]] = []
        self.seen: dict[str, Any] | None = None
        self.last: dict[str, Any] = {}
        self.place = ""
        self.trips = 0
        self.names = 0
        self.program = Program(self.parameters(), helpers=[PAIR])

    # ---- the beginning and the end -----------------------------------------------------------------------------------

    def number(self) -> str:
        """A literal."""
        return str(round(self.rng.uniform(0.2, 2.0) * self.rng.choice([1, 1, 1, -1]), 2))

    def given(self) -> str:
        """A number of an argument: none of those at which templates bend, so that there is a derivative."""
        value = float(self.number())
        return str(value if value * 2 % 1 else round(value + 0.01, 2))

    def numbers(self, *shape: int) -> str:
        """A literal array."""
        if len(shape) == 1:
            return "[" + ", ".join(self.given() for _ in range(shape[0])) + "]"
        return "[" + ", ".join(self.numbers(*shape[1:]) for _ in range(shape[0])) + "]"

    def parameters(self) -> list[tuple[str, str]]:
        """Arguments, most of them arrays and numbers."""
        kinds = [
            lambda: ("v", f"np.array({self.numbers(3)})"),
            lambda: ("w", f"np.array({self.numbers(3)})"),
            lambda: ("m", f"np.array({self.numbers(*self.rng.choice([(3, 3), (3, 3), (2, 3), (3, 1), (1, 3)]))})"),
            lambda: ("x", self.given()),
            lambda: ("l", f"np.array({self.numbers(self.rng.choice([1, 2, 4]))})"),
        ]
        rare = [
            lambda: ("f", f"np.array({self.numbers(3)}, dtype=np.float32)"),
            lambda: ("j", f"np.array({self.given()})"),
            lambda: ("i", f"[{self.given()}, {self.given()}]"),
            lambda: ("i", f"[np.array({self.numbers(2)}), np.array({self.numbers(3)})]"),
            lambda: ("da", f"{{'a': np.array({self.numbers(3)}), 'b': {self.given()}}}"),
            lambda: ("pa", f"Pair(np.array({self.numbers(3)}), {self.given()})"),
            lambda: ("tu", f"(np.array({self.numbers(2)}), {self.given()})"),
            lambda: ("st", f"np.array({self.numbers(5)})[::2]"),
            lambda: ("fo", f"np.asfortranarray({self.numbers(2, 3)})"),
            lambda: ("rv", f"np.array({self.numbers(3)})[::-1]"),
            lambda: ("nn", str(self.rng.randint(1, 3))),
            lambda: ("ni", "np.array([1, 3, 2])"),
            lambda: ("sc", f"np.float64({self.given()})"),
            lambda: ("cu", f"np.array({self.numbers(2, 2, 2)})"),
        ]
        chosen = [kinds[0](), *(make() for make in self.rng.sample(kinds[1:], self.rng.choice([0, 1, 1, 2, 2, 3])))]
        chosen += [make() for make in self.rng.sample(rare, self.rng.choice([0, 0, 1, 1, 2]))]
        return list(dict(chosen).items())

    def grow(self) -> Program:
        """The program."""
        program = self.program
        if not self.advance(program.body):
            raise RuntimeError("arguments that cannot be made")
        self.block(program.body, self.size, "main")
        self.finish()
        if not re.search(r"\bPair\(", program.text().replace("class Pair", "")):
            program.helpers.remove(PAIR)
        return program

    def finish(self) -> None:
        """Choose what is returned: something that depends on many values."""
        program, rng = self.program, self.rng
        self.run([])
        named = [(name, value) for name, value in self.last.items() if not name.startswith("__")]
        if rng.random() < 0.2:
            program.form = rng.choice(["tuple", "list", "dict"])
        rng.shuffle(named)
        for name, value in named[: rng.choice([2, 3, 4, 5])]:
            if program.form != "number" and rng.random() < 0.7:
                end = name if values.is_real(value) else None
            else:
                end = self.end(name, value)
            if end is None:
                continue
            program.results.append(end)
            if not self.holds(program):
                program.results.pop()
        if not program.results:
            program.form, program.results = "number", ["np.sum(v * v)"]
            if not self.holds(program):  # v has become something else
                program.results = ["0.5"]

    def end(self, name: str, value: Any) -> str | None:
        """A term of the result."""
        if values.is_number(value):
            kind = "number"
        elif values.is_real(value):
            kind = "vector" if np.ndim(value) == 1 and np.size(value) and self.rng.random() < 0.4 else "array"
        elif values.is_complex(value):
            kind = "complex"
        elif isinstance(value, dict):
            kind = "dict"
        elif isinstance(value, list | tuple):
            kind = "many"
        elif hasattr(type(value), "__dataclass_fields__"):
            return f"np.sum({name}.a)"
        else:
            return None
        return self.rng.choice(templates.ENDS[kind]).replace("{q}", name)

    def holds(self, program: Program) -> bool:
        """Whether the result of a program is made of floating numbers alone."""
        found: list[Any] = []
        try:
            result = self.execute(program.text(), found)
        except Exception:
            return False
        return all(values.is_real(leaf) for leaf in values.leaves(result)) and values.tame(result)

    # ---- running -----------------------------------------------------------------------------------------------------

    def execute(self, text: str, found: list[Any]) -> Any:
        """Run a program; whatever warns raises."""
        module: dict[str, Any] = {"__name__": __name__, "__here__": self.here, "__end__": self.end_reached}
        module["__tick__"] = self.tick
        self.seen, self.trips = None, 0
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            exec(compile(text, "<growing>", "exec"), module)
            return module["f"](*module["arguments"]())

    def run(self, block: list[Statement] | None = None) -> bool:
        """Run the program up to its end, where all values are looked at."""
        text = []
        for line in self.program.text().splitlines():
            if line.lstrip().startswith("return ") and line.startswith("    return 0.0"):
                text.append("    return __end__(locals())")
                continue
            text.append(line)
            stripped = line.lstrip()
            if stripped.startswith(("for ", "while ")) and stripped.endswith(":"):
                text.append(" " * (len(line) - len(stripped) + 4) + "__tick__()")
        self.last = {}
        try:
            return self.execute("\n".join(text) + "\n", []) is True
        except Exception:
            return False

    def here(self, names: dict[str, Any]) -> None:
        """Called where the program grows."""
        kept = {name: value for name, value in names.items() if not name.startswith("__")}
        if not all(values.tame(value) for value in kept.values()):
            raise OverflowError
        if self.seen is None:
            self.seen = kept
            self.paths_seen = paths_of(kept)

    def end_reached(self, names: dict[str, Any]) -> bool:
        """Called at the end."""
        self.last = {name: value for name, value in names.items() if not name.startswith("__")}
        return all(values.tame(value) for value in self.last.values())

    def tick(self) -> None:
        """Called on each iteration of a loop."""
        self.trips += 1
        if self.trips > TRIPS:
            raise TooLong

    def advance(self, block: list[Statement]) -> bool:
        """Whether the program runs, and comes to the end of a block; then what is at hand there is known."""
        block.append(HERE)
        try:
            fine = self.run()
        finally:
            block.pop()
        if not fine or self.seen is None:
            return False
        self.paths = self.paths_seen
        return True

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: list[Statement], count: int, kind: str, depth: int = 0) -> None:
        """Grow statements at the end of a block."""
        for _ in range(count):
            for _ in range(TRIES):
                before = (len(block), self.paths, self.outer, len(self.program.helpers), self.names)
                try:
                    if self.add(block, kind, depth):
                        break
                except Unfilled:
                    pass
                del block[before[0] :]
                self.paths, self.outer = before[1], before[2]
                del self.program.helpers[before[3] :]

    def add(self, block: list[Statement], kind: str, depth: int) -> bool:
        """Add one statement; whether the program still runs."""
        roll = self.rng.random()
        inner = depth < 2
        if roll < 0.10 and inner:
            return self.branch(block, kind, depth)
        if roll < 0.18 and inner:
            return self.loop(block, depth)
        if roll < 0.20 and inner:
            return self.while_loop(block, depth)
        if roll < 0.25 and inner:
            return self.helper(block, depth, nested=self.rng.random() < 0.5)
        if roll < 0.29 and kind == "loop":
            return self.leave(block, self.rng.choice(["break", "continue", "continue"]))
        if roll < 0.31 and depth and kind != "helper":
            return self.leave(block, f"return {self.fill('{S} * {C}')}")
        block.append(Statement(self.fill(self.rng.choice(templates.STATEMENTS))))
        return self.advance(block)

    def leave(self, block: list[Statement], text: str) -> bool:
        """An early end, under a condition."""
        block.append(Statement(f"if {self.fill('{B}')}:", [Statement(text)]))
        return self.advance(block)

    def branch(self, block: list[Statement], kind: str, depth: int) -> bool:
        """An `if`: its branches grow as if they were taken, then it gets its condition."""
        condition = self.fill("{B}")
        statement = Statement("if True:", [])
        block.append(statement)
        if not self.advance(statement.body):
            return False
        self.block(statement.body, self.rng.choice([1, 1, 2]), kind, depth + 1)
        if self.rng.random() < 0.5:
            statement.text = "if False:"
            other: list[Statement] = []
            statement.more.append(("else:", other))
            if not self.advance(other):
                return False
            self.block(other, self.rng.choice([1, 1, 2]), kind, depth + 1)
        statement.text = f"if {condition}:"
        return self.advance(block)

    def loop(self, block: list[Statement], depth: int) -> bool:
        """A `for`."""
        statement = Statement(self.fill(self.rng.choice(templates.LOOPS)), [])
        block.append(statement)
        if not self.advance(statement.body):
            return False
        self.block(statement.body, self.rng.choice([1, 2, 2, 3]), "loop", depth + 1)
        if self.rng.random() < 0.08:
            other: list[Statement] = []
            statement.more.append(("else:", other))
            if self.advance(other):
                self.block(other, 1, "main", depth + 1)
            else:
                statement.more.pop()
        return self.advance(block)

    def while_loop(self, block: list[Statement], depth: int) -> bool:
        """A `while` with a counter."""
        counter = f"k{self.names}"
        self.names += 1
        block.append(Statement(f"{counter} = 0"))
        test = self.rng.choice(
            [f"{counter} < 3", f"{counter} < 2 and {self.fill('{B}')}", f"{self.fill('{B}')} and {counter} < 3"]
        )
        statement = Statement(f"while {test}:", [Statement(f"{counter} += 1")])
        block.append(statement)
        if not self.advance(statement.body):
            return False
        self.block(statement.body, self.rng.choice([1, 2, 2]), "loop", depth + 1)
        return self.advance(block)

    def helper(self, block: list[Statement], depth: int, nested: bool) -> bool:
        """A function, with a call of it in front of which (or of `f`) it is defined."""
        name = f"fn{self.names}"
        self.names += 1
        count = self.rng.choice([1, 2, 2, 3])
        given = [self.fill("{O}") for _ in range(count)]
        params = list("xyz"[:count]) if not nested else self.rng.sample(POOL, count)
        head = ", ".join(params)
        if self.rng.random() < 0.2:
            head = ", ".join(params[:-1] + [f"{params[-1]}={self.number()}"])
        returned = Statement("return None")
        body: list[Statement] = []
        define = Statement(f"def {name}({head}):", body)
        (block if nested else self.program.helpers).append(define)
        if self.rng.random() < 0.15:
            given[-1] = f"{params[-1]}={given[-1]}"
        call = f"{name}({', '.join(given)})"
        statement = Statement(call)
        block.append(statement)
        before, outside = self.paths, self.outer
        if not self.advance(body):
            return False
        if nested:
            self.outer = [(text, letters.replace("o", "")) for text, letters in before]
        else:
            self.outer = []
        self.block(body, self.rng.choice([1, 2, 3]), "helper", depth + 1)
        try:
            returned.text = (
                f"return {self.fill(self.rng.choice(['{E}', '{O}', '{O}', '{Q}', '{O}, {O}', '[{Q}, {Q}]']))}"
            )
            body.append(returned)
        except Unfilled:
            return False
        self.outer, self.paths = outside, before
        form = self.rng.choice(["{n} = ", "{n} = ", "{n} = ", "{o} += ", "", "{n}, {n} = ", "{T}[{s}] = "])
        statement.text = self.fill(form) + call
        if not self.advance(block):
            statement.text = call
            return self.advance(block)
        return True

    # ---- holes -------------------------------------------------------------------------------------------------------

    def fill(self, template: str, depth: int = 0) -> str:
        """A template with its holes filled."""

        def filled(match: re.Match[str]) -> str:
            if match[0] in ("{{", "}}"):
                return match[0][0]
            return self.hole(match[1], depth)

        return HOLE.sub(filled, template)

    def pick(self, letters: str) -> str:
        """A value at hand; the later ones more often."""
        fitting = [text for text, tags in self.outer + self.paths if any(letter in tags for letter in letters)]
        if not fitting:
            raise Unfilled
        return fitting[max(self.rng.randrange(len(fitting)), self.rng.randrange(len(fitting)))]

    def hole(self, letter: str, depth: int) -> str:
        """Something for a hole."""
        rng = self.rng
        simple = {
            "F": templates.UNARY,
            "G": templates.BINARY,
            "m": templates.MATH,
            "r": templates.REDUCTIONS,
            "dt": templates.DTYPES,
            "s": templates.SUBSCRIPTS,
            "K": ["0", "0", "-1", "1", "None"],
            "J": [
                "[0, 2]",
                "[0, 0, 1]",
                "[1]",
                "np.array([2, 0, 1])",
                "[-1, 0]",
                "[[0, 1], [1, 0]]",
                "slice(None, 2)",
            ],
        }
        if letter in simple:
            return rng.choice(simple[letter])
        if letter in ("n", "n2"):
            mine = [text for text, tags in self.paths if "o" in tags and not re.fullmatch(r"k\d+", text)]
            return rng.choice(mine) if mine and rng.random() < 0.35 else rng.choice(POOL)
        if letter == "i":
            return rng.choice(["i", "k", "n"])
        if letter == "C":
            return self.number()
        if letter == "I":
            return (
                self.pick("I")
                if rng.random() < 0.3 and any("I" in tags for _, tags in self.paths)
                else rng.choice("0112")
            )
        if letter == "B":
            return self.fill(rng.choice(templates.CONDITIONS), depth + 1)
        if letter == "X":
            if rng.random() < 0.2 and any("X" in tags for _, tags in self.paths):
                return self.pick("X")
            return "(" + self.fill(rng.choice(templates.MASKS), depth + 1) + ")"
        if letter == "E":
            if depth > 2:
                return self.pick("Q")
            return self.fill(rng.choice(templates.EXPRESSIONS), depth + 1)
        if letter == "R":
            return self.pick("Rr")
        if letter in "HWY":
            chosen = self.pick({"H": "H", "W": "D", "Y": "P"}[letter])
            if rng.random() < 0.85 and chosen[:2].rstrip(".[") in dict(self.program.parameters):
                raise Unfilled  # structures of the caller are seldom changed
            return chosen
        if letter == "Q":
            if rng.random() < 0.06:
                return self.pick("QrIXZ")
            return self.pick("S") if rng.random() < 0.2 else self.pick("Q")
        if letter == "S" and rng.random() < 0.2:
            return self.pick("V") + rng.choice(["[0]", "[-1]", "[1]", ".sum()"])
        if letter in ("A", "V", "M", "S") and depth < 2 and rng.random() < 0.12:
            return "(" + self.fill(rng.choice(templates.EXPRESSIONS), depth + 1) + ")"
        if letter == "same":
            return self.place
        if letter == "T":
            self.place = self.pick("Tr" if rng.random() < 0.08 else "T")
            return self.place
        return self.pick(letter)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of programs."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def grown(seed: int, size: int | None = None) -> Program:
    """The program of a seed."""
    with quiet():
        sizes = random.Random(seed).choice([4, 6, 8, 10, 14])
        return Grower(seed, size or sizes).grow()


__all__ = ["HEAD", "Grower", "grown", "quiet"]
