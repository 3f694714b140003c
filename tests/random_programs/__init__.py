"""Random programs against independent oracles.

Nothing here imports tapegen except `adapter.py`, the one file that calls its public interface: the dual numbers and the
finite field that judge the gradients know nothing of the rules that made them.
"""
