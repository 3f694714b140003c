"""Library functions in compiled code: BLAS, LAPACK, Fourier transforms, special functions; messages.

* `matrix_products` - matrix products and linear systems for all memory layouts
* `lapack` - LAPACK calls as `scipy.linalg.cython_lapack` exports them
* `fft` - Fourier transforms by the loops of `numpy.fft`
* `callees` - functions that only compiled code calls, as parts of their callers
* `special_functions` - functions that `scipy.special.cython_special` exports
* `messages` - messages that Python writes for compiled code
"""
