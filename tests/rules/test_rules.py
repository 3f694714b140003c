"""Every derivative rule, judged by differences, identities, complex steps and 50-digit arithmetic."""

from __future__ import annotations

import ast
import builtins
import cmath
import inspect
import operator
import textwrap
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest
import scipy.special as special

import tapegen as tg
from tapegen.errors import MissingRule, NotDifferentiable
from tapegen.rules import all_rules, expands, fixed, linear, partials, pullback, registry, rule_of
from tapegen.rules.gradient_modifiers import SURGERY, stop_gradient
from tapegen.rules.helpers import is_compile_time
from tapegen.rules.rule import Rule, check_parameters
from tapegen.testing import check_rule
from tests.rule_cases import (
    EXACT,
    HARD_POINTS,
    SIMPLEX,
    SPECIAL_COTANGENTS,
    SPECIAL_POINTS,
    STACKED,
    VARIANTS,
    call,
    values,
)
from tests.scipy_cases import ONE_SECTION, SCIPY_VARIANTS, SOLVERS

CASES = {**VARIANTS, **SCIPY_VARIANTS}

# what changes derivatives on purpose agrees with no difference: tests/rules/test_gradient_modifiers.py; functions that
# call functions are derived in programs alone: tests/rules/test_solvers.py
ACTIVE = [
    rule
    for rule in all_rules()
    if rule.kind != "inactive"
    and rule.func not in (*SURGERY, *SIMPLEX, *ONE_SECTION, *SOLVERS)
    and not hasattr(rule.func, "type_like")
]


def name_of(func: Callable) -> str:
    module = getattr(func, "__module__", None) or "scipy.special"
    return f"{module}.{getattr(func, '__name__', func)}".replace("_operator", "operator")


def test_bodies_have_the_parameters_of_their_kinds() -> None:
    """What the registry checks of the rules of users at once, and of those of tapegen not at each import."""
    for rule in all_rules():
        if rule.body is not None:
            check_parameters(rule, name_of(rule.func))


@pytest.mark.filterwarnings("ignore:.row_stack. alias:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")  # of float32
@pytest.mark.parametrize("rule", ACTIVE, ids=lambda rule: name_of(rule.func))
def test_rule(rule: Rule) -> None:
    if rule.domain is not None or rule.shapes is not None or rule.func not in CASES:
        check_rule(rule.func)
    check_rule(rule.func, cases=CASES.get(rule.func, []))


# ---- functions without a derivative ----------------------------------------------------------------------------------

FLOATING_WITHOUT_DERIVATIVE = [
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.round,
    np.sign,
    np.floor_divide,
    operator.floordiv,
]


@pytest.mark.parametrize("func", FLOATING_WITHOUT_DERIVATIVE, ids=name_of)
def test_inactive_function_is_flat(func: Callable) -> None:
    points = (np.array([1.3, -0.7, 2.6]), np.array([1.0, 2.0, 3.0]))
    arity = 2 if func in (np.floor_divide, operator.floordiv) else 1
    check_rule(func, cases=[call(*points[:arity])])


def test_a_slope_declared_inactive_is_found(fresh_registry: None) -> None:
    registry.inactive(np.sin)
    with pytest.raises(AssertionError, match="derivative of inactive sin"):
        check_rule(np.sin, cases=[call(np.array([0.3, 0.4]))])


# ---- elementwise rules to the last digits ----------------------------------------------------------------------------


def declared_rule(func: Callable) -> Rule:
    rule = rule_of(func)
    assert rule is not None
    return rule


def partials_at(rule: Rule, point: tuple) -> tuple:
    """The partials that a rule gives at one point; None stays."""
    assert rule.body is not None
    extra = {"out": rule.func(*point)} if rule.reads("out") else {}
    result = rule.body(*point, **extra)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("func", EXACT, ids=name_of)
def test_partials_agree_with_50_digits(func: Callable) -> None:
    rule = declared_rule(func)
    assert rule.domain is not None and rule.body is not None
    rng = np.random.default_rng(3)
    points = [tuple(rng.uniform(lo, hi) for lo, hi in rule.domain) for _ in range(10)] + HARD_POINTS.get(func, [])
    for point in points:
        names = list(inspect.signature(rule.body).parameters)
        places = [names.index(name) for name in rule.wrt] or range(len(names))
        for k, partial in zip(places, partials_at(rule, tuple(np.float64(x) for x in point))):
            with mpmath.workdps(50):
                order = tuple(int(k == j) for j in range(len(point)))
                scale = mpmath.mpf(2) ** -60 * max(abs(mpmath.mpf(x)) for x in point)
                expected = mpmath.diff(EXACT[func], tuple(mpmath.mpf(x) for x in point), order, h=scale)
                error = abs(mpmath.mpf(float(partial or 0.0)) - expected) / (abs(expected) or 1)
            assert error < 5e-14, f"partial {k} at {point}: {float(partial)!r}, not {mpmath.nstr(expected, 17)}"


