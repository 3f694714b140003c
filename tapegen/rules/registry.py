"""The registry of derivative rules.  A derivative is written once, as a plain Python function.

A rule body is ordinary Python over NumPy: the compiler inlines its *text* into generated code, the eager tape calls it,
forward mode and the to-be-recorded analysis read it.  Bodies therefore call only functions that have rules themselves,
the helpers of `tapegen.rules.helpers`, and branch only on what is known at compile time (ranks, keywords, None).
Un-broadcasting is the compiler's job, never the rule's: a cotangent may have the shape of the result.

Parameters of a body stand in the order and under the names of the function itself, so that calls bind to both alike; a
keyword that the body leaves out (`where=`, `out=`) is refused where it is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar

Body = TypeVar("Body", bound=Callable[..., Any])
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
        Names of the arguments that carry a derivative ("linear" and "pullback"); the cotangents come in this order.  An
        active argument that is not among them is refused.  For a sequence of arrays the cotangent is a tuple.
    nonfinite : bool
        Whether a partial can be infinite or NaN where the value is used; then a zero cotangent contributes 0.
    domain, shapes : sequence
        Where the automatic test samples: an interval per argument; or for each positional argument a shape (tuple),
        a list of them for a sequence of arrays, or a function of a `numpy.random.Generator` that makes the argument.
    pushforward : callable or None
        For "pullback" rules: `pushforward(*args, out=, <name>_dot=...)`, the tangent of the result; of several results
        a tuple, with None for one that carries no derivative.
    constant : tuple of str
        For "linear" rules: keywords that only add a part which does not depend on `wrt`; tangents leave them out.
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

    def reads(self, name: str) -> bool:
        """Whether the body declares the keyword `name` ("out" or "out_bar")."""
        return self.body is not None and name in inspect.signature(self.body).parameters


_RULES: dict[Any, Rule] = {}

#: Rules of modules that are slow to import are loaded once the module is: nobody else can hold its functions.
_AWAITED = {"scipy.special": "tapegen.rules.scipy_special"}


def _load_awaited() -> bool:
    """Register the rules of modules that have been imported meanwhile; whether there were any."""
    ready = [module for module in _AWAITED if module in sys.modules]
    for module in ready:
        import_module(_AWAITED.pop(module))
    return bool(ready)


def fixed(value: Any) -> Callable[[Any], Any]:
    """An entry of `shapes` for an argument that is given as it is: an axis, an index array."""
    return lambda rng: value


def rule_of(func: Callable[..., Any]) -> Rule | None:
    """The rule of a function object, or None."""
    try:
        rule = _RULES.get(func)
    except TypeError:  # unhashable callable
        return None
    return _RULES.get(func) if rule is None and _load_awaited() else rule


def all_rules() -> tuple[Rule, ...]:
    """Every registered rule, in order of registration."""
    _load_awaited()
    return tuple(_RULES.values())


def _register(rule: Rule) -> None:
    """Enter a rule, after a look at what can be seen without running it."""
    name = getattr(rule.func, "__name__", repr(rule.func))
    if not callable(rule.func):
        raise TypeError(f"a derivative rule belongs to a function, and {name} cannot be called")
    if rule.body is not None:
        parameters = inspect.signature(rule.body).parameters
        unknown = [wrt for wrt in rule.wrt if wrt not in parameters]
        if unknown:
            raise ValueError(f"the rule of {name} has no parameter {unknown[0]!r} to give a cotangent of")
        if rule.reads("out_bar") != (rule.kind in ("linear", "pullback")):
            raise ValueError(f"the rule of {name} {'needs' if rule.wrt else 'cannot have'} a keyword out_bar")
        if rule.reads("out") and rule.kind in ("linear", "expands"):
            raise ValueError(f"the rule of {name} is of the kind {rule.kind!r}, which does not get the result out")
    _RULES[rule.func] = rule


def partials(
    *funcs: Callable[..., Any], domain: Sequence[tuple[float, float]] | None = None, nonfinite: bool = False
) -> Callable[[Body], Body]:
    """Register an element-wise rule: the local partial derivatives in argument order.

    Examples
    --------
    >>> @partials(np.arctan2, domain=[(0.2, 2.0), (0.2, 2.0)])
    ... def arctan2(y, x):
    ...     q = x * x + y * y
    ...     return x / q, -y / q
    """

    def register(body: Body) -> Body:
        for func in funcs:
            _register(Rule(func, "partials", body, domain=domain, nonfinite=nonfinite))
        return body

    return register


def linear(
    *funcs: Callable[..., Any],
    in_: str | tuple[str, ...],
    shapes: Sequence[Any] | None = None,
    constant: tuple[str, ...] = (),
) -> Callable[[Body], Body]:
    """Register the transpose of a function that is linear in the arguments named by `in_`, jointly.

    Forward mode is the function itself without the keywords named by `constant`, which add a part that does not depend
    on these arguments.

    Examples
    --------
    >>> @linear(np.flipud, in_="m", shapes=[(3, 4)])
    ... def flipud(m, *, out_bar):
    ...     return out_bar[::-1]
    """
    wrt = (in_,) if isinstance(in_, str) else in_

    def register(body: Body) -> Body:
        for func in funcs:
            _register(Rule(func, "linear", body, wrt=wrt, shapes=shapes, constant=constant))
        return body

    return register


def pullback(
    *funcs: Callable[..., Any],
    wrt: str | tuple[str, ...] | None = None,
    shapes: Sequence[Any] | None = None,
    nonfinite: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Register a pullback.  `wrt` defaults to the first parameter of the body.

    The returned function has an attribute `pushforward` that registers the tangent of the same function.

    Examples
    --------
    >>> @pullback(np.linalg.inv, shapes=[(3, 3)])
    ... def inv(a, *, out, out_bar):
    ...     return -out.T @ out_bar @ out.T
    >>> @inv.pushforward
    ... def inv_pushforward(a, *, out, a_dot):
    ...     return -out @ a_dot @ out
    """

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        first = next(iter(inspect.signature(body).parameters))
        names = (first,) if wrt is None else (wrt,) if isinstance(wrt, str) else wrt

        def pushforward(tangent: Callable[..., Any]) -> Callable[..., Any]:
            for func in funcs:
                _register(Rule(func, "pullback", body, names, nonfinite, None, shapes, tangent))
            return tangent

        for func in funcs:
            _register(Rule(func, "pullback", body, names, nonfinite, None, shapes))
        body.pushforward = pushforward  # type: ignore[attr-defined]
        return body

    return register


def expands(
    *funcs: Callable[..., Any],
    domain: Sequence[tuple[float, float]] | None = None,
    shapes: Sequence[Any] | None = None,
) -> Callable[[Body], Body]:
    """Register a formula in functions that have rules; the primal itself keeps calling the original function.

    Examples
    --------
    >>> @expands(np.ptp, shapes=[(3, 4)])
    ... def ptp(a, axis=None):
    ...     return np.max(a, axis=axis) - np.min(a, axis=axis)
    """

    def register(body: Body) -> Body:
        for func in funcs:
            _register(Rule(func, "expands", body, domain=domain, shapes=shapes))
        return body

    return register


def inactive(*funcs: Callable[..., Any]) -> None:
    """Declare functions whose result carries no derivative (zero by definition)."""
    for func in funcs:
        _register(Rule(func, "inactive"))
