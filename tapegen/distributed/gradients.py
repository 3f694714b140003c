"""Value and gradient of a sum over partitions: the graph of tasks of a call."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, Unpack

import cloudpickle
import dask
import distributed
import numpy as np

from tapegen.api import Differentiable, with_options
from tapegen.distributed.partitions import partitions_of
from tapegen.distributed.worker_tasks import added, compiled, held, machine, partition_gradient
from tapegen.errors import BadArgument
from tapegen.frontend.values.pytree import children_of
from tapegen.pipeline.options import Wrt, as_wrt
from tapegen.runtime.tracebacks import hides_frames
from tapegen.settings import Keywords, refuse_keywords

_WIDTH = 8  # terms of one sum


class DistributedGradient:
    """Value and gradient of the sum of a function over partitions of data; made by `value_and_grad`."""

    def __init__(self, function: Differentiable, client: Any) -> None:
        self.function, self.client = function, client
        self._sent: tuple[Any, Any] | None = None  # a client, and the function there
        self._compiled: dict[Any, list[Any]] = {}

    def __repr__(self) -> str:
        return f"<sum of {self.function!r} over partitions>"

    @hides_frames
    def __call__(self, *args: Any) -> tuple[Any, Any]:
        """Value and gradient.

        Parameters
        ----------
        *args
            The arguments of the function, the partitions in the place of the last one.

        Returns
        -------
        value, gradient
            The sums over the partitions; the gradient has the structure of `wrt`.

        Raises
        ------
        BadArgument
            The client is closed, or there are no partitions.
        """
        *params, data = _bound(self.function, args)
        parts = partitions_of(data)
        client = _usable(self.client)
        if self._sent is None or self._sent[0] is not client or _is_lost(self._sent[1]):
            self._sent = client, _held(client, cloudpickle.dumps(self.function))
            self._compiled.clear()
        function = self._sent[1]
        given = _held(client, tuple(params))
        kind = _kind((params, parts[0])), getattr(data, "dtype", None), getattr(data, "ndim", None)
        entries = self._machine_code(client, kind, function, given, parts[0])
        name = f"value_and_grad-{dask.tokenize.tokenize(given.key)}"
        task = dask.delayed(partition_gradient, pure=False)
        terms: list[Any] = [
            task(function, given, part, k, entries, dask_key_name=f"{name}-{k}") for k, part in enumerate(parts)
        ]
        plus, level = dask.delayed(added, pure=False), 0
        while len(terms) > 1:  # a tree by position: the bits do not depend on which worker is the first
            level += 1
            groups = [terms[k : k + _WIDTH] for k in range(0, len(terms), _WIDTH)]
            terms = [plus(group, dask_key_name=f"sum-{name}-{level}-{k}") for k, group in enumerate(groups)]
        value, gradient = client.compute(terms[0]).result()
        return value, gradient

    def _machine_code(self, client: Any, kind: Any, function: Any, params: Any, part: Any) -> list[Any]:
        """Entries of the cache that one worker with each kind of processor compiles, as futures."""
        if self.function.options.backend == "python" or not self.function.options.cache:
            return []
        if kind not in self._compiled or any(map(_is_lost, self._compiled[kind])):
            workers = defaultdict(list)
            for address, found in client.run(machine).items():
                workers[found].append(address)
            tasks = []
            for addresses in workers.values():
                with dask.annotate(workers=addresses, allow_other_workers=True):
                    tasks.append(dask.delayed(compiled, pure=False)(function, params, part))
            self._compiled[kind] = client.compute(tasks, optimize_graph=False) if tasks else []
        return self._compiled[kind]


def value_and_grad(
    func: Callable[..., Any], client: Any = None, wrt: Wrt = 0, **options: Unpack[Keywords]
) -> DistributedGradient:
    """A function that returns value and gradient of the sum of `func(params, part)` over partitions of data.

    Parameters
    ----------
    func : callable
        A function of parameters and one partition, its last argument, that returns one number.
    client : distributed.Client, optional
        The cluster; by default the current client, or a `LocalCluster` on this machine that ends with the process.
    wrt : int, str or sequence of them
        Arguments to differentiate with respect to, by position or name; not the partition.
    **options
        Options of `differentiable`.

    Returns
    -------
    DistributedGradient
        Call it with the arguments of `func`, and partitions in the place of the last one: a list, a dask bag, array or
        DataFrame, a chunked xarray object, or a dict of dask arrays.  The sum is a tree by position, so its bits depend
        neither on the number of workers nor on which one is the first.

    Raises
    ------
    BadArgument
        `wrt` contains the partition, or the client is closed.
    """
    refuse_keywords("value_and_grad", dict(options))
    chosen: Any = wrt if isinstance(wrt, int | str) else as_wrt(wrt)
    function = with_options(func, chosen, options)
    if function.options.has_aux:
        raise BadArgument("auxiliary results have no sum over partitions.", "Return the objective alone.")
    if client is not None:
        _usable(client)
    return DistributedGradient(function, client)


def _bound(function: Differentiable, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments, where the partitions are the last of at least two, and are not differentiated."""
    if len(args) < 2:
        raise BadArgument(
            "the partitions are missing.", "Pass the parameters of the function, and the partitions at the end."
        )
    wrt = function.options.wrt
    names = list(inspect.signature(function.python).parameters)
    for each in [wrt] if isinstance(wrt, int | str) else wrt:
        position = names.index(each) if isinstance(each, str) and each in names else each
        if position in (len(args) - 1, -1):
            raise BadArgument(
                "the partitions are differentiated by themselves alone: their gradients have no sum.",
                "Leave the last argument out of wrt.",
            )
    return args


def _usable(client: Any) -> Any:
    """A client that runs."""
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:  # there is none
            client = distributed.Client(dashboard_address=":0")
    if not isinstance(client, distributed.Client):
        raise BadArgument(
            f"client is of type {type(client).__name__}.", "Pass a distributed.Client: Client(address) of a cluster."
        )
    if client.asynchronous:
        raise BadArgument("the client is asynchronous.", "Pass a Client(..., asynchronous=False).")
    if client.status != "running":
        raise BadArgument(f"the client is {client.status}.", "Pass one that is connected to its cluster.")
    return client


def _held(client: Any, value: Any) -> Any:
    """A value on the cluster, which the scheduler can place anew when a worker is lost (what is scattered is gone)."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        return client.submit(held, value, pure=False)


def _is_lost(future: Any) -> bool:
    """Whether a future will not have a result: its cluster was restarted, or its task failed."""
    return future.status in ("cancelled", "error", "lost")


def _kind(value: Any) -> Any:
    """The types of arguments, as a key."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim
    struct = children_of(value) if isinstance(value, tuple | list | dict) or is_dataclass(value) else None
    if struct is None:
        return type(value)
    return struct.cls, struct.keys, tuple(map(_kind, struct.children))


__all__ = ["DistributedGradient", "value_and_grad"]