# ---- where mathematics is thin ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "point", "expected"), SPECIAL_POINTS, ids=lambda v: name_of(v) if callable(v) else str(v)
)
def test_partial_at_special_point(func: Callable, point: tuple, expected: tuple) -> None:
    exact = tuple(np.float64(x) if isinstance(x, float) else x for x in point)
    with np.errstate(all="ignore"):
        got = partials_at(declared_rule(func), exact)
    assert [x is None for x in got] == [x is None for x in expected]
    np.testing.assert_array_equal([x for x in got if x is not None], [x for x in expected if x is not None])


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "expected"), SPECIAL_COTANGENTS, ids=lambda v: name_of(v) if callable(v) else None
)
def test_cotangent_at_special_point(func: Callable, args: tuple, kwargs: dict, expected: object) -> None:
    rule = declared_rule(func)
    assert rule.body is not None
    args = tuple(np.float64(x) if isinstance(x, float) and func is not np.linalg.norm else x for x in args)
    with np.errstate(all="ignore"):
        out = func(*args, **kwargs)
        extra = {"out": out} if rule.reads("out") else {}
        got = rule.body(*args, **kwargs, **extra, out_bar=np.ones_like(out))
    if rule.wrt == ("a", "b"):
        got = got[0]
    np.testing.assert_array_equal(got, expected)


def test_equal_eigenvalues_with_untouched_vectors() -> None:
    rule = declared_rule(np.linalg.eigh)
    assert rule.body is not None
    out = np.linalg.eigh(np.eye(2))
    got = rule.body(np.eye(2), out=out, out_bar=(np.ones(2), np.zeros((2, 2))))
    np.testing.assert_array_equal(got, np.eye(2))


def fails_somewhere(rule: Rule, grid: list) -> bool:
    """Whether any partial derivative is not finite at a point of the grid."""
    assert rule.body is not None
    arity = len([p for p in inspect.signature(rule.body).parameters.values() if p.kind is not p.KEYWORD_ONLY])
    sides = [(x, *(type(x)(0.0),) * (arity - 1)) for x in grid]
    for point in [(x,) * arity for x in grid] + sides + [tuple(map(type(grid[0]), (0.5, 0.0, 1.0, 0.5)[:arity]))]:
        try:
            with np.errstate(all="ignore"):
                parts = partials_at(rule, point)
        except (ValueError, OverflowError, ZeroDivisionError):  # math refuses what NumPy answers by NaN or inf
            continue
        if not all(np.all(np.isfinite(part)) for part in parts if part is not None):
            return True
    return False


@pytest.mark.parametrize("rule", [r for r in ACTIVE if r.kind == "partials"], ids=lambda rule: name_of(rule.func))
def test_non_finite_partials_are_declared(rule: Rule) -> None:
    """The guard against `0 * inf` is emitted exactly for rules that say so."""
    grid = [-1e200, -800.0, -1.0, -0.5, -1e-200, 0.0, 1e-200, 0.5, 1.0, 2.0, 800.0, 1e200]
    found = fails_somewhere(rule, [np.float64(x) for x in grid])
    raises = getattr(rule.func, "__module__", None) in ("math", "builtins", "cmath")
    assert found == rule.nonfinite or (rule.nonfinite and raises)


OF_COMPLEX = [r for r in ACTIVE if r.kind == "partials" and r.of_complex and r.func != cmath.rect]
OF_COMPLEX = [r for r in OF_COMPLEX if getattr(r.func, "__module__", None) != "math"]


@pytest.mark.parametrize("rule", OF_COMPLEX, ids=lambda rule: name_of(rule.func))
def test_poles_off_the_real_line_are_declared(rule: Rule) -> None:
    grid = [1j, -1j, 1.0 + 0j, -1.0 + 0j, 0j, 0.5 + 0.5j, 3.0 + 800j, 3000.0 - 3.0j, -1e-200 + 1e-200j]
    found = fails_somewhere(rule, [np.complex128(z) for z in grid])
    raises = getattr(rule.func, "__module__", None) in ("math", "builtins", "cmath")
    assert found == (rule.nonfinite or rule.poles) or ((rule.nonfinite or rule.poles) and raises)


# ---- what a body may be ----------------------------------------------------------------------------------------------


