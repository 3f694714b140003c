"""Progress bars of loops: a loop over `tqdm(items)` runs over the items, and tells a bar how far it is.

The three functions stand in programs as messages do: they change nothing that a program reads.  Bars of nested loops
form a stack for each thread.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any


class _Bars(threading.local):
    def __init__(self) -> None:
        self.open: list[Any] = []


_bars = _Bars()


def begin_progress(total: int | None, *, bar: str = "tqdm.std:tqdm", **options: Any) -> None:
    """Open the bar of a loop.

    Parameters
    ----------
    total : int or None
        The number of iterations.
    bar : str
        The class of the bar, with its module.
    **options
        Its options; a file is named as "stdout" or "stderr".
    """
    module, _, name = bar.partition(":")
    if isinstance(options.get("file"), str):
        options["file"] = getattr(sys, options["file"])
    _bars.open.append(getattr(importlib.import_module(module), name)(total=total, **options))


def step_progress() -> None:
    """One iteration of the innermost loop with a bar is done."""
    _bars.open[-1].update()


def end_progress() -> None:
    """Close the bar of the innermost loop that has one."""
    _bars.open.pop().close()


def opened() -> int:
    """How many bars of this thread are open."""
    return len(_bars.open)


def close_since(count: int, *, erase: bool = False) -> None:
    """Close the bars of loops that an exception has ended, or erase those of loops that begin again."""
    while len(_bars.open) > count:
        if erase:
            _bars.open[-1].leave = False
        end_progress()


PROGRESS = (begin_progress, step_progress, end_progress)
