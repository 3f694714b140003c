"""Min-cut rematerialization: which values to record and which to recompute, at the least total work.

Each value that the backward sweep needs must be *available*: recorded, or recomputed from operands that are
available.  One recorded or recomputed value may serve many others, so the choice is made for all of them at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Option(Generic[Key]):
    """The choices for one value.

    Attributes
    ----------
    record : int
        Work to record it.
    evaluate : int or None
        Work to recompute it when its operands are available; None when it cannot be recomputed.
    operands : tuple
        The values that this reads, without those that are available at no cost.
    """

    record: int
    evaluate: int | None = None
    operands: tuple[Key, ...] = ()


def min_cut_recompute(needed: Iterable[Key], option: Callable[[Key], Option[Key]]) -> set[Key]:
    """The values to recompute; all others that are needed are recorded.

    Parameters
    ----------
    needed : iterable
        Values that must be available.
    option : callable
        The choices for a value.
    """
    options: dict[Key, Option[Key]] = {}
    work = list(dict.fromkeys(needed))
    wanted = tuple(work)
    while work:
        key = work.pop()
        if key not in options:
            options[key] = option(key)
            work.extend(options[key].operands)
    never = 1 + sum(found.record + (found.evaluate or 0) for found in options.values())
    # `have` is on the side of the source when the value is available, `made` when it is recomputed
    net = _Network()
    numbers = {key: net.nodes(2) for key in options}
    for key in wanted:
        net.edge(net.source, numbers[key][0], never)
    for key, found in options.items():
        have, made = numbers[key]
        if found.evaluate is None:
            net.edge(have, net.sink, found.record)
            continue
        net.edge(have, made, found.record)
        net.edge(made, net.sink, found.evaluate)
        for operand in found.operands:
            net.edge(made, numbers[operand][0], never)
    lost = net.cut()
    return {key for key, found in options.items() if found.evaluate is not None and numbers[key][1] not in lost}


class _Network:
    """Maximum flow by shortest augmenting paths, a level graph at a time (Dinic)."""

    def __init__(self) -> None:
        self.to: list[int] = []  # edge 2k and its reverse 2k + 1
        self.capacity: list[int] = []
        self.out: list[list[int]] = []
        self.source, self.sink = self.nodes(2)

    def nodes(self, count: int) -> list[int]:
        first = len(self.out)
        self.out.extend([] for _ in range(count))
        return list(range(first, first + count))

    def edge(self, start: int, end: int, capacity: int) -> None:
        if capacity:
            self.out[start].append(len(self.to))
            self.out[end].append(len(self.to) + 1)
            self.to += (end, start)
            self.capacity += (capacity, 0)

    def cut(self) -> set[int]:
        """The nodes on the side of the sink in the minimum cut that has the fewest of them."""
        while (levels := self._levels()) is not None:
            left = [list(edges) for edges in self.out]
            while self._augment(levels, left):
                pass
        reached = {self.sink}
        work = [self.sink]
        while work:
            node = work.pop()
            for edge in self.out[node]:  # its reverse leads here
                if self.capacity[edge ^ 1] and self.to[edge] not in reached:
                    reached.add(self.to[edge])
                    work.append(self.to[edge])
        return reached

    def _levels(self) -> list[int] | None:
        levels = [-1] * len(self.out)
        levels[self.source] = 0
        queue = deque([self.source])
        while queue:
            node = queue.popleft()
            for edge in self.out[node]:
                if self.capacity[edge] and levels[self.to[edge]] < 0:
                    levels[self.to[edge]] = levels[node] + 1
                    queue.append(self.to[edge])
        return levels if levels[self.sink] >= 0 else None

    def _augment(self, levels: list[int], left: list[list[int]]) -> bool:
        """Send the flow that one path admits; dead ends are not tried again at these levels."""
        path: list[int] = []
        node = self.source
        while node != self.sink:
            if left[node]:
                edge = left[node][-1]
                if self.capacity[edge] and levels[self.to[edge]] == levels[node] + 1:
                    path.append(edge)
                    node = self.to[edge]
                else:
                    left[node].pop()
            elif path:
                node = self.to[path.pop() ^ 1]
                left[node].pop()
            else:
                return False
        amount = min(self.capacity[edge] for edge in path)
        for edge in path:
            self.capacity[edge] -= amount
            self.capacity[edge ^ 1] += amount
        return True
