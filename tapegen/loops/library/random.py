"""Random draws that numba makes bit for bit as NumPy does; parameters that it does not check are checked here."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.ir.nodes import Call, Const, Expr, Tuple, Var
from tapegen.ir.types import BOOL, Array, RandomGenerator
from tapegen.loops.legalize.builder import LoopBuilder
from tapegen.loops.legalize.registry import FILL, SCALAR, arguments, handles
from tapegen.loops.scalarize.expressions import scalar
from tapegen.loops.scalarize.permutations import new_extents

_NAMES = (
    "random standard_normal standard_exponential standard_gamma standard_cauchy standard_t normal uniform laplace "
    "logistic rayleigh exponential gamma beta chisquare f lognormal pareto power weibull triangular poisson binomial "
    "geometric negative_binomial zipf logseries noncentral_chisquare noncentral_f integers permutation"
).split()
_LARGEST_MEAN = 9.223372006484771e18  # of poisson, whose values are 64-bit integers

_VALID: dict[str, tuple[tuple[int, Any, float], ...]] = {
    "poisson": ((0, operator.ge, 0.0), (0, operator.le, _LARGEST_MEAN)),
    "binomial": ((0, operator.ge, 0.0), (1, operator.ge, 0.0), (1, operator.le, 1.0)),
    "geometric": ((0, operator.gt, 0.0), (0, operator.le, 1.0)),
    "standard_gamma": ((0, operator.ge, 0.0),),
    "integers": (),
    "permutation": (),
}
"""The conditions on parameters that are not constants; numba checks integers itself."""


def _draw(w: LoopBuilder, call: Call) -> tuple[Call, dict[str, Expr]]:
    """The call for one scalar, and the other arguments by name."""
    func: Any = call.func
    names = intrinsics.parameters_of(func)
    given = dict(zip(names, arguments(w, call, *names), strict=True))
    rng = given.pop("self")
    size = given.pop("size", None)
    rest = {name: value for name, value in given.items() if value is not None}
    if any(isinstance(value.type, Array) for value in rest.values()):
        raise w.unsupported(func, "with arrays of parameters")
    if rng.type != RandomGenerator("Generator") or "out" in rest or "dtype" in rest:
        raise w.unsupported(func)
    if func is np.random.Generator.integers and "high" not in rest:
        rest = {"low": Const(0), "high": rest.pop("low"), **rest}
    values = {name: value if isinstance(value, Const) else w.bind(scalar(w, value)) for name, value in rest.items()}
    if not all(isinstance(value, Const) for value in values.values()):
        _check(w, func, list(values.values()))
    return Call(func, (rng, *values.values()), (), call.type), {} if size is None else {"size": size}


def _check(w: LoopBuilder, func: Any, values: list[Expr]) -> None:
    if func.__name__ not in _VALID:
        raise w.unsupported(func, "with parameters that are no constants")
    for k, holds, bound in _VALID[func.__name__]:
        wrong = Call(operator.not_, (Call(holds, (values[k], Const(bound)), (), BOOL),), (), BOOL)
        w.check(wrong, ValueError, "a parameter is out of range")


for _name in _NAMES:
    _func = getattr(np.random.Generator, _name)

    @handles(SCALAR, _func)
    def _number(w: LoopBuilder, call: Call) -> Expr:
        return _draw(w, call)[0]

    @handles(FILL, _func)
    def _array(w: LoopBuilder, call: Call, target: Var) -> None:
        drawn, size = _draw(w, call)
        if not size:
            w.call_new(target, drawn)
            return
        extents = new_extents(w, size["size"])
        sizes = Tuple(tuple(w.clamped(extent) for extent in extents))
        w.call_new(target, Call(drawn.func, drawn.args, (("size", sizes),), target.type))
        w.facts.set_shape(target, extents)