def reached_functions(func: Callable) -> Iterator[tuple[Callable, ast.FunctionDef]]:
    """A rule body and all inlined helpers below it, with their syntax trees."""
    seen: set[Callable] = set()
    waiting = [func]
    while waiting:
        func = waiting.pop()
        if func in seen:
            continue
        seen.add(func)
        tree = ast.parse(textwrap.dedent(inspect.getsource(func))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.decorator_list = []
        yield func, tree
        for _, target in called(func, tree):
            own = inspect.isfunction(target) and target.__module__.startswith("tapegen.") and rule_of(target) is None
            if own and not is_compile_time(target):
                waiting.append(target)


def called(func: Callable, tree: ast.FunctionDef) -> Iterator[tuple[str, object]]:
    """The functions that a body calls, resolved; methods are left out."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        text = ast.unparse(node.func)
        root, *path = text.split(".")
        if root not in func.__globals__ and not hasattr(builtins, root):
            raise AssertionError(f"{func.__name__} calls the method {text}")
        target = func.__globals__.get(root, getattr(builtins, root, None))
        for part in path:
            target = getattr(target, part)
        yield text, target


STRUCTURAL = {isinstance, len, enumerate, range, max, min, np.add.at, ValueError}
ALLOWED = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Expr, ast.expr,
    ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.keyword, ast.Raise,
)  # fmt: skip
REFUSED = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.NamedExpr, ast.Await, ast.Yield)


@pytest.mark.parametrize("rule", [r for r in ACTIVE if not r.written], ids=lambda rule: name_of(rule.func))
def test_body_is_text_that_can_be_inlined(rule: Rule) -> None:
    """Simple statements, and calls of functions that have rules themselves: second derivatives need nothing new."""
    for body in filter(None, (rule.body, rule.pushforward)):
        for func, tree in reached_functions(body):
            for node in ast.walk(tree):
                assert isinstance(node, ALLOWED), ast.unparse(node)
                assert not isinstance(node, REFUSED), ast.unparse(node)
            for text, target in called(func, tree):
                known = rule_of(target) is not None or target in STRUCTURAL or is_compile_time(target)
                assert known or (inspect.isfunction(target) and target.__module__.startswith("tapegen.")), (
                    f"{func.__name__} calls {text}, which has no rule"
                )


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "args", "kwargs", "text"),
    [
        (np.pad, (values(3), 1), {"mode": "mean"}, "mode='mean'. has no rule"),
        (np.reshape, (values(4), (2, 2)), {"order": "A"}, "layout in memory"),
        (np.ravel, (values(2, 2),), {"order": "K"}, "memory layout"),
        (np.linalg.qr, (values(2, 2), "complete"), {}, "mode='reduced' only"),
        (np.linalg.matrix_power, (values(2, 2), 5000), {}, "up to 1024"),
        (special.logsumexp, (values(2),), {"return_sign": True}, "return_sign"),
    ],
)
def test_uses_that_a_rule_does_not_cover(func: Callable, args: tuple, kwargs: dict, text: str) -> None:
    with pytest.raises(NotDifferentiable, match=text):
        check_rule(func, cases=[(args, kwargs)])


@pytest.mark.parametrize("kwargs", [{"where": np.array([True, False, True])}, {"out": np.zeros(())}])
def test_keywords_that_a_body_leaves_out_do_not_bind(kwargs: dict) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        check_rule(np.sum, cases=[call(values(3), **kwargs)])


def test_function_without_rule() -> None:
    with pytest.raises(MissingRule, match="busday_count has no derivative rule"):
        check_rule(np.busday_count)


# ---- wrong rules must fail the same check ----------------------------------------------------------------------------


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))


WRONG: list[tuple[Callable, Callable, str]] = []


def wrong(register: Callable, message: str) -> Callable:
    """Keep a rule, to be registered when its test runs, with what the check says about it."""

    def keep(body: Callable) -> Callable:
        WRONG.append((register, body, message))
        return body

    return keep


@wrong(partials(np.cos, domain=[(-1.0, 1.0)]), "cotangent of x in cos")
def wrong_sign(x):
    return np.sin(x)


@wrong(partials(np.divide, domain=[(1.0, 2.0), (1.0, 2.0)]), "cotangent of x in divide")
def swapped_partials(x, y):
    return -x / y**2, 1.0 / y


@wrong(partials(np.multiply, domain=[(1.0, 2.0), (1.0, 2.0)]), "cotangent of y in multiply")
def forgotten_argument(x, y):
    return y, None


@wrong(partials(np.exp, domain=[(0.0, 1.0)]), "cotangent of x in exp")
def one_millionth_short(x, *, out):
    return (1.0 - 1e-6) * out


@wrong(partials(np.exp, domain=[(0.0, 1.0)]), "does not keep float32")
def float64_constant(x, *, out):
    return np.float64(1.0) * out


@wrong(linear(np.sum, in_="a", shapes=[(3, 4)]), "cotangent of a in sum")
def half_of_the_transpose(a, *, out_bar):
    return np.broadcast_to(0.5 * out_bar, np.shape(a))


@wrong(linear(np.flipud, in_="m", shapes=[(3,)]), "has shape")
def lost_element(m, *, out_bar):
    return out_bar[1:]


@wrong(linear(np.square, in_="x", shapes=[(3,)]), "dot-product identity of square")
def linear_only_here(x, *, out_bar):
    return 2.0 * x * out_bar


@wrong(pullback(np.linalg.inv, shapes=[fixed(STACKED[0])]), "cotangent of a in inv")
def missing_minus(a, *, out, out_bar):
    return out.T @ out_bar @ out.T


@wrong(pullback(np.square, shapes=[(3,)]), "read-only")
def stores_into_its_cotangent(x, *, out_bar):
    out_bar *= 2.0 * x
    return out_bar


@wrong(pullback(np.vdot, wrt=("a", "b"), shapes=[(3,), (3,)]), "view of a primal value")
def hands_out_an_argument(a, b, *, out_bar):
    return b, a


@wrong(expands(np.ptp, shapes=[(4,)]), "formula of ptp")
def other_formula(a):
    return np.max(a) + np.min(a)


@wrong(expands(np.square, shapes=[fixed(np.array([1.0]))]), "formula of square")
def right_at_one_point(x):
    return 1.0 * x


@wrong(partials(np.exp, domain=[(0.0, 1.0)]), "cotangent of x in exp")
def wrong_without_axes(x, *, out):
    return out if np.ndim(x) else 2.0 * out


@wrong(partials(np.exp, domain=[(0.0, 1.0)]), "zero-size array")
def fails_without_elements(x, *, out):
    return out * (np.max(x) / np.max(x))


@wrong(partials(np.exp, domain=[(0.0, 1.0)]), "float32 cotangent of x in exp")
def wrong_in_single_precision(x, *, out):
    return out * np.array(2.0, out.dtype) if np.result_type(x) == np.float32 else out


@pytest.mark.parametrize(("register", "body", "message"), WRONG, ids=[body.__name__ for _, body, _ in WRONG])
def test_wrong_rule_fails(fresh_registry: None, register: Callable, body: Callable, message: str) -> None:
    before = dict(registry._RULES)
    register(body)
    (func,) = [func for func, rule in registry._RULES.items() if before.get(func) is not rule]
    with pytest.raises((AssertionError, ValueError), match=message):
        check_rule(func)


def test_a_rule_that_is_wrong_for_complex_numbers_alone_fails(fresh_registry: None) -> None:
    @pullback(np.square, shapes=[(3,)], of_complex=True)
    def square(x, *, out_bar):
        return 2.0 * np.conj(x) * out_bar

    with pytest.raises(AssertionError, match="cotangent of x in square"):
        check_rule(np.square)


def test_a_rule_that_is_wrong_for_views_alone_fails(fresh_registry: None) -> None:
    @pullback(np.square, shapes=[(2, 3)])
    def square(x, *, out_bar):
        return 2.0 * np.reshape(np.ravel(x, order="K"), np.shape(x)) * out_bar

    with pytest.raises(AssertionError, match="cotangent of x, which is not contiguous, in square"):
        check_rule(np.square)


def test_a_rule_that_is_wrong_in_the_second_order_alone_fails(fresh_registry: None) -> None:
    def cubed(x):
        return x * x * x

    @partials(cubed, domain=[(0.5, 1.5)])
    def slope(x):
        return 3.0 * stop_gradient(x) * x

    check_rule(cubed)
    tg.check_grads(cubed, values(3), backend="python")
    with pytest.raises(AssertionError, match="gradient with respect to 0"):
        tg.check_grads(cubed, values(3), order=2, backend="python")


def test_wrong_pushforward_fails(fresh_registry: None) -> None:
    @pullback(np.square, shapes=[(3,)])
    def square(x, *, out_bar):
        return 2.0 * x * out_bar

    check_rule(np.square)

    @square.pushforward
    def square_pushforward(x, *, x_dot):
        return x * x_dot

    with pytest.raises(AssertionError, match="pushforward against pullback"):
        check_rule(np.square)


@pytest.mark.parametrize(
    ("register", "body", "message"),
    [
        (linear(np.sin, in_="y"), lambda x, *, out_bar: out_bar, "no parameter 'y'"),
        (linear(np.sin, in_="x"), lambda x: x, "needs a keyword out_bar"),
        (linear(np.sin, in_="x"), lambda x, *, out, out_bar: out_bar, "does not get the result"),
        (partials(np.sin), lambda x, *, out_bar: out_bar, "cannot have a keyword out_bar"),
    ],
)
def test_registration_refuses_what_cannot_work(
    fresh_registry: None, register: Callable, body: Callable, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        register(body)
