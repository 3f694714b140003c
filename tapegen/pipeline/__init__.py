"""The compilation pipeline: from a lowered program to executable code.

* `options` - the user's options for a function
* `stages` - the names of the programs between the lowered function and its loops
* `passes` - the passes of derivation
* `compile` - their order
* `batch_loops` - a program run for each instance of a batch
* `nested` - derivatives inside differentiated functions
* `highlight` - syntax highlighting
* `aligned_sweeps` - forward and backward sweep by statements
* `html_view` - generated code as HTML
* `inspection` - what was generated and recorded, and why
* `debug_nans` - which line first makes a NaN or an infinity
* `debug_passes` - optimizations switched off by name
* `reproducer` - an internal error as a file that reproduces it
* `fault_boundary` - internal errors as `InternalError`
* `artifacts` - what is derived and built for one specialization, and its runs
"""
