"""The disk cache: derived programs and machine code.

* `atomic_files` - files that appear whole or not at all
* `store` - content-addressed entries in a directory that only the user can write
* `derived_programs` - derived source and its map to the user's lines
* `machine_code` - machine code of numba

Each entry is found by a hash of its inputs: derived source by the lowered program, machine code by the source and the
argument types.  A program that holds an object without a name outside of the process has no key and is not stored.
"""
