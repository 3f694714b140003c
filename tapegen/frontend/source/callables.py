"""Callable unwrapping: from any callable to the plain Python function behind it."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tapegen.errors import NotDifferentiable, Span
from tapegen.frontend.source.hints import OF_FUNCTIONS
from tapegen.frontend.source.synthesize import function_from_text
from tapegen.ir.names import NameSupply
from tapegen.ir.protocols import mark_of
from tapegen.rules.registry import all_rules, rule_of
from tapegen.rules.rule import signature_of

_PACKAGE = __name__.partition(".")[0]


def unwrap(func: Any) -> tuple[FunctionType, tuple[Any, ...], dict[str, Any]]:
    """The plain Python function that a call of `func` runs, and the arguments that are already bound.

    Bound methods, `functools.partial`, static methods, objects with `__call__`, functions compiled by numba (for
    `@vectorize` the scalar function, see `is_elementwise`) and functions that are differentiable already.

    Returns
    -------
    function, args, kwargs
        `func(*a, **k)` is `function(*args, *a, **{**kwargs, **k})`.

    Raises
    ------
    NotDifferentiable
        There is no Python function behind it.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while not isinstance(func, FunctionType):
        if isinstance(func, MethodType) and mark_of(func) is not None:
            func = _calling(func)
        elif isinstance(func, MethodType):
            args = (func.__self__, *args)
            func = func.__func__
        elif isinstance(func, functools.partial):
            args = (*func.args, *args)
            kwargs = {**func.keywords, **kwargs}
            func = func.func
        elif isinstance(func, staticmethod):
            func = func.__func__
        else:
            inner = _inner(func)
            if inner is not None:
                bound, func = inner
                args = (*bound, *args)
            elif _is_ruled(func):
                func = _of_rule(func)
            else:
                raise refusal(func)
    return func, args, kwargs


def own_signature(func: FunctionType) -> inspect.Signature:
    """The parameters that the code of a function has, regardless of `__signature__` and `__wrapped__`."""
    if hasattr(func, "__signature__"):
        func, original = FunctionType(func.__code__, {}, func.__name__, func.__defaults__, func.__closure__), func
        func.__kwdefaults__ = original.__kwdefaults__
    return inspect.signature(func, follow_wrapped=False)


