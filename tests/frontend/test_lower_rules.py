"""Bodies of rules, written out for IR operands, compute what the bodies themselves compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tapegen as tg
from tapegen.errors import NotDifferentiable
from tapegen.frontend.lower import inline_call
from tapegen.frontend.values.pytree import Leaf, StaticValue, Struct, leaf_type
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Const, Expr, Function, Return, Slice, Tuple, Var
from tapegen.ir.printer import block_text
from tapegen.ir.types import INT, Array, Scalar
from tapegen.rules import all_rules, gradient_modifiers
from tapegen.rules.rule import Rule
from tapegen.testing import default_cases
from tests.interpret import evaluate, run
from tests.rule_cases import VARIANTS, call
from tests.scipy_cases import SCIPY_VARIANTS

PROBABILITIES = np.array([0.2, 0.5, 0.3])
OWN: dict[Any, list[Any]] = {  # functions that the tests of values look at elsewhere
    gradient_modifiers.scale_gradient: [call(np.array([0.5, -2.0]), 0.5)],
    gradient_modifiers.clip_gradient: [call(np.array([0.5, -2.0]), -1.0, 1.0)],
    stats.multinomial.logpmf: [call(np.array([1, 0, 2]), 3, PROBABILITIES)],
    stats.dirichlet.logpdf: [call(PROBABILITIES, np.array([1.5, 2.0, 0.7]))],
}
BODIES = [rule for rule in all_rules() if rule.body is not None and not rule.written]
BODIES = [rule for rule in BODIES if rule.func is not gradient_modifiers.print_gradient]  # its result is what it prints
# solvers take functions that are lowered with the program around them: `test_solvers`
BODIES = [rule for rule in BODIES if not hasattr(rule.func, "type_like")]


class Operands:
    """Runtime values as IR operands: floats and arrays become Vars, everything else is known."""

    def __init__(self) -> None:
        self.values: dict[Var, Any] = {}

    def expr(self, value: Any) -> Expr:
        if isinstance(value, tuple | list):
            return Tuple(tuple(self.expr(item) for item in value))
        type_ = leaf_type(value)
        norm = isinstance(value, float) and math.isinf(value)  # its name
        if type_ is None or norm or (isinstance(type_, Scalar) and type_.dtype.startswith("int")):
            return Const(value)
        var = Var(f"v{len(self.values)}", type_)
        self.values[var] = value
        return var


def written_out(body: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run the text that inlining gives."""
    operands = Operands()
    exprs = [operands.expr(arg) for arg in args]
    keywords = {name: operands.expr(value) for name, value in kwargs.items()}
    names = NameSupply(var.name for var in operands.values)
    block, result = inline_call(body, exprs, keywords, names)
    leaves: list[Expr] = []

    def collect(value: Any) -> None:
        if isinstance(value, Leaf):
            leaves.append(value.expr)
        elif isinstance(value, Struct):
            for child in value.children:
                collect(child)

    collect(result)
    program = Function("rule", tuple(operands.values), (*block, Return(tuple(leaves))))
    rest = iter(run(program, *operands.values.values()))

    def build(value: Any) -> Any:
        if isinstance(value, Leaf):
            return next(rest)
        if isinstance(value, Struct):
            return tuple(build(child) for child in value.children)
        return value.value

    return build(result)


def calls_of(rule: Rule) -> list[tuple[tuple, dict[str, Any]]]:
    """Arguments for the body of a rule."""
    found = []
    default = () if rule.domain is None and rule.shapes is None else default_cases(rule)
    cases = [
        *default,
        *VARIANTS.get(rule.func, [])[:8],
        *SCIPY_VARIANTS.get(rule.func, [])[:8],
        *OWN.get(rule.func, []),
    ]
    assert cases, "the test knows no arguments for the rule"
    for args, kwargs in cases:
        extra: dict[str, Any] = {}
        with np.errstate(all="ignore"):
            out = rule.func(*args, **kwargs)
        if rule.reads("out"):
            extra["out"] = out
        if rule.reads("out_bar"):
            extra["out_bar"] = _like(out)
        found.append((args, kwargs | extra))
    return found


def _like(out: Any) -> Any:
    if isinstance(out, tuple | list):
        return tuple(map(_like, out))
    made = np.linspace(0.3, 1.7, np.size(out)).reshape(np.shape(out))
    return made if np.ndim(out) else float(made)


def agree(got: Any, want: Any) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            agree(a, b)
    elif want is None:
        assert got is None
    else:
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


def _id(rule: Rule) -> str:
    return f"{getattr(rule.func, '__module__', None) or 'ufunc'}.{getattr(rule.func, '__name__', rule.func)}"


