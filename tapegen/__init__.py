"""tapegen: gradients of ordinary Python functions as readable, compiled Python."""

from tapegen.api import Differentiable, differentiable, grad, jvp, value_and_grad, vjp
from tapegen.backend.watch import debug_nans
from tapegen.errors import (
    AliasError,
    BadArgument,
    BuildError,
    CacheWarning,
    CompileLimit,
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
from tapegen.orders import hessian, hvp, jacobian, linearize
from tapegen.rules.registry import expands, inactive, linear, partials, pullback
from tapegen.testing import check_grads, check_rule

__all__ = [
    "AliasError",
    "BadArgument",
    "BuildError",
    "CacheWarning",
    "CompileLimit",
    "Differentiable",
    "MissingRule",
    "NameConflict",
    "NotDifferentiable",
    "NotFinite",
    "PerformanceWarning",
    "SourceUnavailable",
    "TapeMemoryError",
    "TapegenError",
    "UnsupportedSyntax",
    "check_grads",
    "check_rule",
    "debug_nans",
    "differentiable",
    "expands",
    "grad",
    "hessian",
    "hvp",
    "inactive",
    "jacobian",
    "jvp",
    "linear",
    "linearize",
    "partials",
    "pullback",
    "value_and_grad",
    "vjp",
]
