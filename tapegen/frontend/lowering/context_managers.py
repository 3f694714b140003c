"""Context managers of the user in `with`: calls of their methods, or the two halves of a generator."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import FunctionType
from typing import Any

import gast

from tapegen.errors import UnsupportedSyntax
from tapegen.frontend.calls.handlers import handles
from tapegen.frontend.calls.inline import inline_manager, is_of_python
from tapegen.frontend.library.builtins import class_of
from tapegen.frontend.source.desugar import refused_warnings
from tapegen.frontend.source.desugar_with import entering, leaving, left
from tapegen.frontend.source.parse import parse_function
from tapegen.frontend.values.captures import special_method
from tapegen.frontend.values.context import Context
from tapegen.frontend.values.materialize import struct_of
from tapegen.frontend.values.pytree import StaticValue, Struct, tuple_of
from tapegen.frontend.values.state import Captured, Choice, known_value

_ADVICE = "Put the 'with' around the call of the differentiated function."
_GENERATOR = contextlib._GeneratorContextManager
_OF_PYTHON = (contextlib.nullcontext, contextlib.closing, contextlib.suppress)
_PACKAGE = __name__.partition(".")[0]


@handles(_GENERATOR, takes="func, args, kwds")
def _generator(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    """The result of a function under `contextlib.contextmanager`: it runs only in `with`."""
    return cx.new_cell(Struct("object", ("func", "args", "kwds"), tuple(args), _GENERATOR))


@handles(entering, takes="manager")
def _enter(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    (manager,) = args
    cls = object if isinstance(manager, Choice) else class_of(cx, manager)
    content = None if isinstance(manager, (Choice, Captured)) else struct_of(cx, manager)
    if cls is _GENERATOR and content is not None:
        made = _enter_generator(cx, content)
        cx.set_cell(manager, replace(content, children=(StaticValue(None), *content.children[1:])))  # it runs once
    else:
        enter = special_method(cx, cls, "__enter__")
        leave = special_method(cx, cls, "__exit__")
        if not (_is_followed(enter, cls) and isinstance(leave, FunctionType)):
            raise cx.refusal(
                UnsupportedSyntax,
                "'with' runs code of the context manager that is not part of the function.",
                _ADVICE,
            )
        _check_raises(cx, leave)
        made = tuple_of([cx.call(cx, StaticValue(enter), [manager], {}), manager])
    cx.open_tries += 1
    return made


def _is_followed(enter: Any, cls: type) -> bool:
    """Whether a class has its methods in Python code of the user; effects of Python's own classes change no value."""
    if not isinstance(enter, FunctionType) or enter.__module__.partition(".")[0] == _PACKAGE:
        return False
    return cls in _OF_PYTHON or not is_of_python(enter)


def _enter_generator(cx: Context, content: Struct) -> Any:
    func, given, named = content.children
    function = known_value(func)
    positional, keywords = struct_of(cx, given), struct_of(cx, named)
    if not isinstance(function, FunctionType) or positional is None or keywords is None:
        raise cx.refusal(
            UnsupportedSyntax,
            "the generator of this context manager is not known here, or has run.",
            "Call it in the 'with'.",
        )
    kwargs = dict(zip(keywords.keys, keywords.children, strict=True))
    return inline_manager(cx, function, positional.children, kwargs)


def _check_raises(cx: Context, leave: FunctionType) -> None:
    """Refuse an `__exit__` that may suppress an exception."""
    parsed = parse_function(leave)
    for part in gast.walk(parsed.tree):
        returned = part.value if isinstance(part, gast.Return) else None
        if returned is not None and not (isinstance(returned, gast.Constant) and not returned.value):
            raise cx.refusal(
                UnsupportedSyntax,
                f"'{leave.__qualname__}' may end what is raised under 'with', which depends on the run.",
                f"Let '__exit__' return nothing, or False. {_ADVICE}",
            )


@handles(refused_warnings, takes="")
def _refused_warnings(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    raise cx.refusal(
        UnsupportedSyntax, "this 'with' keeps warnings as values, or makes errors of some of them.", _ADVICE
    )


@handles(leaving, takes="entered")
def _leave(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    content = struct_of(cx, args[0])
    assert content is not None
    _, last = content.children
    if struct_of(cx, last) is None and not isinstance(last, Captured):
        cx.call(cx, last, [], {})
    else:
        leave = special_method(cx, class_of(cx, last), "__exit__")
        cx.call(cx, StaticValue(leave), [last, *[StaticValue(None)] * 3], {})
    return StaticValue(None)


@handles(left, takes="entered")
def _left(cx: Context, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    _leave(cx, args, kwargs, hint)
    cx.open_tries -= 1
    return StaticValue(None)
