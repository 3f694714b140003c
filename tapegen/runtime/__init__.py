"""Runtime of differentiable functions: specialization, dispatch, fast paths of calls.

* `tracebacks` - errors show the frames of the user's program only
* `foreign_arrays` - arrays of other libraries among the arguments
* `tangents` - packing and unpacking of tangents
* `random_state` - states of random generators among the arguments
* `repeated_messages` - messages of a second run that were seen already
* `stored_state` - consistency of stores into objects of the caller
* `program_cache` - bounded cache of programs, least recently used evicted
* `fast_call` - pre-resolved calls of compiled derivatives
* `signature_key` - dispatch keys of calls
* `closure_sharing` - compiled code shared by equal closures
* `checkpointed_calls` - which loops of a call are checkpointed, in segments of which lengths
* `calls` - parts of a call: cotangents, checks, errors
* `bound_call` - one call of a specialized program, and its errors
* `specialization_reason` - why a call needs a program of its own
* `specialization` - one specialization per combination of argument types
* `inline_cache` - dispatch by the signature of an earlier call
* `njit` - derivatives inside the user's own compiled code
"""
