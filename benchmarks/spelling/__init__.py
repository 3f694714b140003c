"""The same mathematics in several spellings, each as somebody writes it, and the adjoint of `benchmarks.hand`.

A module for each field holds the kernels.  What a spelling takes and what its gradient is may have another structure
than the kernel's (`arguments`, `gradient`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Spelling:
    """One way to write a kernel.

    Attributes
    ----------
    function : callable
        The function as it is differentiated.
    arguments : callable
        From the kernel's arguments to those of the function.
    wrt : tuple of int or None
        Which of these are differentiated; None for those of the kernel.
    gradient : callable
        From the gradients of the function to those of the kernel.
    """

    function: Callable[..., Any]
    arguments: Callable[..., tuple] = lambda *args: args
    wrt: tuple[int, ...] | None = None
    gradient: Callable[..., tuple] = lambda *parts: parts


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A function of several spellings.

    Attributes
    ----------
    args : callable
        The arguments, by default at full size: gradients that take milliseconds.
    small : tuple
        What `args` takes for a small size.
    wrt : tuple of int
        The arguments by which it is differentiated.
    spellings : dict
        Its spellings by name.
    """

    args: Callable[..., tuple]
    small: tuple
    wrt: tuple[int, ...]
    spellings: dict[str, Spelling]


def spelled(*functions: Callable[..., Any], **others: Spelling) -> dict[str, Spelling]:
    """Spellings under the names of their functions, and others that take other structures."""
    return {each.__name__.rpartition("_by_")[2]: Spelling(each) for each in functions} | others
