"""The passes that derive programs; `pipeline.compile` declares their order.

* `derivation` - a derivative under construction: every program on the way
* `preparation` - the passes that both modes run first
* `reverse_sweeps` - reverse mode: two sweeps
* `recording` - what the backward sweep reads, and the layout of its tapes
* `assembly` - readable sweeps as functions
* `tangents` - forward mode
"""
