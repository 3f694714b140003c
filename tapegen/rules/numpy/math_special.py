"""Error function and gamma function of the standard library.

`scipy.special`, whose import is slow, is imported when a program first needs it.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from tapegen.rules.registry import partials


@partials(math.erf, domain=[(-2.0, 2.0)])
def erf(x):
    return 2.0 / math.sqrt(math.pi) * np.exp(-x * x)


@partials(math.erfc, domain=[(-2.0, 2.0)])
def erfc(x):
    return -2.0 / math.sqrt(math.pi) * np.exp(-x * x)


@partials(math.gamma, domain=[(0.3, 4.0)], nonfinite=True)
def gamma(x, *, out):
    return out * scipy.special.digamma(x)


@partials(math.lgamma, domain=[(0.3, 4.0)], nonfinite=True)
def lgamma(x):
    return scipy.special.digamma(x)