@pytest.mark.filterwarnings("ignore:.row_stack. alias:DeprecationWarning")
@pytest.mark.parametrize("rule", BODIES, ids=_id)
def test_rule(rule: Rule) -> None:
    assert rule.body is not None
    for args, kwargs in calls_of(rule):
        with np.errstate(all="ignore"):
            try:
                want = rule.body(*args, **kwargs)
            except NotDifferentiable:
                with pytest.raises(NotDifferentiable):
                    written_out(rule.body, args, kwargs)
                continue
            agree(written_out(rule.body, args, kwargs), want)


# ---- what folds ------------------------------------------------------------------------------------------------------

MATRIX = Var("a", Array("float64", 2, "C"))
NUMBER = Var("x", Scalar("float64"))


def inlined(body: Any, *args: Any, **kwargs: Any) -> tuple[str, Any]:
    block, value = inline_call(body, args, kwargs, NameSupply({"a", "x", "out_bar"}))
    return block_text(block) if block else "", value


def options(x, axis=None, keepdims=False):
    if axis is not None and not keepdims:
        x = np.expand_dims(x, axis)
    return x if np.ndim(x) < 3 else np.sum(x)


def test_branches_on_options_and_ranks_fold() -> None:
    assert inlined(options, MATRIX) == ("", Leaf(MATRIX))
    assert inlined(options, MATRIX, axis=Const(0), keepdims=Const(True)) == ("", Leaf(MATRIX))
    text, _ = inlined(options, MATRIX, axis=Const(0))
    assert text == "x_1 = np.expand_dims(a, 0)\nt = np.sum(x_1)\n"


def power(x, y):
    return y * x ** (y - (y != 0))


def test_constants_fold_into_the_text() -> None:
    text, value = inlined(power, NUMBER, Const(3.0))
    assert text == "t = x ** 2.0\nt_1 = 3.0 * t\n"
    assert value == Leaf(Var("t_1", Scalar("float64")))


def pair(x):
    return 1.0, None, (x, 2)


def test_results_keep_their_structure() -> None:
    _, value = inlined(pair, NUMBER)
    assert value.children[:2] == (StaticValue(1.0), StaticValue(None))
    assert value.children[2].children == (Leaf(NUMBER), StaticValue(2))


def shifted(x, shift):
    back = ()
    for k in shift:
        back = back + (-k,)
    return np.roll(x, back, (0, 1))


def test_loops_over_tuples_unroll() -> None:
    text, _ = inlined(shifted, MATRIX, Tuple((Const(1), Var("n", INT))))
    assert text == "t = -n\nt_1 = np.roll(a, (-1, t), (0, 1))\n"


def loop(x):
    total = 0.0
    for k in range(3):
        total += math.sin(x) * k
    return total


def test_loops_over_ranges_stay() -> None:
    text, _ = inlined(loop, NUMBER)
    assert "for k in range(0, 3, 1):" in text


def test_names_are_fresh() -> None:
    text, _ = inlined(loop, NUMBER)
    assert "total" in text
    block, _ = inline_call(loop, (NUMBER,), {}, NameSupply({"x", "k", "total", "t"}))
    assert "for k_1 in range" in block_text(block)
    assert "total_1 = 0.0" in block_text(block)


def test_index_items_are_evaluated_by_the_reference_interpreter() -> None:
    assert evaluate(Slice(Const(1), None, Const(2)), {}) == slice(1, None, 2)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_arrays_spread_beside_each_other_keep_their_shapes(backend: str) -> None:
    @tg.differentiable(backend=backend, wrt=(0, 1))
    def f(x, y):  # type: ignore[no-untyped-def]
        a, b = np.broadcast_arrays(x, y)
        return np.sum(a * b**2)

    x, y = np.array([[0.5], [1.5], [-1.0]]), np.array([1.0, 2.0])
    x_bar, y_bar = f.grad(x, y)
    np.testing.assert_allclose(x_bar, np.full((3, 1), 5.0))
    np.testing.assert_allclose(y_bar, 2.0 * x.sum() * y)


def test_arrays_given_by_keyword() -> None:
    @tg.differentiable(backend="python", wrt=(0, 1))
    def f(x, y):  # type: ignore[no-untyped-def]
        return np.sum(np.dot(a=x, b=y)) + np.sum(np.sort(a=x) * np.broadcast_to(array=y[0, 0], shape=(2, 2)))

    tg.check_grads(f, np.array([[0.5, 1.5], [2.0, -1.0]]), np.array([[1.0, 3.0], [0.2, 0.7]]))
