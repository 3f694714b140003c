"""Layers: functions with variables, made for the first input they see."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.ir.protocols import refuses
from tapegen.nn import functions
from tapegen.nn.module import Module
from tapegen.tape import Tensor, Variable, constant, convert_to_tensor

Activation = Callable[[Any], Any] | str | None

_random = np.random.default_rng()


def set_seed(seed: int | None) -> None:
    """Give layers the same initial weights in each run.

    Parameters
    ----------
    seed : int or None
        The seed for layers that are built from now on; None for a random one.
    """
    global _random
    _random = np.random.default_rng(seed)


def generator() -> np.random.Generator:
    """Where layers take their random numbers from."""
    return _random


def activation_of(activation: Activation) -> Callable[[Any], Any] | None:
    """An activation by its name, or as it is."""
    if not isinstance(activation, str):
        return activation
    names = ("relu", "elu", "tanh", "softplus", "sigmoid", "softmax", "log_softmax")
    if activation == "linear":
        return None
    if activation not in names:
        raise BadArgument(
            f"'{activation}' is no activation.", f"Use one of linear, {', '.join(names)}, or any function."
        )
    found: Callable[[Any], Any] = getattr(functions, activation)
    return found


def _input(inputs: Any) -> Tensor:
    tensor = convert_to_tensor(inputs)
    return tensor if tensor.dtype.kind == "f" else constant(tensor.numpy(), np.float64)


@functools.cache
def takes_training(method: Callable[..., Any]) -> bool:
    """Whether a method asks if it is called to be trained."""
    return "training" in inspect.signature(method).parameters


class Dense(Module):
    """`activation(x @ kernel + bias)` along the last axis.

    Parameters
    ----------
    units : int
        Size of the last axis of the result.
    activation : callable or str, optional
        A function, or the name of one in `tapegen.nn`.
    use_bias : bool
        Whether there is a `bias`, which begins as zeros.
    name : str, optional
        For people.

    Notes
    -----
    The variables are made for the first input, in its dtype.  `kernel` begins uniform between plus and minus
    sqrt(6 / (inputs + units)) (X. Glorot and Y. Bengio, AISTATS 2010).
    """

    def __init__(
        self, units: int, activation: Activation = None, use_bias: bool = True, name: str | None = None
    ) -> None:
        if not isinstance(units, int | np.integer) or units < 1:
            raise BadArgument(f"units={units!r} is no size.", "Give a positive integer.")
        self.units = int(units)
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        super().__init__(name)
        self.kernel: Variable | None = None
        self.bias: Variable | None = None

    def build(self, inputs: int, dtype: Any) -> None:
        """Make the variables for inputs of a size and dtype."""
        limit = np.sqrt(6.0 / (inputs + self.units))
        kernel = generator().uniform(-limit, limit, (inputs, self.units))
        self.kernel = Variable(kernel, name=self._variable_name("kernel"), dtype=dtype)
        if self.use_bias:
            self.bias = Variable(np.zeros(self.units), name=self._variable_name("bias"), dtype=dtype)

    def _variable_name(self, part: str) -> str:
        """The name of a variable, for people."""
        return part

    def __call__(self, inputs: Any) -> Any:
        x = _input(inputs)
        if not x.ndim:
            raise BadArgument("a dense layer has a number as its input.", "Give an array; its last axis is reduced.")
        if self.kernel is None:
            self.build(x.shape[-1], x.dtype)
        assert self.kernel is not None
        if x.shape[-1] != self.kernel.shape[0]:
            raise BadArgument(
                f"the last axis of the input of '{self.name}' has size {x.shape[-1]}, the kernel was made for "
                f"{self.kernel.shape[0]}.",
                "Make a layer for each size.",
            )
        y = x @ self.kernel
        if self.bias is not None:
            y = y + self.bias
        return y if self.activation is None else self.activation(y)


class BatchNormalization(Module):
    """Mean 0 and variance 1 over all axes but the last, then `gamma * x + beta`.

    Parameters
    ----------
    momentum : float
        How much of the moving mean and variance stays when a batch is seen.
    epsilon : float
        Added to the variance.

    Notes
    -----
    With `training=True` the statistics are those of the batch, else the moving ones (S. Ioffe and C. Szegedy, ICML
    2015).
    """

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-3, name: str | None = None) -> None:
        self.momentum, self.epsilon = momentum, epsilon
        super().__init__(name)
        self.gamma: Variable | None = None

    def build(self, inputs: int, dtype: Any) -> None:
        """Make the variables for inputs of a size and dtype."""
        self.gamma = Variable(np.ones(inputs), name="gamma", dtype=dtype)
        self.beta = Variable(np.zeros(inputs), name="beta", dtype=dtype)
        self.moving_mean = Variable(np.zeros(inputs), False, "moving_mean", dtype)
        self.moving_variance = Variable(np.ones(inputs), False, "moving_variance", dtype)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        x = _input(inputs)
        if self.gamma is None:
            self.build(x.shape[-1], x.dtype)
        assert self.gamma is not None
        mean: Any = self.moving_mean
        variance: Any = self.moving_variance
        if training:
            axes = tuple(range(x.ndim - 1))
            mean, variance = np.mean(x, axis=axes), np.var(x, axis=axes)
            for moving, now in ((self.moving_mean, mean), (self.moving_variance, variance)):
                moving.assign(self.momentum * moving.numpy() + (1 - self.momentum) * now.numpy())
        return (x - mean) / np.sqrt(variance + self.epsilon) * self.gamma + self.beta


class Sequential(Module):
    """Layers one after the other.

    Parameters
    ----------
    layers : sequence of callable
        Modules, or functions of one argument.  Modules that take `training` get what the call is given.
    """

    def __init__(self, layers: Iterable[Callable[..., Any]] = (), name: str | None = None) -> None:
        self.layers: list[Callable[..., Any]] = list(layers)
        super().__init__(name)

    def add(self, layer: Callable[..., Any]) -> None:
        """One more layer, at the end."""
        self.layers.append(layer)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        for layer in self.layers:
            asks = takes_training(type(layer).__call__)
            inputs = layer(inputs, training=training) if asks else layer(inputs)
        return inputs


for _kind in (Dense, BatchNormalization, Sequential):
    for _layer in (_kind, _kind.__call__):
        refuses(
            _layer,
            "a function that is differentiated as a whole works on arrays, and a layer keeps its variables for tapes.",
            "Record the function with a GradientTape instead of decorating it, or pass the weights as arguments and "
            "write x @ kernel + bias; the activations and losses of tapegen.nn take arrays too.",
        )
