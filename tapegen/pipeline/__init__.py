"""From a lowered program to what runs.

* `options` - what users decide about a function
* `compile` - the passes in order
* `nested` - derivatives inside differentiated functions
* `inspection` - what was generated and recorded, and why
* `debug_nans` - which line first makes a NaN or an infinity
* `reproducer` - a fault of tapegen as a file that reproduces it
* `fault_boundary` - faults of tapegen as `InternalError`
* `program` - what is derived and built for one specialization
"""
