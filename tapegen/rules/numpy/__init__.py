"""Rules of element-wise functions, reductions, scans, statistics and polynomials.

* `elementwise` - ufuncs, the operators of Python and their counterparts in `math`
* `complex` - parts, conjugates and angles of complex numbers, `cmath`
* `stdlib_math` - functions of `math` and `cmath` that no ufunc computes
* `math_special` - `math.erf`, `math.gamma` and their like
* `reductions` - sums, means, products, extrema
* `nan_reductions` - reductions and scans that skip NaN
* `scans` - prefix sums, differences
* `statistics` - covariances, histograms, counts
* `polynomials` - polynomials as arrays of coefficients
* `decompositions` - call variants that rules do not cover, decomposed into other calls
"""
