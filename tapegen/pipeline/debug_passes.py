"""Debug option that switches optimizations off by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tapegen.errors import BadArgument
from tapegen.ir.passes import Pass, disabled_passes, without_passes
from tapegen.loops.pipeline import PASSES
from tapegen.pipeline.compile import FORWARD_PASSES, REVERSE_PASSES

_ALL: tuple[Pass[Any], ...] = (*REVERSE_PASSES, *FORWARD_PASSES, *PASSES)

OPTIMIZATIONS = tuple(dict.fromkeys(each.name for each in _ALL if each.optimization))
"""The passes that can be switched off, in order."""


@contextmanager
def debug(*, disable: str | Iterable[str] = ()) -> Iterator[None]:
    """A context in which functions are specialized without some optimizations.

    It shows what an optimization does, or does wrong.

    Values and derivatives are the same except for rounding.  Earlier specializations are not used inside, and
    specializations made inside are not used after it; `f.njit` is not affected.  Nested `debug` contexts
    disable the passes of both.

    Parameters
    ----------
    disable : str or iterable of str
        Names of passes; `tapegen show --stage` and `f.inspect(...).stages` list them.

    Raises
    ------
    BadArgument
        A name is not that of an optimization.

    Examples
    --------
    >>> with tg.debug(disable=("fuse_loops",)):
    ...     text = tg.differentiable(lambda x: np.sum(np.sin(x) * 2.0)).inspect(np.ones(3)).compiled
    """
    names = frozenset((disable,) if isinstance(disable, str) else disable)
    known = {each.name for each in _ALL}
    for name in sorted(map(str, names.difference(OPTIMIZATIONS))):
        problem = "cannot be switched off: it is no optimization" if name in known else "is no pass"
        raise BadArgument(f"{name!r} {problem}.", f"Those that can be switched off: {', '.join(OPTIMIZATIONS)}.")
    with without_passes(disabled_passes() | names):
        yield
