"""Options of a differentiated function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from tapegen.backend.numba.memory_limit import budget_of
from tapegen.errors import BadArgument
from tapegen.settings import Backend

Wrt = int | str | Sequence[int | str]


def as_wrt(wrt: object) -> tuple[int | str, ...]:
    """Several arguments to differentiate with respect to.

    Raises
    ------
    BadArgument
        If these are not positions and names.
    """
    chosen = wrt if type(wrt) is tuple else tuple(wrt) if isinstance(wrt, Iterable) else None
    if chosen is None or not all(isinstance(item, int | str) for item in chosen):
        raise BadArgument(
            f"wrt is of type {type(wrt).__name__}, and names no arguments.",
            "Give positions or names of arguments, and call what is returned: tg.grad(f)(x).",
        )
    return chosen


@dataclass(frozen=True, slots=True)
class Options:
    """How a function is differentiated and compiled; see `differentiable`."""

    wrt: Wrt = 0
    has_aux: bool = False
    backend: Backend = "auto"
    boundscheck: bool = True
    fastmath: bool = False
    cache: bool = True
    signatures: Sequence[str] = ()
    parallel: bool = False
    memory: str | int | float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.wrt, int | str):
            object.__setattr__(self, "wrt", as_wrt(self.wrt))
        if isinstance(self.signatures, str):
            raise BadArgument("signatures is one text.", 'Give a sequence of them: signatures=["f8[:], f8"].')
        object.__setattr__(self, "signatures", tuple(self.signatures))
        budget_of(self.memory)
        if self.backend not in ("auto", "numba", "python"):
            raise BadArgument(f"backend={self.backend!r} is unknown.", 'Use "auto", "numba" or "python".')

    @property
    def budget(self) -> int | float | None:
        """What gradients may record: bytes, a fraction of the free memory, or None for half of it."""
        return budget_of(self.memory)

    def changed(self) -> dict[str, object]:
        """The options that differ from their defaults."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in given.items() if value != getattr(_DEFAULT, name)}


_DEFAULT = Options()
