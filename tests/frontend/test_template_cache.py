"""What is lowered once for each kind of operands is what would be lowered now, whatever has changed since."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.frontend.lower import inline_call
from tapegen.frontend.templates import cache
from tapegen.frontend.templates.cache import expand_template
from tapegen.ir import builders
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Const, Expr, Function, Return, Tuple, Var
from tapegen.ir.printer import function_text
from tapegen.ir.types import BOOL, FLOAT, INT, Array, Scalar
from tapegen.rules import registry

X, Y = Var("x", FLOAT), Var("y", FLOAT)
ARRAY = Var("a", Array("float64", 1))

SCALE = 2.0
TABLE = {"rate": 3}
HOLDER = SimpleNamespace(rate=4, deep=SimpleNamespace(rate=5))


class Rates:
    slope = 6

    @staticmethod
    def bend(x: Any) -> Any:
        return x * x


def inner(x: Any) -> Any:
    return math.sin(x) * SCALE


def formula(x: Any, y: Any, power: float = 2.0, *, offset: float = 1.0) -> Any:
    rates = x * HOLDER.deep.rate + y * HOLDER.rate + TABLE["rate"] * Rates.slope
    return inner(x) * power + rates * offset + Rates.bend(y)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    registry.load_awaited()  # rules that are registered later would be lost with the copy
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))
    cache.forget()
    yield
    cache.forget()


def text(inline: Callable[..., Any], func: Any, args: tuple[Expr, ...], taken: tuple[str, ...] = ()) -> str:
    """What a call becomes, as text."""
    names = NameSupply(("x", "y", "a", *taken))
    block, value = inline(func, args, {}, names)
    program = Function("f", (X, Y, ARRAY), (*block, Return((value.expr,))))
    return function_text(program) + f"next: {names.fresh('x')} {names.fresh('t')}"


def as_of_now(func: Any, *args: Expr, taken: tuple[str, ...] = ()) -> str:
    found = text(expand_template, func, args, taken)
    assert found == text(inline_call, func, args, taken)
    return found


def otherwise(x: Any, y: Any, power: float = 2.0, *, offset: float = 1.0) -> Any:
    return x - y * power * offset


CHANGES: dict[str, tuple[Any, str, Any]] = {
    "a global": (None, "SCALE", 7.0),
    "a global that is a function": (None, "inner", math.exp),
    "a global that is a container": (None, "TABLE", {"rate": 8}),
    "an item": (TABLE, "rate", 9),
    "an attribute": (HOLDER, "rate", 11),
    "an attribute of an attribute": (HOLDER.deep, "rate", 12),
    "an attribute of a class": (Rates, "slope", 13),
    "a method": (Rates, "bend", staticmethod(lambda x: x + 1.0)),
    "the text": (formula, "__code__", otherwise.__code__),
    "the text of a function it calls": (inner, "__code__", (lambda x: math.cos(x)).__code__),
    "defaults": (formula, "__defaults__", (5.0,)),
    "defaults of keywords": (formula, "__kwdefaults__", {"offset": 0.25}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_it_reads_changes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, key, value = CHANGES[name]
    before = as_of_now(formula, X, Y)
    if owner is None:
        monkeypatch.setitem(globals(), key, value)
    elif isinstance(owner, dict):
        monkeypatch.setitem(owner, key, value)
    else:
        monkeypatch.setattr(owner, key, value)
    assert as_of_now(formula, X, Y) != before
    monkeypatch.undo()
    assert as_of_now(formula, X, Y) == before


def test_a_closure_changes() -> None:
    factor = 2.0

    def scaled(x: Any) -> Any:
        return factor * x

    before = as_of_now(scaled, X)
    factor = 3.0
    assert as_of_now(scaled, X) != before


def test_functions_of_one_text_are_apart() -> None:
    def made(factor: float) -> FunctionType:
        def scaled(x: Any) -> Any:
            return factor * x

        return scaled

    assert len({as_of_now(made(factor), X) for factor in (1.5, 2.5, 3.5)}) == 3


def own(x: float) -> float:
    return x * x


def uses_own(x: Any) -> Any:
    return own(x) + 1.0


def test_a_rule_is_given_to_a_function_that_is_called() -> None:
    before = as_of_now(uses_own, X)
    tg.partials(own)(lambda x: 3.0 * x)
    assert as_of_now(uses_own, X) != before


def branching(x: Any, n: Any) -> Any:
    if isinstance(n, bool):
        return x
    if isinstance(n, int) and n == 0:
        return x * 2.0
    return x + n


def test_operands_that_are_equal_for_python_are_apart() -> None:
    consts = [Const(value) for value in (1, 1.0, True, 0, False, 0.0, -0.0, np.float64(1.0), math.nan)]
    scalars = [
        Var("y", type_)
        for type_ in (FLOAT, INT, BOOL, Scalar("float64", python=False), Scalar("float32", python=False))
    ]
    for _ in range(2):
        found = [as_of_now(branching, X, n) for n in (*consts, *scalars)]
        assert found[1] != found[0] != found[2] != found[1]
        assert found[3] != found[4]
        assert found[5] != found[6]


def product(x: Any, y: Any) -> Any:
    t = x * y
    return t + t * math.exp(t)


def test_the_same_operand_twice_and_names_that_are_taken() -> None:
    nested = builders.mul(X, Const(2.0))
    for _ in range(2):
        for args in ((X, X), (X, Y), (Y, X), (ARRAY, X), (nested, X), (X, Const(1.0)), (Const(0.0), X)):
            if args[0] is not ARRAY:
                as_of_now(product, *args)
            for taken in (("t",), ("t", "t_1", "x_1"), tuple(f"t_{k}" for k in range(9))):
                as_of_now(weighted, *args, taken=taken)


def weighted(x: Any, y: Any) -> Any:
    t = np.exp(x) * y
    s = np.sin(t)
    return s * t


def test_a_refusal_is_that_of_now() -> None:
    def refused(x: Any) -> Any:
        return [item for item in x].nothing

    for operand in (Tuple((X, Y)), Tuple((ARRAY, X)), Tuple((X, Y))):
        messages = []
        for inline in (expand_template, inline_call):
            with pytest.raises(tg.TapegenError) as caught:
                inline(refused, (operand,), {}, NameSupply())
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_rules_and_what_they_read_change_between_calls(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    @tg.partials(own)
    def slope(x: float) -> float:
        return SCALE * inner(x)

    def twice(x: float) -> float:
        return own(x) + own(2.0 * x)

    derived = functools.partial(tg.grad(twice, backend=backend), 0.3)

    def expected(scale: float, bent: Callable[[float], float]) -> Any:
        return pytest.approx(scale * (bent(0.3) + 2.0 * bent(0.6)), rel=1e-14)

    assert derived() == expected(4.0, math.sin)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert derived() == expected(9.0, math.sin)
    monkeypatch.setitem(globals(), "inner", math.cosh)
    assert derived() == expected(3.0, math.cosh)
    tg.partials(own)(lambda x: 5.0)
    assert derived() == 15.0
