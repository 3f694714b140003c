"""Loops whose iterations several threads run, in chunks.

* `iterations` - what the iterations of a loop share: whether they may run in any order, and why not
* `disjoint` - elements that two iterations cannot both access
* `scratch` - arrays that carry nothing from iteration to iteration
* `chunk_tapes` - tapes that iterations extend
* `work` - how much work a loop is, from the sizes of arrays
* `chunk_arrays` - arrays and ranges of chunks
* `outlining` - loops as functions of a chunk of their iterations
"""
