"""Roots and minima (`scipy.optimize`): refused by name."""

from __future__ import annotations

from scipy import optimize

from tapegen.rules.registry import refused

refused(
    optimize.root,
    optimize.root_scalar,
    optimize.brentq,
    optimize.bisect,
    optimize.newton,
    optimize.fixed_point,
    reason="it calls a function at points of its own choice.",
    advice="Write Newton's iteration as a loop, with the derivative by tg.grad: loops are differentiated.",
)
refused(
    optimize.minimize,
    optimize.minimize_scalar,
    reason="it calls a function at points of its own choice.",
    advice="Write the descent as a loop, with the gradient by tg.grad: loops are differentiated, and compiled.",
)
