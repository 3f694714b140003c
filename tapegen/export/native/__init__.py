"""Native code: generated source as a shared library that needs neither Python nor numba.

* `object_code` - object files of compiled source
* `blas` - the provider of BLAS and LAPACK
* `entry_points` - the C functions of a library as data
* `c_wrappers` - the C functions around the native ones
* `c_header` - the C header
* `linker` - linking by the C compiler
"""
