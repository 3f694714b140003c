"""Messages of compiled code: numba formats no text, so that compiled code hands the values to Python, which writes it.

`print(f"step {k}: {x:.3f}", end="")` becomes `tell('[["print"], [["fstring", "step ", 0, ": ", ["format", 1, ".3f"]]],
...]', k, x)`: the first argument says what to call with what, and numbers in it count the values behind it.
"""

from __future__ import annotations

import builtins
import json
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tapegen.errors import Span
from tapegen.ir import intrinsics, traversal
from tapegen.ir.nodes import Call, Const, Expr, Tuple, Var
from tapegen.ir.progress_bars import PROGRESS
from tapegen.ir.types import STATIC, Array, Scalar

TEXTS: frozenset[Any] = frozenset({intrinsics.fstring, builtins.format, builtins.repr})
"""Functions that make strings of values."""

_PLAIN = (str, int, float, bool, type(None))


class NotTold(Exception):
    """A message that only Python can write."""


def is_told(call: Call) -> bool:
    """Whether compiled code can hand over a message; strings that have names are taken to be such."""
    try:
        told(call, None, lambda var: Call(intrinsics.fstring, (), (), STATIC))
    except NotTold:
        return False
    return True


def told(call: Call, origin: Span | None, text: Callable[[Var], Call | None]) -> Call:
    """A message as a call of `intrinsics.tell`.

    Parameters
    ----------
    call : Call
        A call that only prints or warns.
    origin : Span or None
        The statement of the user.
    text : callable
        The pieces of a string that has a name.

    Raises
    ------
    NotTold
        If only Python can write it.
    """
    message = _Message(text)
    target, args = _target(call, origin)
    kwargs = {name: _constant(value) for name, value in call.kwargs if target[0] != "warn"}
    if isinstance(stream := kwargs.get("file"), intrinsics.StandardStream):
        kwargs["file"] = stream.name
    pieces = [message.piece(arg) for arg in args]
    try:
        template = json.dumps([target, pieces, kwargs, message.dtypes])
    except (TypeError, ValueError) as error:
        raise NotTold from error
    return Call(intrinsics.tell, (Const(template), *message.values), (), STATIC)


class _Message:
    """The values of one message, and their NumPy types where Python's would look different."""

    def __init__(self, text: Callable[[Var], Call | None]) -> None:
        self.text = text
        self.values: list[Expr] = []
        self.dtypes: list[str] = []

    def piece(self, expr: Expr) -> Any:
        """An argument or a part of a string in the template."""
        match expr:
            case Const(value):
                return value if isinstance(value, str) else ["constant", _plain(value)]
            case Tuple(items):
                return ["tuple", *map(self.piece, items)]
            case Call(intrinsics.fstring, parts):
                return ["fstring", *map(self.piece, parts)]
            case Call(intrinsics.new_list, items) if expr.type == STATIC:
                return ["list", *map(self.piece, items)]
            case Call(builtins.format, (value, Const(spec))):
                return ["format", self.piece(value), spec]
            case Call(builtins.repr, (value,)):
                return ["repr", self.piece(value)]
            case Call(intrinsics.shape, (array,)):
                extents = range(array.type.rank if isinstance(array.type, Array) else 0)
                return ["tuple", *(self.piece(_extent(array, axis)) for axis in extents)]
            case Var() if expr.type == STATIC:
                return self._named(expr)
        if not isinstance(expr.type, Scalar | Array):
            raise NotTold
        self.values.append(expr)
        self.dtypes.append(expr.type.dtype if isinstance(expr.type, Scalar) and not expr.type.python else "")
        return len(self.values) - 1

    def _named(self, string: Var) -> Any:
        """A string that was put together before; arrays may have changed since."""
        content = self.text(string)
        if content is None or any(isinstance(part.type, Array) for part in traversal.subexpressions(content)):
            raise NotTold
        return self.piece(content)


def _extent(array: Expr, axis: int) -> Expr:
    return Call(intrinsics.dim, (array, Const(axis)), (), Scalar("int64", python=True))


def _target(call: Call, origin: Span | None) -> tuple[list[Any], tuple[Expr, ...]]:
    """What is called, as it can be found in another process, and with which arguments."""
    func = call.func
    if func is print:
        return ["print"], call.args
    if func is warnings.warn:
        return _warning(call, origin)
    if func in PROGRESS:
        return ["progress", func.__name__], call.args
    owner = getattr(func, "__self__", None)
    if isinstance(owner, logging.Logger):
        if logging.getLogger(owner.name) is not owner:
            raise NotTold
        return ["logger", owner.name, func.__name__], call.args
    return ["logging", func.__name__], call.args


def _warning(call: Call, origin: Span | None) -> tuple[list[Any], tuple[Expr, ...]]:
    """A warning belongs to the line of the user that warns, or to the call of the program where that is its caller."""
    given = dict(zip(("message", "category", "stacklevel"), call.args, strict=False)) | dict(call.kwargs)
    message, category = given.pop("message", None), _constant(given.pop("category", Const(UserWarning)))
    level = _constant(given.pop("stacklevel", Const(1)))
    if message is None or not isinstance(level, int) or given:
        raise NotTold
    if category is None:
        category = UserWarning
    module = getattr(category, "__module__", "__main__")
    name = getattr(category, "__qualname__", "")
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not category:
        raise NotTold
    place = ["", 0] if origin is None or level > 1 else [origin.file, origin.line]
    return ["warn", module, name, *place, max(level - 1, 0)], (message,)


def _constant(expr: Expr) -> Any:
    if not isinstance(expr, Const):
        raise NotTold
    return expr.value


def _plain(value: object) -> Any:
    if type(value) not in _PLAIN:
        raise NotTold
    return value
