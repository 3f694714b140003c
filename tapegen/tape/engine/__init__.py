"""What tensors and tapes share.

* `state` - who records in this thread
* `stack_frames` - the user's stack frame
* `pytree` - nested structures of tensors
* `operations` - rules as operations: what to save, how to apply
* `hooks` - what tensors ask of modules that are made of tensors themselves
* `leaks` - errors of tensors that leave while they are recorded
"""
