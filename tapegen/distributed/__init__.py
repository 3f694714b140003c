"""Clusters: value and gradient of a sum over partitions of data, on dask.distributed.

* `partitions` - lists, dask collections and xarray objects as partitions
* `worker_tasks` - what workers run: machine code for their processors, one partition, sums
* `gradients` - the graph of tasks of a call

dask loses no task: what a lost worker held or ran is computed again by another one.  Everything that tasks read is
in the graph or another task of it, so this holds for functions, parameters and machine code too.
"""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f"tapegen.distributed needs dask ({error}): pip install 'tapegen[dask]'") from error

from tapegen.distributed.gradients import DistributedGradient, value_and_grad

__all__ = ["DistributedGradient", "value_and_grad"]
