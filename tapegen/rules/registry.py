"""Rule registry: decorators that register derivative rules, and their lookup.

A derivative is written once.  A rule body is ordinary Python over NumPy: the compiler inlines its *text* into generated
code, the eager tape calls it, forward mode and the to-be-recorded analysis read it.  Bodies therefore call only
functions that have rules themselves and the helpers of `tapegen.rules.helpers`, and branch only on compile-time
constants (ranks, keywords, None).
Un-broadcasting is the compiler's job, never the rule's: a cotangent may have the shape of the result.

Parameters of a body have the order and the names of those of the function, so that calls bind to both alike; a keyword
that the body leaves out (`where=`, `out=`) is refused where it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from tapegen.errors import BadArgument
from tapegen.ir.protocols import is_opaque
from tapegen.rules.rule import Refusal, Rule, _is_own, check_parameters, check_pushforward, signature_of

Body = TypeVar("Body", bound=Callable[..., Any])
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


_RULES: dict[Any, Rule] = {}
_REFUSED: dict[Any, Refusal] = {}

#: Rules of modules that are slow to import are loaded once the module is: nobody else can hold its functions.
_AWAITED = {
    "numpy.ma": ("tapegen.rules.arrays.masked",),
    "scipy.special": ("tapegen.rules.scipy.special", "tapegen.rules.scipy.gamma"),
    "scipy.stats": ("tapegen.rules.scipy.stats",),
    "scipy.linalg": (
        "tapegen.rules.linalg.scipy_linalg",
        "tapegen.rules.linalg.scipy_eigen",
        "tapegen.rules.linalg.scipy_matrix_functions",
        "tapegen.rules.linalg.scipy_special_matrices",
    ),
    "scipy.sparse": ("tapegen.rules.linalg.scipy_sparse",),
    "scipy.integrate": ("tapegen.rules.scipy.quadrature", "tapegen.rules.scipy.ode"),
    "scipy.fft": (
        "tapegen.rules.signal.scipy_dct",
        "tapegen.rules.signal.scipy_dct_templates",
        "tapegen.rules.signal.scipy_fft",
    ),
    "scipy.signal": ("tapegen.rules.signal.scipy_signal", "tapegen.rules.signal.scipy_spectral"),
    "scipy.ndimage": ("tapegen.rules.signal.scipy_ndimage",),
    "scipy.interpolate": ("tapegen.rules.scipy.interpolate", "tapegen.rules.scipy.splines"),
    "scipy.optimize": ("tapegen.rules.scipy.optimize",),
    "mpi4py.MPI": ("tapegen.rules.mpi.adjoints",),
}


def awaited() -> tuple[str, ...]:
    """The modules whose rules are not loaded yet."""
    return tuple(_AWAITED)


def load_awaited() -> bool:
    """Register the rules of modules that have been imported since; returns whether there were any."""
    ready = [module for module in _AWAITED if module in sys.modules]
    for module in ready:
        for area in _AWAITED.pop(module):
            import_module(area)
    return bool(ready)


def fixed(value: Any) -> Callable[[Any], Any]:
    """An entry of `shapes` for a fixed argument: an axis, an index array."""
    return lambda rng: value


def plain(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, also where it has been made differentiable."""
    return func.python if is_opaque(func) else func  # type: ignore[attr-defined]


def registered(func: Any) -> Rule | None:
    """The current rule of a hashable object: the fast path of `rule_of`."""
    return _RULES.get(func)


def rule_of(func: Callable[..., Any]) -> Rule | None:
    """The rule of a function object, or None."""
    try:
        rule = _RULES.get(func) or _RULES.get(func := plain(func))
    except TypeError:  # unhashable callable
        return None
    return _RULES.get(func) if rule is None and load_awaited() else rule


def all_rules() -> tuple[Rule, ...]:
    """Every registered rule, in order of registration."""
    load_awaited()
    return tuple(_RULES.values())


def generation() -> int:
    """The number of rules that users have registered: it invalidates programs that were derived earlier."""
    return _generation


_generation = 0


