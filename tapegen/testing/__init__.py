"""Numerical checks of derivatives, for tests of tapegen and of its users.

* `finite_differences` - central differences of eighth order
* `projections` - derivatives along random directions beside the function itself
* `check_grads` - the derivatives of a function against differences
* `check_rules` - a derivative rule against differences
"""

from tapegen.testing.check_grads import check_grads
from tapegen.testing.check_rules import Case, check_rule, default_cases

__all__ = ["Case", "check_grads", "check_rule", "default_cases"]