def free_parameters(func: FunctionType, bound: int) -> list[inspect.Parameter]:
    """The parameters that are left when the first `bound` arguments are given; `*args` takes any number."""
    parameters = list(own_signature(func).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return parameters[min(bound, len(positional)) :]


def calls_instead(func: FunctionType) -> FunctionType | None:
    """The user's function, if `func` is a synthesized wrapper of it: errors point there."""
    return getattr(func, "__tapegen_calls__", None)


def made_for(made: FunctionType, function: FunctionType) -> FunctionType:
    made.__tapegen_calls__ = calls_instead(function) or function  # type: ignore[attr-defined]
    return made


@functools.lru_cache(maxsize=256)  # they reference the user's function
def _calling(func: MethodType) -> FunctionType:
    """A plain function that calls the derivative `f.grad`, with the signature of `f`."""
    owner: Any = func.__self__
    function, first, named = unwrap(owner.python)
    parameters = [p for p in free_parameters(function, len(first)) if p.name not in named]
    base = getattr(owner.python, "__name__", "function")
    name = f"{base if base.isidentifier() else 'lambda_'}_{func.__name__}"
    made = made_for(_forwarding(name, parameters, "derivative", func), function)
    if hasattr(function, "__wrapped__"):
        made.__signature__ = inspect.signature(owner.python)  # type: ignore[attr-defined]
    return made


def _is_ruled(func: Any) -> bool:
    """Whether a function that is not written in Python has a derivative rule of its own."""
    rule = rule_of(func)
    return rule is not None and rule.body is not None and str(getattr(func, "__name__", "")).isidentifier()


@functools.cache
def _of_rule(func: Any) -> FunctionType:
    """A plain function that calls a function of a library, with the arguments that its rule has (`np.sin`)."""
    rule = rule_of(func)
    assert rule is not None
    assert rule.body is not None
    parameters = [p for p in signature_of(rule.body).parameters.values() if not _is_given(p)]
    return _forwarding(func.__name__, parameters, f"{func.__name__}_", func)


def _is_given(parameter: inspect.Parameter) -> bool:
    """Whether a parameter of a rule is not one of its function: a result, a cotangent or a tangent."""
    if parameter.kind is not parameter.KEYWORD_ONLY:
        return False
    return parameter.name in ("out", "out_bar") or parameter.name.endswith("_dot")


@functools.lru_cache(maxsize=256)
def calling(func: Any) -> FunctionType:
    """A plain function that calls `func`, with its signature: derived in its place where `func` has its own rule."""
    name = func.__name__ if func.__name__.isidentifier() else "lambda_"
    return _forwarding(name, list(inspect.signature(func).parameters.values()), f"{name}_", func)


def first_result(func: Any) -> FunctionType:
    """A plain function that calls `func`, with its signature, and returns the first of its results."""
    function = unwrap(func)[0]
    parameters = list(own_signature(function).parameters.values())
    return made_for(_forwarding(function.__name__, parameters, "both", function, "[0]"), function)


def standing_for(
    name: str, parameters: Sequence[inspect.Parameter], func: Any, function: FunctionType | None
) -> FunctionType:
    """A plain function with these parameters that calls `func` with all of them; errors point at `function`."""
    callee = NameSupply(parameter.name for parameter in parameters).fresh("function")
    made = _forwarding(name, list(parameters), callee, func)
    return made if function is None else made_for(made, function)


def _forwarding(name: str, parameters: list[inspect.Parameter], callee: str, func: Any, part: str = "") -> FunctionType:
    params: list[str] = []
    given: list[str] = []
    defaults: dict[str, Any] = {}
    kinds = inspect.Parameter
    for k, parameter in enumerate(parameters):
        star = "*" if parameter.kind is kinds.VAR_POSITIONAL else "**" if parameter.kind is kinds.VAR_KEYWORD else ""
        if parameter.kind is kinds.KEYWORD_ONLY and "*" not in {text[:1] for text in params if text[:2] != "**"}:
            params.append("*")
        text = star + parameter.name
        if parameter.default is not parameter.empty:
            defaults[f"default_{k}"] = parameter.default
            text += f"=default_{k}"
        params.append(text)
        keyword = parameter.kind is kinds.KEYWORD_ONLY
        given.append(f"{parameter.name}={parameter.name}" if keyword else star + parameter.name)
        if parameter.kind is kinds.POSITIONAL_ONLY and (
            k + 1 == len(parameters) or parameters[k + 1].kind is not kinds.POSITIONAL_ONLY
        ):
            params.append("/")
    text = f"def {name}({', '.join(params)}):\n    return {callee}({', '.join(given)}){part}\n"
    return function_from_text(text, {callee: func, **defaults})


def is_elementwise(func: Any) -> bool:
    """Whether calls apply a scalar function to each element of arrays, as functions made by numba's `@vectorize` do."""
    return type(func).__name__ == "DUFunc" and _of_package(func, "numba")


def is_native(func: Any) -> bool:
    """Whether compiled code calls an object as it is: a function compiled by numba."""
    return _of_package(func, "numba")


def _inner(func: Any) -> tuple[tuple[Any, ...], Any] | None:
    """The callable to which an object forwards its calls, and the arguments it prepends."""
    if isinstance(func, (type, np.vectorize, np.ufunc, classmethod)):
        return None
    if _of_package(func, _PACKAGE) and hasattr(func, "python"):
        return (), func.python
    if _of_package(func, "numba"):
        target = func.__wrapped__ if is_elementwise(func) else getattr(func, "py_func", None)
        if target is not None:
            _refuse_declared(target, getattr(func, "locals", {}))
        return None if target is None else ((), target)
    call = inspect.getattr_static(type(func), "__call__", None)
    if isinstance(call, FunctionType) or _of_package(call, "numba") or _of_package(call, _PACKAGE):
        return (func,), call
    return None


def _refuse_declared(func: FunctionType, declared: Mapping[str, Any]) -> None:
    """Refuse declared numba types of local variables (`locals=`): they round differently than Python does."""
    exact = ("float64", "int", "uint", "bool")
    own = {name: str(kind) for name, kind in declared.items() if "." not in name}  # numba adds names of its own
    rounding = {name: kind for name, kind in own.items() if not kind.startswith(exact)}
    if rounding:
        listed = ", ".join(f"{name}: {kind}" for name, kind in rounding.items())
        raise NotDifferentiable(
            f"'{func.__qualname__.rpartition('.')[2]}' declares types of local variables to numba ({listed}), which "
            "rounds its values differently.",
            "Leave out 'locals' of the decorator, or pass the Python function (its attribute py_func).",
            Span.of_line(func.__code__.co_filename, func.__code__.co_firstlineno),
        )


def _of_package(func: Any, package: str) -> bool:
    return type(func).__module__.partition(".")[0] == package


def refusal(func: Any) -> NotDifferentiable:
    """Why there is no Python function behind an object, and what to write instead."""
    if isinstance(func, type):
        return NotDifferentiable(
            f"'{func.__qualname__}' is a class, and calling it makes an object.",
            "Pass a function or a method of an object.",
        )
    if isinstance(func, classmethod):
        return NotDifferentiable(
            "a classmethod object is not bound to its class yet.", "Take it from the class: Class.method."
        )
    name = getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__qualname__
    if isinstance(func, np.vectorize):
        return NotDifferentiable(
            "a function made by np.vectorize hides its loop.",
            "Pass the scalar function, or write the loop or array form.",
        )
    if _of_package(func, "numba"):
        return NotDifferentiable(
            f"'{name}' ({type(func).__name__}) is compiled by numba and keeps no plain Python function.",
            "Pass the function without its numba decorator.",
        )
    if rule_of(func) is not None:
        return NotDifferentiable(
            f"'{name}' is not written in Python, so there is no text to transform (but it has a derivative rule).",
            f"Wrap it: lambda x: {name}(x), on a separate line.",
        )
    wrapped = getattr(func, "__wrapped__", None)
    if isinstance(func, functools._lru_cache_wrapper):
        return NotDifferentiable(
            f"'{name}' keeps its results in a cache, which derivatives do not follow.",
            "Leave out the decorator; where it calls itself often, fill a list of results in a loop.",
        )
    if wrapped is not None:
        return NotDifferentiable(
            f"'{name}' is hidden by '{type(func).__module__}.{type(func).__qualname__}', which is not Python code.",
            "Pass the undecorated function (its attribute __wrapped__).",
        )
    if callable(func):
        known = sorted({rule.func.__name__ for rule in all_rules() if hasattr(rule.func, "__name__")})
        if name in OF_FUNCTIONS:
            return NotDifferentiable(f"'{name}' cannot be followed.", OF_FUNCTIONS[name])
        near = difflib.get_close_matches(str(name), known, n=8, cutoff=0.6)
        names = f"Names nearest to it: {', '.join(near)}." if near else "'python -m tapegen rules' lists them."
        return NotDifferentiable(
            f"'{name}' is not written in Python and has no derivative rule.",
            f"Write it in Python, or register a rule for it. {names}",
        )
    return NotDifferentiable(f"an object of type '{type(func).__qualname__}' cannot be called.", "Pass a function.")
