"""Diagnostic hints: what to write instead of common unsupported constructs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_COUNTED = "Use a dict with a default: d[key] = d.get(key, 0.0) + value, or fill it for all keys beforehand."
_ORDERED = "Write heappush and heappop; or keep a list, and take its least item with min(items) or sorted(items)."
_FLAGS = "Use an array of flags: seen = np.zeros(n, dtype=bool), seen[i] = True, if seen[i]."

OF_CLASSES = {
    "collections.deque": (
        "Use a list: append(x) and pop(); items[-n:] is the window of deque(maxlen=n), and an index that counts up, "
        "first += 1, takes the place of popleft()."
    ),
    "collections.defaultdict": (
        "Use a dict: d[key] = d.get(key, 0.0) + value, or d = {key: [] for key in keys} beforehand."
    ),
    "collections.Counter": _COUNTED,
}
"""Unsupported classes of the standard library."""

OF_FUNCTIONS = {
    "heapreplace": _ORDERED,
    "heappushpop": _ORDERED,
    "set.add": _FLAGS,
    "set.update": _FLAGS,
    "set.remove": _FLAGS,
    "set.discard": _FLAGS,
    "globals": "Write the name of the global: it is read at each call.",
    "locals": "Write the names of the variables.",
    "eval": "Write the expression itself.",
    "exec": "Write the statements themselves.",
    "id": "Compare what the objects hold.",
    "time": "Measure time outside of the function.",
    "perf_counter": "Measure time outside of the function.",
    "open": "Read files before the call, and write them after it.",
    "input": "Pass it as an argument.",
}
"""Functions and methods written in C that have no derivative rule."""

_LEAST_SQUARES = (
    "Write it as scipy.optimize.minimize(lambda p: np.sum(residuals(p) ** 2), start).x, or as a root of the gradient "
    "of that sum; both have rules."
)
_ONE_BY_ONE = "Nest scipy.integrate.quad, which has a rule: the inner integral is a function of the outer variable."

OF_SOLVERS = {
    "scipy.optimize.fsolve": "Use scipy.optimize.root(f, x0, args).x, which has a rule.",
    "scipy.optimize.brenth": "Use scipy.optimize.brentq, which has a rule.",
    "scipy.optimize.ridder": "Use scipy.optimize.brentq, which has a rule.",
    "scipy.optimize.toms748": "Use scipy.optimize.brentq, which has a rule.",
    "scipy.optimize.fmin": "Use scipy.optimize.minimize(f, x0, args).x, which has a rule.",
    "scipy.optimize.fmin_bfgs": "Use scipy.optimize.minimize(f, x0, args).x, which has a rule.",
    "scipy.optimize.least_squares": _LEAST_SQUARES,
    "scipy.optimize.leastsq": _LEAST_SQUARES,
    "scipy.optimize.curve_fit": _LEAST_SQUARES,
    "scipy.integrate.dblquad": _ONE_BY_ONE,
    "scipy.integrate.tplquad": _ONE_BY_ONE,
    "scipy.integrate.nquad": _ONE_BY_ONE,
}
"""Functions of SciPy without a rule that call a function of the user's."""

TRY_ADVICE = "Test for the case beforehand with 'if', or catch the exception outside of the differentiated function."
_BY_EXCEPTION = {
    "KeyError": "Test beforehand: 'if key in table', or table.get(key, default).",
    "IndexError": "Test beforehand: 'if k < len(items)'.",
    "AttributeError": "Use getattr(owner, name, default) or hasattr.",
    "ImportError": "Import at the top of the module.",
    "ModuleNotFoundError": "Import at the top of the module.",
    "ZeroDivisionError": "Test beforehand: 'if b != 0.0'.",
    "LinAlgError": (
        "Leave 'try' out: the exception reaches the caller as it does in plain Python. "
        "Catch it around the call of the differentiated function."
    ),
}


def of_try(node: ast.Try | ast.TryStar) -> str:
    """What to write instead of a `try`."""
    if not node.handlers:
        return "Leave 'try' out, and do what 'finally' does after the call of the differentiated function."
    types = [handler.type for handler in node.handlers]
    named = {part for type_ in types for part in (type_.elts if isinstance(type_, ast.Tuple) else [type_])}
    names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in named}
    return instead_of_handlers(names)


def instead_of_handlers(names: Iterable[str]) -> str:
    """What to write instead of catching these exceptions."""
    advice = {_BY_EXCEPTION.get(name, TRY_ADVICE) for name in names}
    return advice.pop() if len(advice) == 1 else TRY_ADVICE
