"""Disjoint sets as a union-find forest: alias sets."""

from __future__ import annotations

from collections.abc import KeysView
from typing import Generic, TypeVar

Element = TypeVar("Element")


class DisjointSets(Generic[Element]):
    """Sets with a representative each; an element that has not been joined to another one is a set of its own."""

    __slots__ = ("_above",)

    def __init__(self) -> None:
        self._above: dict[Element, Element] = {}

    @property
    def joined(self) -> KeysView[Element]:
        """The elements that another one represents, or has represented."""
        return self._above.keys()

    def find(self, element: Element) -> Element:
        """The representative of the set of an element."""
        while (above := self._above.get(element, element)) != element:
            element = above
        return element

    def join(self, a: Element, b: Element) -> None:
        """Make one set of the sets of two elements, with the representative of the second one."""
        a, b = self.find(a), self.find(b)
        if a != b:
            self._above[a] = b
