"""Eager recording over NumPy: tensors, variables and gradient tapes, with TensorFlow's semantics.

* `recorder` - the common base of tapes and accumulators
* `gradient_arguments` - targets, sources and seeds
* `gradient_tape` - reverse mode: `GradientTape`
* `forward_accumulator` - forward mode: `ForwardAccumulator`
* `custom_gradient` - functions with gradients of their own
* `clipping` - gradient clipping
* `diagnostics` - why a gradient is None
* `export_source` - the records of a tape as a generated program
* `tensors` - tensors, variables, records
* `engine` - shared by tensors and tapes
"""

from tapegen.tape.clipping import clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from tapegen.tape.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from tapegen.tape.forward_accumulator import ForwardAccumulator
from tapegen.tape.gradient_arguments import UnconnectedGradients
from tapegen.tape.gradient_tape import GradientTape
from tapegen.tape.tensors.tensor import Tensor
from tapegen.tape.tensors.variable import Variable, cast, constant, convert_to_tensor, identity

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "Tensor",
    "UnconnectedGradients",
    "Variable",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "constant",
    "convert_to_tensor",
    "custom_gradient",
    "global_norm",
    "grad_pass_through",
    "identity",
    "recompute_grad",
]
