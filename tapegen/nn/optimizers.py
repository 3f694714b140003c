"""Optimizers: rules by which gradients change variables."""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.tape import Variable


class _Optimizer(abc.ABC):
    """What optimizers have in common: a state for each variable."""

    def __init__(self, learning_rate: float) -> None:
        if not learning_rate >= 0:
            raise BadArgument(f"learning_rate={learning_rate} is no rate.", "Give a number that is not negative.")
        self.learning_rate = learning_rate
        self.iterations = 0
        self._states: dict[int, dict[str, Any]] = {}  # by the numbers of the variables, which nothing else gets

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Change each variable by its gradient; those without one (None) stay as they are.

        Raises
        ------
        BadArgument
            If there is no gradient at all, one has another shape than its variable, or pairs are something else.
        """
        given = [_pair(item) for item in grads_and_vars]
        pairs = [(np.asarray(gradient), variable) for gradient, variable in given if gradient is not None]
        if not pairs:
            raise BadArgument(
                "no variable has a gradient.", "Read the variables inside the tape; tape.explain says what is missing."
            )
        for gradient, variable in pairs:
            if gradient.shape != variable.shape:
                raise BadArgument(
                    f"the gradient of '{variable.name}' has shape {gradient.shape}, the variable {variable.shape}.",
                    "Give pairs (gradient, variable): zip(gradients, variables).",
                )
        self.iterations += 1
        for gradient, variable in pairs:
            state = self._states.setdefault(variable._id, {})
            variable.assign_sub(self._step(gradient, state).astype(variable.dtype, copy=False))

    @abc.abstractmethod
    def _step(self, gradient: np.ndarray, state: dict[str, Any]) -> np.ndarray:
        """What is subtracted from a variable; the state is its own."""


def _pair(item: Any) -> tuple[Any, Variable]:
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Variable):
        return item[0], item[1]
    raise BadArgument(
        f"{item!r} is no pair of a gradient and a variable.", "Give zip(gradients, variables), in this order."
    )


class SGD(_Optimizer):
    """Gradient descent: `v -= learning_rate * gradient`, or along a velocity that keeps part of itself.

    Parameters
    ----------
    learning_rate : float
    momentum : float
        The part of the velocity that is kept in each step.
    nesterov : bool
        Whether a step goes as far as the velocity will be after it.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False) -> None:
        super().__init__(learning_rate)
        self.momentum = momentum
        self.nesterov = nesterov

    def _step(self, gradient: np.ndarray, state: dict[str, Any]) -> np.ndarray:
        step = self.learning_rate * gradient
        if self.momentum:
            step = step + self.momentum * state.get("velocity", 0.0)
            state["velocity"] = step
            if self.nesterov:
                step = self.learning_rate * gradient + self.momentum * step
        return step


class Adam(_Optimizer):
    """Steps of even size by moving moments of the gradient (D. Kingma and J. Ba, ICLR 2015, end of section 2).

    Parameters
    ----------
    learning_rate : float
    beta_1, beta_2 : float
        How much of the first and second moment is kept in each step.
    epsilon : float
        Added to the root of the second moment.
    """

    def __init__(
        self, learning_rate: float = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7
    ) -> None:
        super().__init__(learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def _step(self, gradient: np.ndarray, state: dict[str, Any]) -> np.ndarray:
        count = state.get("count", 0) + 1
        first = self.beta_1 * state.get("first", 0.0) + (1 - self.beta_1) * gradient
        second = self.beta_2 * state.get("second", 0.0) + (1 - self.beta_2) * gradient**2
        state.update(first=first, second=second, count=count)
        rate = self.learning_rate * (1 - self.beta_2**count) ** 0.5 / (1 - self.beta_1**count)
        return rate * first / (np.sqrt(second) + self.epsilon)


class RMSprop(_Optimizer):
    """Steps by the gradient, divided by the root of the moving mean of its square.

    Parameters
    ----------
    learning_rate : float
    rho : float
        How much of the mean is kept in each step.
    momentum : float
        The part of a step that is kept for the next one.
    epsilon : float
        Added to the mean.
    """

    def __init__(
        self, learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7
    ) -> None:
        super().__init__(learning_rate)
        self.rho, self.momentum, self.epsilon = rho, momentum, epsilon

    def _step(self, gradient: np.ndarray, state: dict[str, Any]) -> np.ndarray:
        square = self.rho * state.get("square", 0.0) + (1 - self.rho) * gradient**2
        step = self.learning_rate * gradient / np.sqrt(square + self.epsilon)
        if self.momentum:
            step = step + self.momentum * state.get("step", 0.0)
        state.update(square=square, step=step)
        return step
