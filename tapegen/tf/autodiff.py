"""`tf.autodiff`."""

from tapegen.tape import ForwardAccumulator, GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]
