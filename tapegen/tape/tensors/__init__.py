"""Tensors, variables, and the records of operations on them.

* `accumulation` - cotangent terms, and the adjoint of broadcasting
* `masked_zeros` - zeros of a cotangent that come from a selection
* `records` - one recorded call and its pullback
* `tensor` - immutable values whose operations are recorded
* `indexing` - subscripts and conversions
* `variable` - variables, constants and conversions
* `closures` - operations with a given pullback
* `array_methods` - methods of arrays on tensors
* `numpy_dispatch` - `__array_function__` and `__array_ufunc__`
* `compiled_calls` - differentiable functions called with tensors
* `compiled_fallback` - calls that the compiler derives where no rule covers them
"""

from tapegen.tape.engine.hooks import HOOKS
from tapegen.tape.tensors import compiled_calls, indexing, numpy_dispatch, variable

HOOKS.getitem = indexing.getitem
HOOKS.ufunc = numpy_dispatch.ufunc
HOOKS.function = numpy_dispatch.function
HOOKS.stack = variable.convert_to_tensor
HOOKS.call_compiled = compiled_calls.call
