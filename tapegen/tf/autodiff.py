"""`tf.autodiff`."""

from tapegen import tape
from tapegen.tape import ForwardAccumulator


class GradientTape(tape.GradientTape):
    """A tape with TensorFlow's convention for complex numbers; see `tapegen.GradientTape`."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        super().__init__(persistent, watch_accessed_variables, conjugate=True)


__all__ = ["ForwardAccumulator", "GradientTape"]
