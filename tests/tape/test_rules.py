"""Every rule run eagerly: both modes and second order, against differences, on the calls that judge the rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.rules.rule import Rule
from tapegen.rules.saved_values import chosen
from tapegen.testing import Case, default_cases
from tests.rule_cases import VARIANTS
from tests.rules.test_rules import ACTIVE, name_of

# Functions that NumPy does not hand over to tensors (of psi and polygamma the derivative needs such a one), and those
# that write: refused while recording.
REFUSED = set(
    "array asarray asanyarray ascontiguousarray asfortranarray full full_like float64 float32 arange kaiser psi "
    "copyto fill_diagonal place putmask put put_along_axis".split()
)
OTHERS = {"trim_zeros", "astype", "row_stack", "irfftn", "irfft2"}
"""Results of another size, of another type; deprecated; through complex numbers."""
TIED = set(
    "unique unique_values unique_counts unique_inverse unique_all union1d intersect1d setdiff1d setxor1d".split()
)
"""Their further cases hold equal elements, which differences tell apart."""
STEP = 1e-6


def is_array_function(rule: Rule) -> bool:
    """Whether NumPy hands calls over to tensors; what scipy wrote in Python converts its arguments."""
    handed = isinstance(rule.func, np.ufunc) or rule.func.__module__.startswith("numpy")
    return handed and rule.func.__name__ not in REFUSED | OTHERS


RULES = [rule for rule in ACTIVE if is_array_function(rule)]


def is_float(leaf: Any) -> bool:
    if isinstance(leaf, float):
        return bool(np.isfinite(leaf))  # an order of a norm may be infinite
    return isinstance(leaf, np.ndarray) and leaf.dtype == np.float64


def leaves(item: Any) -> Iterator[Any]:
    if isinstance(item, tuple | list):
        for part in item:
            yield from leaves(part)
    else:
        yield item


def refilled(item: Any, values: Iterator[Any]) -> Any:
    if isinstance(item, tuple | list):
        return type(item)(refilled(part, values) for part in item)
    return next(values) if is_float(item) else item


class Judge:
    """One call, as a function of the arguments that carry a derivative."""

    def __init__(self, rule: Rule, case: Case) -> None:
        self.rule = rule
        self.args, self.kwargs = tuple(case[0]), case[1]
        parameters = list(inspect.signature(rule.body).parameters.values())  # type: ignore[arg-type]
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self.varies = [
            not rule.wrt or (names[k] if k < len(names) else rest) in rule.wrt for k in range(len(self.args))
        ]
        self.at = [
            np.asarray(leaf, float)
            for arg, varies in zip(self.args, self.varies, strict=True)
            if varies
            for leaf in leaves(arg)
            if is_float(leaf)
        ]

    def __call__(self, values: list[Any]) -> list[Any]:
        remaining = iter(values)
        args = [refilled(arg, remaining) if varies else arg for arg, varies in zip(self.args, self.varies, strict=True)]
        made = self.rule.func(*args, **self.kwargs)
        return [leaf for leaf in leaves(made if isinstance(made, tuple | list) else (made,)) if _floats(leaf)]

    def gradient(self, values: list[Any], weights: list[np.ndarray]) -> list[Any]:
        tensors = [value if isinstance(value, tg.Tensor) else tg.constant(value) for value in values]
        with tg.GradientTape() as tape:
            tape.watch(tensors)
            outs = self(tensors)
        return tape.gradient(outs, tensors, output_gradients=weights, unconnected_gradients="zero")

    def slope(self, function: Callable[[list[np.ndarray]], list[Any]], along: list[np.ndarray]) -> list[np.ndarray]:
        """Central differences of the results along a direction."""
        ahead = function([x + STEP * v for x, v in zip(self.at, along, strict=True)])
        behind = function([x - STEP * v for x, v in zip(self.at, along, strict=True)])
        return [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]


def _floats(leaf: Any) -> bool:
    return getattr(leaf, "dtype", None) is not None and leaf.dtype.kind == "f"


def dot(left: list[Any], right: list[Any]) -> float:
    return float(sum(np.sum(np.asarray(a) * np.asarray(b)) for a, b in zip(left, right, strict=True)))


def judge(rule: Rule, case: Case) -> None:
    call = Judge(rule, case)
    rng = np.random.default_rng(1)
    along = [rng.normal(size=x.shape) for x in call.at]
    weights = [rng.normal(size=np.shape(out)) for out in call(call.at)]
    if not along or not weights:
        return
    first = dot(call.gradient(call.at, weights), along)
    np.testing.assert_allclose(first, dot(weights, call.slope(call, along)), rtol=1e-5, atol=1e-6)

    tensors = [tg.constant(x) for x in call.at]
    with tg.ForwardAccumulator(tensors, along) as accumulator:
        outs = call(tensors)
    tangents = accumulator.jvp(outs, unconnected_gradients="zero")
    np.testing.assert_allclose(dot(tangents, weights), first, rtol=1e-8, atol=1e-10)

    with tg.GradientTape() as outer:
        outer.watch(tensors)
        gradient = call.gradient(tensors, weights)
        projected = sum(np.sum(g * v) for g, v in zip(gradient, along, strict=True)) + 0.0 * np.sum(tensors[0])
    second = dot(outer.gradient(projected, tensors, unconnected_gradients="zero"), along)
    differences = call.slope(lambda values: call.gradient(values, weights), along)
    np.testing.assert_allclose(second, dot(differences, along), rtol=1e-4, atol=1e-5)

    with tg.ForwardAccumulator(tensors, along) as accumulator:
        gradient = call.gradient(tensors, weights)
    pushed = accumulator.jvp(gradient, unconnected_gradients="zero")
    np.testing.assert_allclose(dot(pushed, along), second, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: name_of(rule.func))
def test_rule(rule: Rule) -> None:
    for case in default_cases(rule)[:1]:
        judge(rule, case)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: name_of(rule.func))
def test_rule_on_all_cases(rule: Rule) -> None:
    further = [] if rule.func.__name__ in TIED else VARIANTS.get(rule.func, [])
    for case in [*default_cases(rule), *further]:
        judge(rule, case)


@pytest.mark.parametrize("write", [np.put, np.putmask, np.place, np.copyto, np.fill_diagonal, np.put_along_axis])
def test_functions_that_write_are_refused(write: Callable[..., Any]) -> None:
    given: dict[Any, tuple[Any, ...]] = {
        np.put: ([0], 5.0),
        np.putmask: (np.eye(2) > 0, 5.0),
        np.place: (np.eye(2) > 0, [5.0]),
        np.copyto: (np.ones((2, 2)),),
        np.fill_diagonal: (5.0,),
        np.put_along_axis: (np.zeros((2, 1), int), 5.0, 1),
    }
    x = tg.constant(np.zeros((2, 2)))
    with pytest.raises(tg.NotDifferentiable, match="cannot write into a tensor"):
        write(x, *given[write])
    assert not x.numpy().any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("other", ["zero", "minus zero", "one", "array", "row"])
def test_choosing_by_bits(dtype: Any, other: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(40, 50)).astype(dtype) for _ in range(2))
    if np.dtype(dtype).kind == "f":
        x[:4] = [[np.inf], [-np.inf], [np.nan], [-0.0]]
    where = {"zero": 0.0, "minus zero": -0.0, "one": 1.0, "array": y, "row": y[0]}[other]
    for mask in (rng.normal(size=x.shape) > 0.0, (rng.normal(size=x.T.shape) > 0.0).T):
        for left in (x, x.T.copy().T, np.asfortranarray(x), x[:1], x[0, 0]):
            want = np.where(mask, left, where)
            got = chosen(mask, left, where)
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
