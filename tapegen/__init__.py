"""tapegen: gradients of ordinary Python functions as readable, compiled Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tapegen.api import Differentiable, DifferentiableWithAux, differentiable, grad, jvp, value_and_grad, vjp
from tapegen.backend.numba.workspaces import clear_workspaces
from tapegen.errors import (
    AliasError,
    BadArgument,
    BuildError,
    CacheWarning,
    CompileLimit,
    InternalError,
    MissingRule,
    NameConflict,
    NotDifferentiable,
    NotFinite,
    PerformanceWarning,
    SourceUnavailable,
    TapegenError,
    TapeMemoryError,
    UnsupportedSyntax,
)
from tapegen.higher_order import hessian, hvp, jacobian, linearize
from tapegen.pipeline.debug_nans import debug_nans
from tapegen.rules.gradient_modifiers import clip_gradient, print_gradient, scale_gradient, stop_gradient
from tapegen.rules.registry import expands, inactive, linear, partials, pullback
from tapegen.settings import config

if TYPE_CHECKING:
    from tapegen import aot, plot
    from tapegen.batching import Batch, batch
    from tapegen.pipeline.debug_passes import debug
    from tapegen.tape import (
        ForwardAccumulator,
        GradientTape,
        Tensor,
        UnconnectedGradients,
        Variable,
        cast,
        clip_by_global_norm,
        clip_by_norm,
        clip_by_value,
        constant,
        convert_to_tensor,
        global_norm,
        identity,
    )
    from tapegen.tape.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
    from tapegen.testing.check_grads import check_grads
    from tapegen.testing.check_rules import check_rule

__all__ = [
    "AliasError",
    "BadArgument",
    "Batch",
    "BuildError",
    "CacheWarning",
    "CompileLimit",
    "Differentiable",
    "DifferentiableWithAux",
    "ForwardAccumulator",
    "GradientTape",
    "InternalError",
    "MissingRule",
    "NameConflict",
    "NotDifferentiable",
    "NotFinite",
    "PerformanceWarning",
    "SourceUnavailable",
    "TapeMemoryError",
    "TapegenError",
    "Tensor",
    "UnconnectedGradients",
    "UnsupportedSyntax",
    "Variable",
    "aot",
    "batch",
    "cast",
    "check_grads",
    "check_rule",
    "clear_workspaces",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "clip_gradient",
    "config",
    "constant",
    "convert_to_tensor",
    "custom_gradient",
    "debug",
    "debug_nans",
    "differentiable",
    "expands",
    "global_norm",
    "grad",
    "grad_pass_through",
    "hessian",
    "hvp",
    "identity",
    "inactive",
    "jacobian",
    "jvp",
    "linear",
    "linearize",
    "partials",
    "plot",
    "print_gradient",
    "pullback",
    "recompute_grad",
    "scale_gradient",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

_LATER = {
    "tapegen.batching": ("Batch", "batch"),
    "tapegen.tape": (
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
    ),
    "tapegen.pipeline.debug_passes": ("debug",),
    "tapegen.testing": ("check_grads", "check_rule"),
    "tapegen.aot": (),
    "tapegen.plot": (),
}
"""Modules that derivatives do not need, imported when one of their names is first used: the import takes less time."""


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(module), name))
        if module == f"{__name__}.{name}":
            return import_module(module)  # which sets the attribute
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
