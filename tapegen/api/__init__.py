"""Public API of first derivatives.

* `differentiable_function` - a Python function together with its derivatives
* `decorator` - `differentiable`, which makes these objects
* `functions` - derivatives of functions that are not decorated
"""

from tapegen.api.decorator import differentiable
from tapegen.api.differentiable_function import (
    Differentiable,
    DifferentiableWithAux,
    check_sequences,
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
    "check_sequences",
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
