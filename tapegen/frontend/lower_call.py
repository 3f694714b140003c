"""Calls: which function it is, which argument goes where, and Python functions written out in place."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import gast
import numpy as np

from tapegen.errors import CompileLimit, NotDifferentiable, SourceUnavailable, UnsupportedSyntax
from tapegen.frontend import builtin_texts
from tapegen.frontend.callables import is_elementwise, unwrap
from tapegen.frontend.lower_capture import capture, is_method, special_method, watch
from tapegen.frontend.lower_choice import split
from tapegen.frontend.lower_comp import ARRAY_MAKERS, consume, rows_as_arrays
from tapegen.frontend.lower_context import MOST_INLINED, Context, NeedsStatic, PathEnds
from tapegen.frontend.lower_derivative import Derivative, Pullback, derivative_call, marked_call, pullback_call
from tapegen.frontend.lower_expr import elements, enter, evaluate, evaluates, put_name
from tapegen.frontend.lower_flow import run_body
from tapegen.frontend.lower_live import Liveness, liveness_of
from tapegen.frontend.lower_numpy import call_library, is_library
from tapegen.frontend.lower_own import call_own, own_rule
from tapegen.frontend.lower_routine import Again, call_routine
from tapegen.frontend.lower_shapes import known_shape
from tapegen.frontend.lower_state import Bound, Captured, Choice, Closure, Frame, Method, SliceValue, known_value
from tapegen.frontend.lower_unknown import call_opaque
from tapegen.frontend.lower_values import adopt, describe, expr_of, is_int, named, static, struct_of
from tapegen.frontend.parse import parse_function
from tapegen.frontend.structure import UNKNOWN, Itself, Leaf, StaticValue, Struct, abstract_of, dict_of, tuple_of
from tapegen.frontend.syntax import bound_names, lent_names
from tapegen.ir.nodes import Call, Tuple
from tapegen.ir.protocols import mark_of
from tapegen.ir.types import INT, Array
from tapegen.rules.helpers import is_compile_time
from tapegen.rules.registry import rule_of

Handler = Callable[[Context, list[Any], dict[str, Any], str | None], Any]
_HANDLERS: dict[Any, Handler] = {}
_METHODS: dict[tuple[str, str], Handler] = {}


def handles(*funcs: Any) -> Callable[[Handler], Handler]:
    """Register what a call of a function means."""

    def register(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(funcs, handler))
        return handler

    return register


def method(kind: str, *names: str) -> Callable[[Handler], Handler]:
    """Register what a method means; the receiver comes as the first argument."""

    def register(handler: Handler) -> Handler:
        _METHODS.update({(kind, name): handler for name in names})
        return handler

    return register


def has_method(kind: str, name: str) -> bool:
    return (kind, name) in _METHODS


# ---- calls ---------------------------------------------------------------------------------------------------------


@evaluates(gast.Call)
def _call(cx: Context, node: gast.Call, hint: str | None) -> Any:
    func = evaluate(cx, node.func)
    if len(node.args) == 1 and isinstance(node.args[0], gast.ListComp | gast.GeneratorExp):
        return _consumed(cx, func, node, hint)
    args = elements(cx, node.args)
    return call_value(cx, func, args, _keywords(cx, node), hint)


def _keywords(cx: Context, node: gast.Call) -> dict[str, Any]:
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(cx, keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
            continue
        content = struct_of(cx, value)
        if content is None or content.kind != "dict":
            raise cx.refusal(NotDifferentiable, "'**' needs a dict with known keys.", "Write the keywords out.")
        kwargs.update(zip(content.keys, content.children, strict=True))
    return kwargs


def _consumed(cx: Context, func: Any, node: gast.Call, hint: str | None) -> Any:
    """A call with a comprehension as its only argument."""
    (argument,) = node.args
    consumer = func.value if isinstance(func, StaticValue) else None
    if isinstance(argument, gast.ListComp) and any(consumer is maker for maker in ARRAY_MAKERS):
        argument = rows_as_arrays(argument)
    value, done = consume(cx, argument, consumer)
    return value if done else call_value(cx, func, [value], _keywords(cx, node), hint)


def call_value(cx: Context, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], hint: str | None = None) -> Any:
    """`func(*args, **kwargs)` of abstract values."""
    args, kwargs = list(args), dict(kwargs)
    if isinstance(func, Choice) or (any(isinstance(arg, Choice) for arg in args) and not is_inlined(func)):
        return split(cx, (func, *args), lambda chosen, *given: call_value(cx, chosen, given, kwargs, hint), hint)
    if isinstance(func, Bound):
        return call_value(cx, func.func, [*func.args, *args], {**func.kwargs, **kwargs}, hint)
    if isinstance(func, StaticValue):
        return _call_static(cx, func.value, args, kwargs, hint)
    content = struct_of(cx, func)
    if content is not None and content.kind == "object":
        call = special_method(cx, content.cls, "__call__")
        if is_method(call):
            return call_value(cx, StaticValue(call), [func, *args], kwargs, hint)
    cx.raise_(TypeError, f"'{_class_name(cx, func)}' object is not callable")


def is_inlined(func: Any) -> bool:
    """Whether a call writes out Python code, which deals with arguments of two kinds itself."""
    return (
        isinstance(func, StaticValue) and isinstance(func.value, Closure | FunctionType) and not is_library(func.value)
    )


def _class_name(cx: Context, value: Any) -> str:
    content = struct_of(cx, value)
    if content is not None:
        return content.cls.__name__
    return "float" if isinstance(value, Leaf) else type(value).__name__


def _call_static(cx: Context, func: Any, args: list[Any], kwargs: dict[str, Any], hint: str | None) -> Any:
    if isinstance(func, Closure):
        return _inline_closure(cx, func, args, kwargs)
    if isinstance(func, Method):
        handler = _METHODS.get((func.kind, func.name))
        if handler is None:
            raise cx.refusal(
                NotDifferentiable,
                f"the method '{func.name}' of {describe(cx, args[0])} is not supported.",
                "Write a loop.",
            )
        return handler(cx, args, kwargs, hint)
    if isinstance(func, Derivative):
        return derivative_call(cx, func, args, kwargs)
    if isinstance(func, Pullback):
        return pullback_call(cx, func, args, kwargs)
    mark = mark_of(func)
    if mark is not None:
        return marked_call(cx, func, mark, args, kwargs)
    handler = _handler_of(func)
    if handler is not None:
        return handler(cx, args, kwargs, hint)
    if is_compile_time(func):
        return _run_now(cx, func, args, kwargs)
    own = own_rule(func)
    if own is not None:
        return call_own(cx, func, own, args, kwargs, hint, functools.partial(_read_by, cx))
    rule = rule_of(func)
    if rule is not None and rule.written:
        assert isinstance(rule.body, FunctionType)
        return inline_function(cx, rule.body, args, kwargs)
    if rule is not None or is_library(func):
        return call_library(cx, func, args, kwargs, hint)
    if _name_of(func) == "prange" and getattr(func, "__module__", "").startswith("numba"):
        return _HANDLERS[range](cx, args, kwargs, hint)
    if type(func).__module__.startswith("numba.core.types") and hasattr(np, str(func)):
        return call_library(cx, getattr(np, str(func)), args, kwargs, hint)  # numba.float64(x)
    if isinstance(func, type):
        return _construct(cx, func, args, kwargs)
    if isinstance(func, MethodType) and not isinstance(func.__self__, type):
        owner = capture(cx, func.__self__, lambda: func.__self__, func.__func__.__name__, ("self", id(func.__self__)))
        return call_value(cx, StaticValue(func.__func__), [owner, *args], kwargs, hint)
    if isinstance(func, functools.partial):
        bound = [_given(cx, value, f"{_name_of(func.func)}_{k}", (id(func), k)) for k, value in enumerate(func.args)]
        path = ("keywords", id(func))
        watch(cx, path, lambda: tuple(func.keywords))
        named_ = {
            name: capture(cx, value, functools.partial(_keyword, func, name), name, (path, name))
            for name, value in func.keywords.items()
        }
        return call_value(cx, StaticValue(func.func), [*bound, *args], {**named_, **kwargs}, hint)
    if not callable(func):
        cx.raise_(TypeError, f"'{type(func).__name__}' object is not callable")
    if is_elementwise(func) and any(isinstance(arg, Leaf) and getattr(arg.type, "rank", 0) for arg in args):
        return call_value(cx, StaticValue(builtin_texts.elementwise), [StaticValue(func), *args], kwargs, hint)
    try:
        function, first, more = unwrap(func)
    except NotDifferentiable as error:
        found = call_opaque(cx, func, args, kwargs)
        if found is not None:
            return found
        raise cx.refusal(type(error), error.reason, error.advice) from None
    given = [_given(cx, value, f"{function.__name__}_{k}", (id(func), k)) for k, value in enumerate(first)]
    keywords = {name: _given(cx, value, name, (id(func), name)) for name, value in more.items()}
    if function is not func and own_rule(function) is not None:
        return call_value(cx, StaticValue(function), [*given, *args], {**keywords, **kwargs}, hint)
    return inline_function(cx, function, [*given, *args], {**keywords, **kwargs})


def _read_by(outer: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Context:
    """The context after a function has been lowered apart: what it has read of its globals."""
    cx = Context()
    cx.call = call_value
    cx.recursion, cx.routines = type(outer.recursion)(), type(outer.routines)()
    cx.frame = function_frame(cx, func)
    with contextlib.suppress(PathEnds, NeedsStatic, Again):
        inline_function(cx, func, args, kwargs)
    return cx


def _given(cx: Context, value: Any, name: str, path: Any) -> Any:
    """An argument that was bound before the program runs."""
    return capture(cx, value, lambda: value, name, ("bound", path))


def _keyword(func: functools.partial[Any], name: str) -> Any:
    return func.keywords[name]


def _handler_of(func: Any) -> Handler | None:
    try:
        return _HANDLERS.get(func)
    except TypeError:
        return None


def _name_of(func: Any) -> str:
    return getattr(func, "__name__", type(func).__name__)


def _run_now(cx: Context, func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a compile-time helper of the rules."""
    values = [_plain(cx, arg) for arg in args]
    try:
        result = func(*values, **{name: _plain(cx, value) for name, value in kwargs.items()})
    except NotDifferentiable as error:
        raise cx.refusal(type(error), error.reason, error.advice) from None
    return adopt(cx, _known(result))