def _register(rule: Rule) -> None:
    """Register a rule, after static checks."""
    global _generation
    name = getattr(rule.func, "__name__", repr(rule.func))
    func = plain(rule.func)
    if func is not rule.func or (not rule.broadcasts and _is_own(func)):
        rule = replace(rule, func=func, broadcasts=rule.broadcasts or _is_own(func))
    if not callable(rule.func):
        raise BadArgument(f"a derivative rule belongs to a function, and {name} cannot be called.", "Pass a function.")
    try:
        hash(rule.func)
    except TypeError:
        raise BadArgument(
            f"{name} is not hashable (no function of ctypes is), so a rule cannot be found for it.",
            "Write a function that calls it, compiled by numba.njit if the derivative shall be compiled.",
        ) from None
    if rule.body is not None and getattr(rule.body, "__module__", "").partition(".")[0] != "tapegen":
        check_parameters(rule, name)  # those of tapegen are checked by a test: it takes a tenth of the import
    _RULES[rule.func] = rule
    _generation += _is_own(rule.func)


def partials(
    *funcs: Callable[..., Any],
    wrt: str | tuple[str, ...] = (),
    domain: Sequence[tuple[float, float]] | None = None,
    nonfinite: bool = False,
    of_complex: bool = False,
    poles: bool = False,
) -> Callable[[Body], Body]:
    """Register an element-wise rule: the decorated body returns the partial derivatives in argument order.

    Parameters
    ----------
    *funcs : callable
        Functions that have these derivatives.
    wrt : str or tuple of str
        The body returns derivatives with respect to these arguments only; another active argument is refused.
    domain : sequence of (low, high), optional
        For each argument an interval from which `check_rule` draws points.
    nonfinite : bool
        The derivatives can be infinite where the value is used; a zero cotangent then contributes 0.
    of_complex : bool
        The rule holds for complex numbers too: of a holomorphic function these are the same partial derivatives; of a
        function with real values they are `p` such that the result changes by the real part of `p * dz`.
    poles : bool
        Derivatives are finite at real numbers and may be infinite at complex ones.

    Returns
    -------
    callable
        A decorator, which returns the body unchanged.

    Examples
    --------
    >>> def cube(x):
    ...     return x * x * x
    >>> @tg.partials(cube, domain=[(-2.0, 2.0)])
    ... def cube_partials(x):
    ...     return 3.0 * x * x
    """
    names = (wrt,) if isinstance(wrt, str) else wrt

    def register(body: Body) -> Body:
        for func in funcs:
            rule = Rule(func, "partials", body, names, nonfinite, domain, of_complex=of_complex, poles=poles)
            _register(rule)
        return body

    return register


def linear(
    *funcs: Callable[..., Any],
    in_: str | tuple[str, ...],
    shapes: Sequence[Any] | None = None,
    constant: tuple[str, ...] = (),
    of_complex: bool = False,
    broadcasts: bool = False,
) -> Callable[[Body], Body]:
    """Register a function that is linear in some arguments, jointly: the decorated body is its transpose.

    Parameters
    ----------
    *funcs : callable
        Functions that have this transpose.
    in_ : str or tuple of str
        The arguments in which they are linear.
    shapes : sequence, optional
        For each argument a shape, or a function of a random generator, from which `check_rule` draws.
    constant : tuple of str
        Keywords that add a part which does not depend on these arguments; forward mode calls the function without them.
    of_complex : bool
        It is linear in complex numbers (or in their parts, as `np.conj`), and the body is its transpose.
    broadcasts : bool
        The function broadcasts its arguments.

    Returns
    -------
    callable
        A decorator, which returns the body unchanged.

    Examples
    --------
    >>> def reversed_rows(m):
    ...     return m[::-1]
    >>> @tg.linear(reversed_rows, in_="m", shapes=[(3, 4)])
    ... def reversed_rows_transpose(m, *, out_bar):
    ...     return out_bar[::-1]
    """
    wrt = (in_,) if isinstance(in_, str) else in_

    def register(body: Body) -> Body:
        for func in funcs:
            rule = Rule(func, "linear", body, wrt, shapes=shapes, constant=constant, of_complex=of_complex)
            _register(replace(rule, broadcasts=broadcasts))
        return body

    return register


