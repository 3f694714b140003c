"""`tf.keras.layers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tapegen.nn import BatchNormalization, Dense, Module
from tapegen.nn.layers import takes_training
from tapegen.tape import Variable, convert_to_tensor
from tapegen.tf.values import absent


class Layer(Module):
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

    @property
    def weights(self) -> tuple[Variable, ...]:
        """All variables."""
        return self.variables

    @property
    def trainable_weights(self) -> tuple[Variable, ...]:
        """The variables that are trainable."""
        return self.trainable_variables

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"'{type(self).__name__}' has no '{name}'. Of Keras it has `call`, `build`, `variables`, "
            "`trainable_variables` and `submodules`; make variables with tf.Variable, and write the training loop."
        )


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.keras.layers", name)


__all__ = ["BatchNormalization", "Dense", "Layer"]
