"""Generated text as a shared library that needs neither Python nor numba.

* `object_code` - object files from compiled text
* `blas` - where a library takes BLAS and LAPACK from
* `entry_points` - the C functions of a library as data
* `c_wrappers` - the C functions around the native ones
* `c_header` - the C header
* `linker` - linking by the C compiler
"""
