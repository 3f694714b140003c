"""What users set: `tg.config` for this process, and the options of the functions that take derivatives.

A setting is a field with its default; its type is the `Literal` of what it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, get_type_hints

from tapegen.errors import BadArgument


@dataclass(slots=True)
class Config:
    """Settings of this process; an assignment takes effect at once, for all threads.

    Attributes
    ----------
    tracebacks : {"user", "full"}
        Which frames errors show: those of the user's program and of the libraries that it calls, or all of them.
        An `InternalError` names a file that holds its full traceback in either case.
    background : {"auto", False}
        Whether a helper process compiles while calls run the generated Python: "auto" where this process may use two
        processors, and is no worker of `multiprocessing`.
    progress : {"auto", True, False}
        Whether a line says what is compiled while a call waits for it: "auto" in terminals and notebooks.
    threads : {"auto"} or int
        How many threads run what is compiled with `parallel=True`; results do not depend on it.  "auto": as many as
        this process may use processors, one in a worker of `multiprocessing`.

    Examples
    --------
    >>> import tapegen as tg
    >>> tg.config.tracebacks = "full"
    >>> tg.config
    Config(tracebacks='full', background='auto', progress='auto', threads='auto')
    """

    tracebacks: Literal["user", "full"] = "user"
    background: Literal["auto", False] = "auto"
    progress: Literal["auto", True, False] = "auto"
    threads: Literal["auto"] | int = "auto"

    if not TYPE_CHECKING:  # to a type checker it would allow every name

        def __setattr__(self, name: str, value: Any) -> None:
            choices = _CHOICES.get(name)
            if choices is None:
                raise AttributeError(f"tg.config has no setting {name!r}; it has {', '.join(_CHOICES)}.")
            counts = int in choices and type(value) is int and value > 0
            if not counts and not any(type(value) is type(choice) and value == choice for choice in choices):
                known = ["a positive number" if choice is int else repr(choice) for choice in choices]
                raise BadArgument(f"tg.config.{name} = {value!r} is unknown.", f"Use {' or '.join(known)}.")
            object.__setattr__(self, name, value)
            for changed in _OBSERVERS.get(name, ()):
                changed()


def _choices(hint: Any) -> tuple[Any, ...]:
    """What a setting may be: values, and `int` for any positive number."""
    return tuple(choice for part in get_args(hint) for choice in (get_args(part) or (part,)))


_CHOICES = {name: _choices(hint) for name, hint in get_type_hints(Config).items()}
_OBSERVERS: dict[str, list[Callable[[], None]]] = {}


def when_changed(name: str, changed: Callable[[], None]) -> None:
    """Call a function after each assignment to a setting."""
    _OBSERVERS.setdefault(name, []).append(changed)


config: Config = Config()
"""The settings in force."""


# ---- options of functions --------------------------------------------------------------------------------------------


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
