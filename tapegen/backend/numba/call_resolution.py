"""Call resolution: the signature of a call of known argument types is found once.

numba tries all templates of a function, in order, for each call, and again for each operation that it lowers:
an addition of two floats asks seven of them, with the rules of ufuncs.  That was a third of the compile time
of long functions.

Each overload that numba loads asks for the registry of its target, for which numba looks through all registries for
what is new: hundreds of times in the first compilation, which looks itself before and after.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import types
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from numba.core.typing.templates import _TemplateTargetHelperMixin, builtin_registry

_own = BaseFunction.get_call_type
_own_registry = _TemplateTargetHelperMixin._get_target_registry

_CPU = (None, "generic", "cpu")
"""The targets that templates of the CPU name."""

_NUMBERS = (types.Integer, types.Float, types.Boolean, types.Complex)

_OF_NUMBERS = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
        *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod),
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
        *(operator.and_, operator.or_, operator.xor, operator.neg, operator.not_),
    }
)
"""Operators for which a literal number is a number like any other."""

_lasting: dict[Any, Any] = {}
"""Signatures of operators on numbers, whose implementation no option of the compiler changes."""

_found: dict[int, tuple[Any, dict[Any, Any]]] = {}
"""Signatures of other functions, with the keys of their implementations, for each function that is being compiled.

These may depend on its options: the object that numba makes for each function identifies it.
"""


@contextmanager
def calls_resolved_once() -> Iterator[None]:
    """A context in which numba calls `call_type` and `target_registry`; for the thread that holds its lock."""
    before, registry = BaseFunction.get_call_type, _TemplateTargetHelperMixin._get_target_registry
    BaseFunction.get_call_type = call_type  # type: ignore[method-assign, assignment]
    _TemplateTargetHelperMixin._get_target_registry = target_registry  # type: ignore[method-assign]
    try:
        yield
    finally:
        BaseFunction.get_call_type = before  # type: ignore[method-assign]
        _TemplateTargetHelperMixin._get_target_registry = registry  # type: ignore[method-assign]
        if before is _own:
            _found.clear()


def target_registry(template: Any, reason: str) -> Any:
    """The registry of a template of the CPU; the result of `_get_target_registry`, which refreshes the context."""
    registries = cpu_target.target_context._registries
    is_of_cpu = template.context is cpu_target.typing_context and template.metadata.get("target") in _CPU
    if not is_of_cpu or not registries:
        return _own_registry(template, reason)
    return builtin_registry if builtin_registry in registries else next(iter(registries))


def call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a call; the result of `BaseFunction.get_call_type`.

    Parameters
    ----------
    function : numba.core.types.BaseFunction
        The type of the function.
    context : numba.core.typing.BaseContext
        The typing context.
    args : sequence of numba type
        The types of the arguments by position.
    kws : mapping of str to numba type
        The types of the arguments by name.
    """
    if kws:
        return _own(function, context, args, kws)
    if function.typing_key in _OF_NUMBERS and all(isinstance(arg, _NUMBERS) for arg in args):
        key = (context, function, *map(types.unliteral, args))
        found = _lasting.get(key)
        if found is None:
            found = _own(function, context, key[2:], kws)
            if function.get_impl_key(found) is function.typing_key:
                _lasting[key] = found
        return found
    options = ConfigStack.top_or_none()
    _, known = _found.setdefault(id(options), (options, {}))  # which keeps the object, and so its identity
    key = (context, function, *args)
    if key not in known:
        signature = _own(function, context, args, kws)
        known[key] = signature, function.get_impl_key(signature)
        return signature
    signature, function._impl_keys[signature.args] = known[key]
    return signature