def _plain(cx: Context, value: Any) -> Any:
    if isinstance(value, SliceValue):
        return slice(
            *(None if part is None else static(cx, part, "a bound") for part in (value.lo, value.hi, value.step))
        )
    return static(cx, value, "this argument")


def _known(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple_of(map(_known, value))
    return StaticValue(value)


MOST_WRITTEN_OUT = 60
"""Calls of a recursive function that are written out; more of them call it by its name."""

DEEPEST = 150
"""Calls inside itself that are written out of a function that cannot be called by its name."""

# ---- Python functions, written out ---------------------------------------------------------------------------------


@functools.cache
def _liveness(node: Any) -> Liveness:
    return liveness_of(node)


@functools.cache
def _bound_names(node: Any) -> frozenset[str]:
    return bound_names(node)


@functools.cache
def _lent_names(node: Any) -> frozenset[str]:
    return lent_names(node)


def function_frame(cx: Context, func: FunctionType) -> Frame:
    """The frame of a call of a plain Python function."""
    parsed = parse_function(func)
    cx.sources.setdefault(func)
    tree = parsed.tree
    boxed = parsed.locals & _lent_names(tree)
    return Frame(tree, parsed, parsed.locals, _liveness(tree), None, func.__name__, boxed=boxed)


def inline_function(cx: Context, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Write the body of a function in the place of its call."""
    try:
        frame = function_frame(cx, func)
    except (UnsupportedSyntax, SourceUnavailable, NotDifferentiable) as error:
        found = call_opaque(cx, func, args, kwargs)
        if found is not None:
            return found
        if error.span is None:
            raise cx.refusal(type(error), error.reason, error.advice) from None
        raise
    values = bind(cx, frame.parsed.signature, func, args, kwargs)
    return _inline(cx, frame, func, values)


def bind(
    cx: Context, signature: inspect.Signature, func: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the parameters of a call."""

    def default(parameter: inspect.Parameter) -> Any:
        name = parameter.name

        def getter() -> Any:
            return inspect.signature(func).parameters[name].default

        return capture(cx, parameter.default, getter, name, ("default", id(func), name))

    parameters = signature.parameters.values()
    return _bind(
        cx, func.__name__, [(p.name, p.kind, p.default is not p.empty, p) for p in parameters], default, args, kwargs
    )


def _bind(
    cx: Context,
    func_name: str,
    parameters: Sequence[tuple[str, Any, bool, Any]],
    default: Callable[[Any], Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    kinds = inspect.Parameter
    rest, keywords = list(args), dict(kwargs)
    values: dict[str, Any] = {}
    missing: list[str] = []
    for name, kind, has_default, parameter in parameters:
        if kind is kinds.VAR_POSITIONAL:
            values[name], rest = tuple_of(rest), []
        elif kind is kinds.VAR_KEYWORD:
            values[name], keywords = cx.new_cell(dict_of(keywords.items())), {}
        elif rest and kind is not kinds.KEYWORD_ONLY:
            if name in keywords and kind is not kinds.POSITIONAL_ONLY:
                cx.raise_(TypeError, f"{func_name}() got multiple values for argument '{name}'")
            values[name] = rest.pop(0)
        elif name in keywords and kind is not kinds.POSITIONAL_ONLY:
            values[name] = keywords.pop(name)
        elif has_default:
            values[name] = default(parameter)
        else:
            missing.append(name)
    if missing:
        listed = " and ".join(f"'{name}'" for name in missing)
        plural = "s" if len(missing) > 1 else ""
        cx.raise_(TypeError, f"{func_name}() missing {len(missing)} required positional argument{plural}: {listed}")
    if rest:
        cx.raise_(
            TypeError, f"{func_name}() takes {len(args) - len(rest)} positional arguments but {len(args)} were given"
        )
    if keywords:
        cx.raise_(TypeError, f"{func_name}() got an unexpected keyword argument '{next(iter(keywords))}'")
    return values


def _inline_closure(cx: Context, closure: Closure, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    node = closure.node
    name = getattr(node, "name", "lambda_")
    parameters = _closure_parameters(node, closure.defaults)
    values = _bind(cx, name, parameters, lambda parameter: closure.defaults[parameter], args, kwargs)
    names = _bound_names(node)
    boxed = names & _lent_names(node)
    frame = Frame(node, closure.frame.parsed, names, _liveness(node), closure.frame, name, boxed=boxed)
    return _inline(cx, frame, node, values)


def _closure_parameters(
    node: gast.FunctionDef | gast.Lambda, defaults: Mapping[str, Any]
) -> list[tuple[str, Any, bool, Any]]:
    kinds = inspect.Parameter
    args = node.args
    found: list[tuple[str, Any]] = [(arg.id, kinds.POSITIONAL_ONLY) for arg in args.posonlyargs]
    found += [(arg.id, kinds.POSITIONAL_OR_KEYWORD) for arg in args.args]
    if args.vararg is not None:
        found.append((args.vararg.id, kinds.VAR_POSITIONAL))
    found += [(arg.id, kinds.KEYWORD_ONLY) for arg in args.kwonlyargs]
    if args.kwarg is not None:
        found.append((args.kwarg.id, kinds.VAR_KEYWORD))
    return [(name, kind, name in defaults, name) for name, kind in found]


def _inline(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> Any:
    if identity in cx.recursion.called:
        return call_routine(cx, frame, identity, values)
    _check_recursion(cx, frame, identity, values)
    node = frame.node
    outer_frame, outer_node, outer_origin, outer_fixed = cx.frame, cx.node, cx.origin, cx.fixed_origin
    cx.frame = frame
    cx.fixed_origin |= builtin_texts.is_own(frame.parsed.file)  # what it does belongs to the user's statement
    cx.calls.append((identity, _signature_of(cx, values)))
    try:
        enter(cx, frame)
        for name, value in values.items():
            put_name(cx, name, value if isinstance(value, StaticValue) else named(cx, frame, name, value))
        body = node.body if isinstance(node.body, list) else [gast.copy_location(gast.Return(node.body), node.body)]
        result = run_body(cx, body)
    finally:
        cx.calls.pop()
        cx.frame, cx.node, cx.origin, cx.fixed_origin = outer_frame, outer_node, outer_origin, outer_fixed
    if not frame.live.captured and not _makes_functions(node):
        for name in frame.locals:
            cx.state.vars.pop((frame, name), None)
    return result


@functools.cache
def _makes_functions(node: Any) -> bool:
    return any(isinstance(inner, gast.FunctionDef | gast.Lambda) for inner in gast.walk(node) if inner is not node)


def _signature_of(cx: Context, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a call knows of its arguments: two calls that know the same take the same paths."""
    return tuple(_knowledge(cx, value) for value in values.values())


def _knowledge(cx: Context, value: Any) -> Any:
    known = known_value(value)
    if known is not UNKNOWN:
        return StaticValue(known)
    if isinstance(value, Leaf):
        return value.type, known_shape(cx, value.expr)
    content = struct_of(cx, value) if not isinstance(value, Captured) else None
    if content is not None:
        return (content.kind, content.keys, tuple(_knowledge(cx, child) for child in content.children))
    return Itself(value)


def _check_recursion(cx: Context, frame: Frame, identity: Any, values: Mapping[str, Any]) -> None:
    """Call a function by its name where writing it out would not end, or not soon; where that is refused, say so."""
    cx.inlined[identity] += 1
    active = [known for other, known in cx.calls if other is identity]
    refused = cx.recursion.refused.get(identity)
    if active and refused is None:
        if cx.inlined[identity] > MOST_WRITTEN_OUT or _signature_of(cx, values) in active:
            if cx.rules:
                raise cx.refusal(CompileLimit, f"'{frame.name}' calls itself in a rule.", "Write it as a loop.")
            cx.recursion.called.add(identity)
            raise Again
        return
    if cx.inlined.total() > MOST_INLINED:
        raise CompileLimit(
            f"more than {MOST_INLINED} calls would be written out; the last one is '{frame.name}'.",
            "Replace recursion by a loop.",
            cx.span(),
        )
    if not active or (len(active) < DEEPEST and _signature_of(cx, values) not in active):
        return
    assert refused is not None
    wanted = [expr_of(cx, value) for value in values.values() if is_int(value) and known_value(value) is UNKNOWN]
    for value in values.values():
        if isinstance(value, Leaf) and isinstance(value.type, Array) and known_shape(cx, value.expr) is None:
            wanted.append(Call(np.size, (expr_of(cx, value),), (), INT))
    raise NeedsStatic(Tuple(tuple(wanted)), refused) if wanted else refused


# ---- classes -------------------------------------------------------------------------------------------------------


def _construct(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`cls(...)`: named tuples, dataclasses and simple classes."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = getattr(cls, "_field_defaults", {})
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        fields = [(name, kind, name in defaults, name) for name in cls._fields]
        values = _bind(
            cx, cls.__name__, fields, lambda name: _given(cx, defaults[name], name, (id(cls), name)), args, kwargs
        )
        return tuple_of(values.values(), cls)
    if dataclasses.is_dataclass(cls) and not _has_source(cls.__init__):
        return _construct_dataclass(cx, cls, args, kwargs)
    if issubclass(cls, BaseException) or cls.__module__ == "builtins" or not hasattr(cls, "__dict__"):
        raise cx.refusal(
            NotDifferentiable, f"'{cls.__name__}' objects are not followed.", "Use tuples, lists and dicts."
        )
    made = cx.new_cell(Struct("object", (), (), cls))
    init = special_method(cx, cls, "__init__")
    if is_method(init):
        call_value(cx, StaticValue(init), [made, *args], kwargs)
    elif args or kwargs:
        raise cx.refusal(NotDifferentiable, f"'{cls.__name__}' is not written in Python.", "Use a dataclass.")
    return made


def _has_source(init: Any) -> bool:
    return isinstance(init, FunctionType) and not init.__code__.co_filename.startswith("<")


def _construct_dataclass(cx: Context, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    kinds = inspect.Parameter
    fields = [field for field in dataclasses.fields(cls) if field.init]
    missing = dataclasses.MISSING
    parameters = [
        (
            field.name,
            kinds.KEYWORD_ONLY if field.kw_only else kinds.POSITIONAL_OR_KEYWORD,
            field.default is not missing or field.default_factory is not missing,
            field,
        )
        for field in sorted(fields, key=lambda field: bool(field.kw_only))
    ]

    def default(field: Any) -> Any:
        if field.default is not missing:
            return _given(cx, field.default, field.name, (id(cls), field.name))
        return adopt(cx, abstract_of(field.default_factory(), field.name))

    values = _bind(cx, cls.__name__, parameters, default, args, kwargs)
    for field in dataclasses.fields(cls):
        if not field.init and (field.default is not missing or field.default_factory is not missing):
            values[field.name] = default(field)
    order = [field.name for field in dataclasses.fields(cls) if field.name in values]
    made = cx.new_cell(Struct("object", tuple(order), tuple(values[name] for name in order), cls))
    after = special_method(cx, cls, "__post_init__")
    if after is not None:
        call_value(cx, StaticValue(after), [made], {})
    return made
