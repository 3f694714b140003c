"""The disk cache: derived programs and machine code.

* `atomic_files` - atomic file writes
* `store` - content-addressed entries in a directory that only the user can write
* `derived_programs` - derived source and its map to the user's lines
* `machine_code` - machine code of numba

Each entry has a key, a hash of its inputs: derived source of the lowered program, machine code of the source and the
argument types.  A program that holds an object which other processes cannot name has no key and is not stored.
"""
