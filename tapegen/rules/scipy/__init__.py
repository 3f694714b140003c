"""Rules of SciPy outside linear algebra and signals.

* `special` - logistic, entropy, error functions and integrals
* `gamma` - gamma, beta, Bessel and hypergeometric functions
* `stats` - log densities and distribution functions
* `interpolate` - interpolation through points
* `splines` - B-splines by knots and coefficients
* `quadrature` - integrals of samples and of functions
* `ode` - ordinary differential equations
* `optimize` - roots, fixed points and minima, by implicit differentiation
"""
