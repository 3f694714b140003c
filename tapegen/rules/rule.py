"""A derivative rule as data, and what is checked of its body."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal

from tapegen.errors import BadArgument

Kind = Literal["partials", "linear", "pullback", "expands", "inactive"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one function is differentiated.

    Attributes
    ----------
    func : callable
        The function the rule belongs to, as an object.
    kind : str
        "partials": `body(*args, out=)` returns the local partial derivative with respect to each positional argument
        (a tuple in argument order, or the single partial); None marks an argument that carries no derivative.
        "linear": `body(*args, out_bar=)` returns the cotangent of the arguments named by `wrt` (the transpose).
        "pullback": `body(*args, out=, out_bar=)` returns the cotangents of the arguments named by `wrt`.
        "expands": `body(*args)` computes the same value with functions that have rules.
        "inactive": no derivative by definition (zero where the type is floating).
    wrt : tuple of str
        Names of the arguments that carry a derivative; the cotangents or partial derivatives come in this order.  An
        active argument that is not among them is refused; "partials" without names are of all arguments.  For a
        sequence of arrays the cotangent is a tuple.
    nonfinite : bool
        Whether a partial can be infinite or NaN where the value is used; then a zero cotangent contributes 0.
    poles : bool
        Whether it can be at complex numbers only.
    domain, shapes : sequence
        Where the automatic test samples: an interval per argument; or for each positional argument a shape (tuple),
        a list of them for a sequence of arrays, or a function of a `numpy.random.Generator` that makes the argument.
    pushforward : callable or None
        For "pullback" rules: `pushforward(*args, out=, <name>_dot=...)`, the tangent of the result; of several results
        a tuple, with None for one that carries no derivative.
    constant : tuple of str
        For "linear" rules: keywords that only add a term independent of `wrt`; tangents leave them out.
    written : bool
        For "expands" rules: the primal too is the formula, inlined where the function is called.
    broadcasts : bool
        For "linear" and "pullback" rules: whether a cotangent may be longer than its argument along axes of size 1,
        because the function broadcasts its arguments against each other.  The compiler sums it, also for functions of
        users.  Cotangents of higher rank than their arguments are always summed.
    of_complex : bool
        Whether the rule holds where an operand or the result is complex (docs/complex.md); other rules refuse them.
    phases : bool
        Whether complex results are determined up to factors of modulus 1: the rule holds those of the factorization
        constant, finite differences of the function do not.
    """

    func: Callable[..., Any]
    kind: Kind
    body: Callable[..., Any] | None = None
    wrt: tuple[str, ...] = ()
    nonfinite: bool = False
    domain: Sequence[tuple[float, float]] | None = None
    shapes: Sequence[Any] | None = None
    pushforward: Callable[..., Any] | None = None
    constant: tuple[str, ...] = ()
    written: bool = False
    of_complex: bool = False
    poles: bool = False
    broadcasts: bool = False
    phases: bool = False

    def reads(self, name: str) -> bool:
        """Whether the body declares the keyword `name` ("out" or "out_bar")."""
        return self.body is not None and name in signature_of(self.body).parameters


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a function has no derivative, and what to write instead; on inactive values it is called as it is."""

    func: Callable[..., Any]
    reason: str
    advice: str


@functools.cache
def signature_of(body: Callable[..., Any]) -> inspect.Signature:
    """The parameters of the body of a rule."""
    return inspect.signature(body)


def _is_own(func: Any) -> bool:
    """Whether a function belongs to a user."""
    module = getattr(func, "__module__", None) or ""
    return module.partition(".")[0] not in ("tapegen", "numpy", "scipy", "math", "cmath", "builtins", "_operator", "")


def check_parameters(rule: Rule, name: str) -> None:
    """Check that a body has the parameters of its function, and the keywords of its kind."""
    parameters = signature_of(rule.body).parameters
    unknown = [wrt for wrt in rule.wrt if wrt not in parameters]
    if unknown:
        raise BadArgument(
            f"the rule of {name} has no parameter {unknown[0]!r} to give a cotangent of.",
            f"Its parameters are {', '.join(parameters)}.",
        )
    if rule.reads("out_bar") != (rule.kind in ("linear", "pullback")):
        raise BadArgument(
            f"the rule of {name} {'needs' if rule.wrt else 'cannot have'} a keyword out_bar.",
            "A linear rule and a pullback get the cotangent of the result as out_bar, other rules do not.",
        )
    if rule.reads("out") and rule.kind in ("linear", "expands"):
        raise BadArgument(
            f"the rule of {name} is of the kind {rule.kind!r}, which does not get the result out.",
            "Leave out away, or register a pullback.",
        )
    if isinstance(getattr(rule.func, "py_func", rule.func), FunctionType) and _is_own(rule.func):
        _check_names(rule, name, parameters)


def _check_names(rule: Rule, name: str, parameters: Mapping[str, inspect.Parameter]) -> None:
    """Check that calls bind to the function and to the body alike: same names, same order."""
    theirs = inspect.signature(getattr(rule.func, "py_func", rule.func)).parameters
    kinds = inspect.Parameter
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in (*theirs.values(), *parameters.values())):
        return
    extra = [p for p in parameters if p not in theirs and p not in ("out", "out_bar")]
    if extra:
        raise BadArgument(
            f"the rule of {name} has a parameter {extra[0]!r} that {name} does not have.",
            f"Name its parameters as {name} does: {', '.join(theirs)}.",
        )
    ours = [p.name for p in parameters.values() if p.kind is not kinds.KEYWORD_ONLY]
    if ours != list(theirs)[: len(ours)]:
        raise BadArgument(
            f"the parameters of the rule of {name}, {', '.join(ours)}, are not in the order of {name}.",
            f"Its parameters are {', '.join(theirs)}.",
        )


def check_pushforward(rule: Rule) -> None:
    """Check that a pushforward takes the arguments, and as keywords `out` and the tangents of `wrt`."""
    assert rule.pushforward is not None
    name = getattr(rule.func, "__name__", repr(rule.func))
    known = {"out", *(f"{wrt}_dot" for wrt in rule.wrt)}
    for p in signature_of(rule.pushforward).parameters.values():
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty and p.name not in known:
            raise BadArgument(
                f"the pushforward of {name} has a keyword {p.name!r} that nothing is given for.",
                f"It can have {', '.join(sorted(known))}.",
            )


@functools.cache
def positional_names(body: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a body that correspond to positional arguments of its function."""
    return tuple(p.name for p in signature_of(body).parameters.values() if p.kind is not p.KEYWORD_ONLY)


@functools.cache
def _needed_names(body: Callable[..., Any]) -> tuple[str, ...]:
    """Those of them that have no default."""
    parameters = signature_of(body).parameters
    return tuple(name for name in positional_names(body) if parameters[name].default is inspect.Parameter.empty)


def wrong_count(rule: Rule, count: int) -> tuple[str, str] | None:
    """The error, and the advice, where a body returns a wrong number `count` of derivatives; else None."""
    assert rule.body is not None
    of_all = rule.kind == "partials" and not rule.wrt
    needed = _needed_names(rule.body) if of_all else ()
    if len(needed) <= count <= len(positional_names(rule.body)) if of_all else count == len(rule.wrt):
        return None
    name = getattr(rule.func, "__name__", repr(rule.func))
    found = f"the rule of {name} gives {count} {'derivative' if count == 1 else 'derivatives'}"
    if of_all:
        advice = "Return one for each argument in their order, and None for one that carries no derivative."
        return f"{found}; its arguments are {', '.join(needed)}.", advice
    advice = "Return one for each name in wrt, in their order."
    return f"{found}; it is to give those of {', '.join(rule.wrt)}.", advice
