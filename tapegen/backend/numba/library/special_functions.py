"""Special functions in compiled code: calls of what `scipy.special.cython_special` exports.

Compiled code refers to each by a symbol, not by an address, so that cached code finds it in another process.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic, overload

from tapegen.rules.external_functions import numbers

_MODULE = "scipy.special.cython_special"
_provided: set[Any] = set()


def provide() -> None:
    """Let numba compile calls of functions that rules have declared; no effect while scipy.special is not loaded."""
    if "scipy.special" not in sys.modules:
        return
    for func in numbers():
        if func not in _provided:
            _provided.add(func)
            _provide(func)


def _provide(func: Any) -> None:
    from scipy import special

    if func is special.zeta:
        implementation: Callable[..., Any] = zeta
    elif func is special.polygamma:
        implementation = _polygamma(_external("psi", 1, 1))
    elif numbers()[func] == "complex128":
        if sys.platform == "win32":
            return  # C passes complex numbers differently there: such a program runs as Python
        implementation = _of_one_complex(func.__name__)
    elif func.__name__ in _PARTS:
        name, which = _PARTS[func.__name__]
        implementation = _part(_external(name, 1, 2), which)
    else:
        implementation = _FORMS[func.nin](_external(func.__name__, func.nin, 1))
    overload(func, strict=False)(_chosen(implementation))


def _chosen(implementation: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation for given types, as numba requests it: the same for all."""
    parameters = ", ".join(implementation.__code__.co_varnames[: implementation.__code__.co_argcount])
    namespace = {"implementation": implementation}
    return eval(f"lambda {parameters}: implementation", namespace)


def _external(name: str, count: int, results: int) -> Any:
    """The exported function of float64 scalars.

    Raises
    ------
    LookupError
        scipy does not export it.
    """
    from scipy.special import cython_special

    returned, given = ("double", "int __pyx_skip_dispatch") if results == 1 else ("void", "double *, double *")
    signature = f"{returned} ({'double, ' * count}{given})"
    for key, capsule in cython_special.__pyx_capi__.items():
        if re.sub(r"__pyx_fuse_\d+", "", key) == name and f'"{signature}"' in str(capsule):
            symbol = f"scipy_special_{name}_of_{count}"
            llvm.add_symbol(symbol, get_cython_function_address(_MODULE, key))
            number = (types.float64,) * count
            if results == 1:
                return types.ExternalFunction(symbol, types.float64(*number, types.int32))
            return types.ExternalFunction(symbol, types.void(*number, types.voidptr, types.voidptr))
    raise LookupError(f"{_MODULE} has no function {signature.replace('(', f'{name}(', 1)}")


def _of_one_complex(name: str) -> Callable[..., Any]:
    """The exported function of a complex scalar: on 64-bit Unix systems C passes the two parts in registers."""
    from scipy.special import cython_special  # noqa: F401

    symbol = f"scipy_special_{name}_of_complex"
    llvm.add_symbol(symbol, get_cython_function_address(_MODULE, name))

    @intrinsic
    def external(typing: Any, x: Any, y: Any) -> Any:
        def generated(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, skip = ir.DoubleType(), ir.IntType(32)
            kind = ir.FunctionType(ir.LiteralStructType([number, number]), [number, number, skip])
            function = cgutils.get_or_insert_function(builder.module, kind, symbol)
            parts = builder.call(function, (*args, ir.Constant(skip, 0)))
            z = context.make_complex(builder, types.complex128)
            z.real, z.imag = builder.extract_value(parts, 0), builder.extract_value(parts, 1)
            return z._getvalue()

        return types.complex128(types.float64, types.float64), generated

    return lambda z: external(z.real, z.imag)  # type: ignore[call-arg]


def _of_one(external: Any) -> Callable[..., Any]:
    return lambda x: external(x, 0)


def _of_two(external: Any) -> Callable[..., Any]:
    return lambda x, y: external(x, y, 0)


def _of_three(external: Any) -> Callable[..., Any]:
    return lambda x, y, z: external(x, y, z, 0)


def _of_four(external: Any) -> Callable[..., Any]:
    return lambda x, y, z, u: external(x, y, z, u, 0)


_FORMS = {1: _of_one, 2: _of_two, 3: _of_three, 4: _of_four}


_PARTS = {
    "sine_integral": ("sici", 0),
    "cosine_integral": ("sici", 1),
    "fresnel_sine": ("fresnel", 0),
    "fresnel_cosine": ("fresnel", 1),
}
"""Functions that are one of several results of another one."""


def _part(external: Any, which: int) -> Callable[..., Any]:
    def part(x: Any) -> Any:
        results = np.empty(2)
        external(x, results.ctypes, results[1:].ctypes)
        return results[which]

    return part


_EULER_MACLAURIN = tuple(
    b / math.factorial(2 * k + 2)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798))
)
"""Bernoulli numbers divided by factorials."""


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function: the first terms of the sum, and the rest by Euler and Maclaurin's formula."""
    if x == 1.0:
        return math.inf
    if x < 1.0:
        return math.nan
    if q <= 0.0:
        if q == math.floor(q):
            return math.inf
        if x != math.floor(x):
            return math.nan
    total = 0.0
    while q < 10.0:
        total += q**-x
        q += 1.0
    power = q**-x
    total += power * (q / (x - 1.0) + 0.5)
    factor = x
    power /= q
    for k in range(9):
        total += _EULER_MACLAURIN[k] * factor * power
        factor *= (x + 2.0 * k + 1.0) * (x + 2.0 * k + 2.0)
        power /= q * q
    return total


_zeta = njit(error_model="numpy")(zeta)


def _polygamma(psi: Any) -> Callable[..., Any]:
    def polygamma(n: Any, x: Any) -> Any:
        if n == 0.0:
            return psi(x, 0)
        sign = 1.0 if n % 2.0 == 1.0 else -1.0
        return sign * math.gamma(n + 1.0) * _zeta(n + 1.0, x)

    return polygamma
