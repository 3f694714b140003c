"""Settings of this process that users change: `tg.config`.

A setting is a field with its default; its type is the `Literal` of what it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

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

    Examples
    --------
    >>> import tapegen as tg
    >>> tg.config.tracebacks = "full"
    >>> tg.config
    Config(tracebacks='full', background='auto', progress='auto')
    """

    tracebacks: Literal["user", "full"] = "user"
    background: Literal["auto", False] = "auto"
    progress: Literal["auto", True, False] = "auto"

    if not TYPE_CHECKING:  # to a type checker it would allow every name

        def __setattr__(self, name: str, value: Any) -> None:
            choices = _CHOICES.get(name)
            if choices is None:
                raise AttributeError(f"tg.config has no setting {name!r}; it has {', '.join(_CHOICES)}.")
            if not any(type(value) is type(choice) and value == choice for choice in choices):
                raise BadArgument(
                    f"tg.config.{name} = {value!r} is unknown.", f"Use {' or '.join(map(repr, choices))}."
                )
            object.__setattr__(self, name, value)


_CHOICES = {name: get_args(hint) for name, hint in get_type_hints(Config).items()}

config: Config = Config()
"""The settings in force."""