class Pullback(Protocol, Generic[P, R_co]):
    """The body of a pullback, which registers the tangent of the same functions."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def pushforward(self, tangent: Body, /) -> Body:
        """Decorate the body of the pushforward."""
        ...


def pullback(
    *funcs: Callable[..., Any],
    wrt: str | tuple[str, ...] | None = None,
    shapes: Sequence[Any] | None = None,
    nonfinite: bool = False,
    of_complex: bool = False,
    broadcasts: bool = False,
    phases: bool = False,
) -> Callable[[Callable[P, R_co]], Pullback[P, R_co]]:
    """Register a pullback: the decorated body returns the cotangents of arguments.

    Parameters
    ----------
    *funcs : callable
        Functions that have this pullback.
    wrt : str or tuple of str, optional
        The arguments whose cotangents it returns; by default the first parameter of the body.
    shapes : sequence, optional
        For each argument a shape, or a function of a random generator, from which `check_rule` draws.
    nonfinite : bool
        Derivatives can be infinite where the value is used; a zero cotangent then contributes 0.
    of_complex : bool
        It holds for complex numbers: cotangents are not conjugated (docs/complex.md).
    broadcasts : bool
        The function broadcasts its arguments.
    phases : bool
        Complex results are determined up to phases.

    Returns
    -------
    callable
        A decorator, which returns the body.  That has an attribute `pushforward`, a decorator for the rule of forward
        mode; without one the pullback is transposed.

    Examples
    --------
    >>> def inverse(a):
    ...     return np.linalg.inv(a)
    >>> @tg.pullback(inverse, shapes=[(3, 3)])
    ... def inverse_pullback(a, *, out, out_bar):
    ...     return -out.T @ out_bar @ out.T
    >>> @inverse_pullback.pushforward
    ... def inverse_pushforward(a, *, out, a_dot):
    ...     return -out @ a_dot @ out
    """

    def register(body: Callable[P, R_co]) -> Pullback[P, R_co]:
        first = next(iter(signature_of(body).parameters))
        names = (first,) if wrt is None else (wrt,) if isinstance(wrt, str) else wrt
        rules = [Rule(f, "pullback", body, names, nonfinite, None, shapes, of_complex=of_complex) for f in funcs]
        rules = [replace(rule, broadcasts=broadcasts, phases=phases) for rule in rules]

        def pushforward(tangent: Body) -> Body:
            for rule in rules:
                check_pushforward(replace(rule, pushforward=tangent))
                _register(replace(rule, pushforward=tangent))
            return tangent

        for rule in rules:
            _register(rule)
        made = cast(Pullback[P, R_co], body)
        made.pushforward = pushforward  # type: ignore[method-assign]
        return made

    return register


def expands(
    *funcs: Callable[..., Any],
    domain: Sequence[tuple[float, float]] | None = None,
    shapes: Sequence[Any] | None = None,
    written: bool = False,
    of_complex: bool = False,
) -> Callable[[Body], Body]:
    """Register a formula in functions that have rules; the primal itself keeps calling the original function.

    Parameters
    ----------
    *funcs : callable
        Functions that have this formula.
    domain : sequence of (low, high), optional
        For each argument an interval from which `check_rule` draws points.
    shapes : sequence, optional
        For each argument a shape, or a function of a random generator, from which `check_rule` draws.
    written : bool
        The formula replaces the call in the primal too: for a function that writes into its arguments, calls its
        function arguments, or returns nested results.
    of_complex : bool
        The formula is also that of complex numbers.

    Returns
    -------
    callable
        A decorator, which returns the body unchanged.

    Examples
    --------
    >>> def spread(a):
    ...     return np.ptp(a)
    >>> @tg.expands(spread, shapes=[(3, 4)])
    ... def spread_formula(a):
    ...     return np.max(a) - np.min(a)
    """

    def register(body: Body) -> Body:
        for func in funcs:
            _register(Rule(func, "expands", body, domain=domain, shapes=shapes, written=written, of_complex=of_complex))
        return body

    return register


def inactive(*funcs: Callable[..., Any], of_complex: bool = False) -> None:
    """Declare functions whose result carries no derivative (zero by definition).

    Parameters
    ----------
    *funcs : callable
        The functions.
    of_complex : bool
        Also for complex operands with a floating result.
    """
    for func in funcs:
        _register(Rule(func, "inactive", of_complex=of_complex))


def refused(*funcs: Callable[..., Any], reason: str, advice: str) -> None:
    """Declare functions through which no derivative is taken, with one sentence why and one what to write instead."""
    for func in funcs:
        _REFUSED[func] = Refusal(func, reason, advice)


def refusal_of(func: Callable[..., Any]) -> Refusal | None:
    """The refusal of a function without a rule, if one is registered."""
    load_awaited()
    try:
        return _REFUSED.get(func)
    except TypeError:  # unhashable callable
        return None


def all_refusals() -> tuple[Refusal, ...]:
    """Every refusal that gives a reason, in order of registration."""
    load_awaited()
    return tuple(_REFUSED.values())
