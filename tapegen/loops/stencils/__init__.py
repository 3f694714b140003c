"""Adjoints of stencils: loops that add to neighbouring elements, as loops over the elements that are added to.

* `scatter_separation` - the additions of a nest of loops in nests of their own
* `scatter_to_gather` - scattered additions (stencil adjoints) as gathers
"""
