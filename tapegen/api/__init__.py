"""Public API of first derivatives.

* `decorator` - the decorator, and the objects it makes
* `functions` - derivatives of functions that are not decorated
"""

from tapegen.api.decorator import (
    Differentiable,
    DifferentiableWithAux,
    differentiable,
    directions,
    refuse_recorded,
    undecorated,
    with_options,
)
from tapegen.api.functions import along, grad, jvp, value_and_grad, vjp

__all__ = [
    "Differentiable",
    "DifferentiableWithAux",
    "along",
    "differentiable",
    "directions",
    "grad",
    "jvp",
    "refuse_recorded",
    "undecorated",
    "value_and_grad",
    "vjp",
    "with_options",
]
