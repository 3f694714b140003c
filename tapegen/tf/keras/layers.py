"""`tf.keras.layers`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tapegen import nn, tape
from tapegen.errors import BadArgument
from tapegen.nn import BatchNormalization, Module
from tapegen.nn.layers import takes_training
from tapegen.tf import random
from tapegen.tf.nn import dropout
from tapegen.tf.values import Variable, absent, convert_to_tensor, ones, sizes, zeros


def _glorot_uniform(shape: tuple[int, ...]) -> Any:
    ends = (shape or (1,))[-2:]
    limit = np.sqrt(6.0 / (ends[0] + ends[-1]))
    return random.uniform(shape, -limit, limit)


_INITIALIZERS: dict[Any, Callable[[Any], Any]] = {
    "zeros": zeros,
    "ones": ones,
    "glorot_uniform": _glorot_uniform,
    "random_normal": lambda shape: random.normal(shape, stddev=0.05),
    "random_uniform": lambda shape: random.uniform(shape, -0.05, 0.05),
}


class Weighted(Module):
    """A module with Keras' names for its variables, which are lists."""

    @property
    def variables(self) -> list[tape.Variable]:  # type: ignore[override]
        """All variables, each once, in the order of the attributes."""
        return list(super().variables)

    @property
    def trainable_variables(self) -> list[tape.Variable]:  # type: ignore[override]
        """The variables that are trainable."""
        return list(super().trainable_variables)

    @property
    def non_trainable_variables(self) -> list[tape.Variable]:  # type: ignore[override]
        """The variables that are not trainable."""
        return list(super().non_trainable_variables)

    @property
    def weights(self) -> list[tape.Variable]:
        """All variables."""
        return self.variables

    @property
    def trainable_weights(self) -> list[tape.Variable]:
        """The variables that are trainable."""
        return self.trainable_variables


class Layer(Weighted):
    """A module that is called through its method `call`; before the first call, `build` is given the input's shape."""

    call: Callable[..., Any]
    built = False

    def build(self, input_shape: tuple[int, ...]) -> None:
        """Make variables for inputs of a shape."""

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        if not self.built:
            self.built = True
            if type(self).build is not Layer.build:
                self.build(convert_to_tensor(inputs).shape)
        return self.call(inputs, training=training) if takes_training(type(self).call) else self.call(inputs)

    def add_weight(
        self, shape: Any = (), initializer: Any = "glorot_uniform", trainable: bool = True, name: str | None = None
    ) -> Variable:
        """A variable, which begins as a function of a shape gives it, or as one of a few names says."""
        begin = initializer if callable(initializer) else _INITIALIZERS.get(initializer)
        if begin is None:
            raise BadArgument(
                f"initializer={initializer!r} is unknown.", f"Give one of {', '.join(_INITIALIZERS)}, or a function."
            )
        return Variable(begin(sizes(shape)), trainable, name, np.float32)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"'{type(self).__name__}' has no '{name}'. Of Keras it has `call`, `build`, `add_weight`, `variables`, "
            "`trainable_variables` and `submodules`; write the training loop."
        )


class Dense(Weighted, nn.Dense):
    """See `tapegen.nn.Dense`; with `input_shape` the variables are made at once."""

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        name: str | None = None,
        input_shape: Any = None,
    ) -> None:
        super().__init__(units, activation, use_bias, name or _numbered("dense"))
        if input_shape is not None:
            self.build(int(input_shape[-1]), np.float32)

    def _variable_name(self, part: str) -> str:
        return f"{self.name}/{part}:0"


_COUNTS: Counter[str] = Counter()


def _numbered(kind: str) -> str:
    """`dense`, `dense_1`, `dense_2`, ..., as Keras counts layers without names."""
    count = _COUNTS[kind]
    _COUNTS[kind] += 1
    return f"{kind}_{count}" if count else kind


class Sequential(Weighted, nn.Sequential):
    """See `tapegen.nn.Sequential`."""


class Flatten(Layer):
    """Each example as a vector."""

    def call(self, inputs: Any) -> Any:
        """The rows, with one axis for all others."""
        tensor: Any = convert_to_tensor(inputs)
        return np.reshape(tensor, (tensor.shape[0], -1))


class Dropout(Layer):
    """While training, some elements are replaced by 0."""

    def __init__(self, rate: float, name: str | None = None) -> None:
        super().__init__(name)
        self.rate = rate

    def call(self, inputs: Any, training: bool = False) -> Any:
        """See `tf.nn.dropout`."""
        return dropout(inputs, self.rate) if training else convert_to_tensor(inputs)


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.keras.layers", name)


__all__ = ["BatchNormalization", "Dense", "Dropout", "Flatten", "Layer"]
