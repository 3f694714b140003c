"""From a lowered program to what runs.

* `options` - what users decide about a function
* `stages` - the names of the programs between the lowered function and its loops
* `preparation` - the passes that come first in both modes
* `derivation` - derivatives in the making: every program on the way
* `compile` - the passes in order
* `nested` - derivatives inside differentiated functions
* `inspection` - what was generated and recorded, and why
* `debug_nans` - which line first makes a NaN or an infinity
* `debug_passes` - optimizations switched off by name
* `reproducer` - a fault of tapegen as a file that reproduces it
* `fault_boundary` - faults of tapegen as `InternalError`
* `program` - what is derived and built for one specialization
"""
