"""Keywords of the functions that take derivatives, and the refusal of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict

from tapegen.errors import BadArgument

Backend = Literal["auto", "numba", "python"]


class Keywords(TypedDict, total=False):
    """The options of `differentiable` but for `wrt` and `has_aux`."""

    backend: Backend
    boundscheck: bool
    fastmath: bool
    cache: bool
    signatures: Sequence[str]
    parallel: bool
    memory: str | int | float | None


class AllKeywords(Keywords, total=False):
    """The options of `differentiable` but for `wrt`."""

    has_aux: bool


CHOOSE = "wrt chooses arguments, by position or name: wrt=1, wrt=(0, 'k')."
DIRECTIONS = "It has no wrt: pass None as the tangent of an argument that stays as it is."
NAMES_OF_WRT = ("wrt", "argnums", "argnum", "argnames")
"""Its name here, and those in other libraries."""


def refuse_keywords(name: str, given: Iterable[str], advice: str = CHOOSE) -> None:
    """Refuse keywords that are no options.

    Parameters
    ----------
    name : str
        The function, as users write it.
    given : iterable of str
        The keywords beside its own parameters.
    advice : str
        How arguments to differentiate with respect to are chosen.

    Raises
    ------
    BadArgument
        Which is a TypeError.
    """
    known = AllKeywords.__optional_keys__
    for key in given:
        if key not in known:
            others = f"It has the options {', '.join(sorted(known))}."
            raise BadArgument(f"{name} has no argument {key!r}.", advice if key in NAMES_OF_WRT else others)
