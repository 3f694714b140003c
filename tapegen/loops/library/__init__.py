"""Library calls in compiled code.

* `inline` - functions that compiled code cannot call, inlined
* `templates` - functions decomposed into what numba supports
* `linalg_templates` - the same for linear algebra
* `native_calls` - calls that numba supports as they are
* `lapack` - LAPACK calls
* `fft` - Fourier transforms
* `random` - random draws, bit for bit as NumPy makes them
* `routine_calls` - calls of the program's own recursive functions
* `messages` - messages that Python writes for compiled code
* `bailout` - fallback from compiled code to Python
"""
