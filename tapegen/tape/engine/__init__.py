"""What tensors and tapes share.

* `state` - who records in this thread
* `stack_frames` - the user's stack frame
* `pytree` - nested structures of tensors
* `operations` - rules as operations: what to save, how to apply
* `leaks` - errors of tensors that leave while they are recorded
"""
