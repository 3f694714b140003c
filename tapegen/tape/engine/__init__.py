"""Engine of tapes: what tensors and tapes share.

* `state` - the active recorders of this thread
* `stack_frames` - the user's stack frame
* `pytree` - nested structures of tensors
* `operations` - rules as operations: which values to save, how to apply
* `hooks` - callbacks to modules that are built on tensors
* `leaks` - errors for tensors that escape while they are recorded
"""
