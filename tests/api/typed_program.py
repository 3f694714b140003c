"""A program of a user with full annotations, over which `test_types` runs type checkers; nothing here runs."""

# pyright: strict
# mypy: disallow-any-generics, warn-return-any, warn-unused-ignores

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import tapegen as tg

Vector = NDArray[np.float64]
Pullback = Callable[[Any], Any]
MYPY = False  # to mypy, this is true
x: Vector = np.linspace(0.0, 1.0, 5)


# ---- functions -----------------------------------------------------------------------------------------------------


def misfit(x: Vector, k: float = 1.0, *, power: int = 2) -> float:
    return float(k * np.sum(x**power))


@tg.differentiable
def decorated(x: Vector, k: float = 1.0) -> float:
    return float(k * np.sum(x))


@tg.differentiable(wrt=("x", "k"), backend="python", signatures=["f8[:], f8"])
def chosen(x: Vector, k: float) -> float:
    return float(k * np.sum(x))


@tg.differentiable(has_aux=True)
def with_aux(x: Vector) -> tuple[float, dict[str, Vector]]:
    return float(np.sum(x)), {"x": x}


assert_type(decorated(x, k=2.0), float)
assert_type(decorated.value_and_grad(x), tuple[float, Any])
assert_type(decorated.value_and_grad(x=x, k=2.0), tuple[float, Any])
assert_type(decorated.vjp(x), tuple[float, Pullback])
assert_type(decorated.jvp((x,), (x,), k=2.0), tuple[float, Any])
assert_type(chosen(x, 1.0), float)
assert_type(chosen.value_and_grad(x, 1.0)[0], float)
decorated("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
decorated.value_and_grad(x, k="text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
decorated.grad(x, argnums=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
chosen.vjp(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
tg.differentiable(misfit, argnums=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

assert_type(with_aux(x), tuple[float, dict[str, Vector]])
assert_type(with_aux.value_and_grad(x), tuple[tuple[float, dict[str, Vector]], Any])
assert_type(with_aux.grad(x), tuple[Any, dict[str, Vector]])
assert_type(with_aux.vjp(x), tuple[float, Pullback, dict[str, Vector]])
assert_type(with_aux.jvp((x,), (x,)), tuple[float, Any, dict[str, Vector]])

assert_type(tg.differentiable(misfit)(x, power=3), float)
assert_type(tg.differentiable(misfit, wrt="k").with_options(wrt=0)(x), float)
assert_type(decorated.inspect(x).forward, str)


# ---- functions of functions ----------------------------------------------------------------------------------------

assert_type(tg.value_and_grad(misfit)(x, 2.0, power=3), tuple[float, Any])
assert_type(tg.value_and_grad(decorated, wrt=1)(x, k=3.0), tuple[float, Any])
assert_type(tg.value_and_grad(with_aux)(x), tuple[tuple[float, dict[str, Vector]], Any])
assert_type(tg.vjp(misfit, x), tuple[float, Pullback])
assert_type(tg.jvp(misfit, (x,), (x,)), tuple[float, Any])
assert_type(tg.linearize(misfit, x)[0], float)
gradient_and_aux: tuple[Vector, dict[str, Vector]] = tg.grad(with_aux)(x)
if not MYPY:  # which takes two of the overloads to match, because types of NumPy hold Any
    assert_type(tg.vjp(with_aux, x), tuple[float, Pullback, dict[str, Vector]])
    assert_type(tg.jvp(with_aux, (x,), (x,)), tuple[float, Any, dict[str, Vector]])
    assert_type(tg.linearize(with_aux, x)[2], dict[str, Vector])
value, pullback, aux = tg.vjp(with_aux, x)
value, tangent, aux = tg.jvp(with_aux, (x,), (x,))
gradient: Vector = tg.grad(misfit, wrt="x")(x, 2.0)
slopes: Vector = tg.jacobian(misfit, mode="forward")(x)
curvature: Vector = tg.hessian(misfit, backend="python")(x, power=4)
product: Vector = tg.hvp(misfit, (x,), (x,))
tg.check_grads(misfit, x, wrt=0, modes=("forward", "reverse"))
tg.grad(misfit)("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
tg.value_and_grad(misfit)(x, 1.0, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
tg.jacobian(misfit)(x, q=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
tg.hessian(misfit)()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
tg.jacobian(misfit, argnums=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def pair(x: Vector) -> tuple[float, str]:
    return float(np.sum(x)), "sum"


assert_type(tg.grad(pair, has_aux=True)(x), tuple[Any, str])
assert_type(tg.vjp(pair, x, has_aux=True), tuple[float, Pullback, str])
assert_type(tg.differentiable(pair, has_aux=True).grad(x), tuple[Any, str])


def smoothed(u: Vector, steps: int) -> None:
    u[1:-1] += steps


assert_type(tg.vjp(smoothed, x, 2, wrt_out="u"), tuple[Any, Pullback])


# ---- methods -------------------------------------------------------------------------------------------------------


@dataclass
class Spring:
    stiffness: float

    @tg.differentiable
    def energy(self, x: Vector, scale: float = 1.0) -> float:
        return float(scale * self.stiffness * np.sum(x**2))

    @tg.differentiable(wrt="x", has_aux=True)
    def with_label(self, x: Vector) -> tuple[float, str]:
        return float(np.sum(x)), "label"

    @classmethod
    @tg.differentiable
    def standard(cls, x: Vector) -> float:
        return float(np.sum(x))

    @staticmethod
    @tg.differentiable
    def norm(x: Vector) -> float:
        return float(np.sum(x))

    @tg.differentiable
    @staticmethod
    def norm_below(x: Vector) -> float:
        return float(np.sum(x))

    @tg.differentiable(backend="python")
    @classmethod
    def standard_below(cls, x: Vector) -> float:
        return float(np.sum(x))

    @property
    @tg.differentiable
    def half(self) -> float:
        return 0.5 * self.stiffness


spring = Spring(2.0)
assert_type(spring.energy(x, scale=2.0), float)
assert_type(spring.energy.value_and_grad(x, 2.0), tuple[float, Any])
assert_type(Spring.energy(spring, x), float)
assert_type(Spring.energy.value_and_grad(spring, x=x), tuple[float, Any])
assert_type(spring.with_label.grad(x), tuple[Any, str])
assert_type(spring.with_label.vjp(x), tuple[float, Pullback, str])
assert_type(spring.standard.value_and_grad(x), tuple[float, Any])
assert_type(Spring.standard.value_and_grad(x), tuple[float, Any])
assert_type(Spring.standard_below.value_and_grad(x), tuple[float, Any])
if not MYPY:
    assert_type(spring.norm.value_and_grad(x), tuple[float, Any])
assert_type(Spring.norm.value_and_grad(x), tuple[float, Any])
assert_type(Spring.norm_below.value_and_grad(x), tuple[float, Any])
assert_type(spring.half, float)
assert_type(tg.value_and_grad(spring.energy)(x), tuple[float, Any])
spring.energy("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
spring.energy.vjp(x, x, x)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


# ---- functions in variables and fields -------------------------------------------------------------------------------


@dataclass
class Model:
    loss: tg.Differentiable[[Vector, float], float]

    def slope(self, x: Vector) -> Vector:
        value, gradient = self.loss.value_and_grad(x, 1.0)
        assert_type(value, float)
        return np.asarray(gradient)


Model(chosen).slope(x)
losses: list[tg.Differentiable[..., float]] = [decorated, chosen]
assert_type(losses[0](x), float)


# ---- tapes and rules -------------------------------------------------------------------------------------------------


@tg.custom_gradient
def log1pexp(x: tg.Tensor) -> tuple[tg.Tensor, Callable[[tg.Tensor], Any]]:
    return x, lambda upstream: upstream


@tg.recompute_grad
def layer(x: tg.Tensor, width: int) -> tg.Tensor:
    return x


@tg.pullback(misfit, wrt="x")
def misfit_pullback(x: Vector, k: float = 1.0, *, out_bar: float) -> Vector:
    return k * out_bar * x


@misfit_pullback.pushforward
def misfit_pushforward(x: Vector, k: float = 1.0, *, x_dot: Vector) -> float:
    return float(k * np.sum(x * x_dot))


assert_type(tg.stop_gradient(1.5), float)
assert_type(tg.clip_gradient(x, -1.0, 1.0), Vector)
w = tg.Variable(x, name="w")
with tg.GradientTape(persistent=True) as tape:
    y = layer(log1pexp(tg.constant(x)), width=3)
assert_type(y, tg.Tensor)
assert_type(tape.gradient(y, [w]), list[Any])
assert_type(misfit_pullback(x, out_bar=1.0), Vector)
assert_type(misfit_pushforward(x, x_dot=x), float)
update: Vector = tape.gradient(y, w)
layer(y, "text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
