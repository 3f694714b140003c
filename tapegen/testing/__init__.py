"""Numerical checks of derivatives, for tests of tapegen and of its users."""

from tapegen.testing.gradients import check_grads
from tapegen.testing.rules import Case, check_rule, default_cases

__all__ = ["Case", "check_grads", "check_rule", "default_cases"]
