"""Operations whose gradients are registered by name."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from tapegen.rules.gradient_modifiers import stop_gradient
from tapegen.tape import custom_gradient
from tapegen.tape.engine.operations import Operation
from tapegen.tape.engine.stack_frames import user_span
from tapegen.tape.tensors.compiled_fallback import missing
from tapegen.tf.values import convert_to_tensor

Func = TypeVar("Func", bound=Callable[..., Any])

_REGISTERED: dict[str, Callable[..., Any] | None] = {}


class RegisterGradient:
    """Decorate a function that gives the gradient of an operation: `gradient(op, *upstream)`, with `op.inputs`."""

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type

    def __call__(self, gradient: Func) -> Func:
        """Register the function; it is returned as it is."""
        _REGISTERED[self.op_type] = gradient
        return gradient


def no_gradient(op_type: str) -> None:
    """Declare that an operation has no gradient: None instead of an error."""
    _REGISTERED[op_type] = None


def AdjustContrastv2(images: Any, contrast_factor: Any) -> Any:
    """The distance from the mean of each channel, times a factor."""
    mean = np.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Pictures of another contrast.  As in TensorFlow this operation has no gradient until one is registered."""
    inputs = (convert_to_tensor(images), convert_to_tensor(contrast_factor))
    refused = missing(Operation(AdjustContrastv2, None), user_span())

    def unregistered(op: Any, *upstream: Any) -> Any:
        raise refused

    given: Callable[..., Any] | None = _REGISTERED.get("AdjustContrastv2", unregistered)
    if given is None:
        return stop_gradient(AdjustContrastv2(*map(stop_gradient, inputs)))
    gradient = given

    @custom_gradient
    def adjusted(first: Any, second: Any) -> Any:
        result = AdjustContrastv2(stop_gradient(first), stop_gradient(second))
        op = SimpleNamespace(type="AdjustContrastv2", inputs=inputs, outputs=(result,))
        return result, lambda *upstream: gradient(op, *upstream)

    return adjusted(*inputs)
