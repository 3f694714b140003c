"""Eager recording: tensors, variables and gradient tapes over NumPy, with the derivative rules of `tapegen.rules`."""

from tapegen.tape.arguments import UnconnectedGradients
from tapegen.tape.clipping import clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from tapegen.tape.custom import custom_gradient, grad_pass_through, recompute_grad
from tapegen.tape.forward import ForwardAccumulator
from tapegen.tape.gradient_tape import GradientTape
from tapegen.tape.tensor import Tensor
from tapegen.tape.variable import Variable, cast, constant, convert_to_tensor, identity

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
