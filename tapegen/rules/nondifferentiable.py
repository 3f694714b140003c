"""Nondifferentiable functions, whose result carries no derivative: integer, boolean or piecewise constant."""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np

from tapegen.rules.registry import inactive, refused

# comparison and logic
inactive(np.equal, np.not_equal, operator.eq, operator.ne, operator.not_, operator.truth, of_complex=True)
inactive(np.less, np.less_equal, np.greater, np.greater_equal, operator.lt, operator.le, operator.gt, operator.ge)
inactive(operator.is_, operator.is_not, operator.contains)
inactive(np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.all, np.any, builtins.all, builtins.any)
inactive(np.isclose, np.allclose, of_complex=True)
inactive(np.array_equal, np.array_equiv, math.isclose, np.isin)
inactive(np.isnan, np.isinf, np.isfinite, np.isreal, np.iscomplex, np.isrealobj, np.iscomplexobj, of_complex=True)
inactive(np.isneginf, np.isposinf, math.isnan, math.isinf, math.isfinite, np.isscalar, np.signbit)

# integers and bits
inactive(operator.and_, operator.or_, operator.xor, operator.invert, operator.lshift, operator.rshift, operator.index)
inactive(np.bitwise_count)
inactive(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift, np.gcd, np.lcm)
inactive(math.gcd, math.lcm, math.comb, math.perm, math.factorial, math.isqrt)
inactive(np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8, np.intp, np.bool_)

# piecewise constant
inactive(np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.around, np.sign, np.floor_divide)
inactive(np.spacing)
inactive(math.floor, math.ceil, math.trunc, builtins.round, builtins.int, builtins.bool, operator.floordiv)

# positions and counts
inactive(np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.argsort, np.argpartition, np.lexsort, np.argwhere)
inactive(np.nonzero, np.flatnonzero, np.count_nonzero, np.searchsorted, np.digitize)
inactive(np.ravel_multi_index, np.unravel_index, np.indices, np.ix_)
inactive(np.tril_indices, np.triu_indices, np.tril_indices_from, np.triu_indices_from)
inactive(np.diag_indices, np.diag_indices_from)

# shape and type
inactive(
    np.linalg.matrix_rank,
    np.shape,
    np.size,
    np.ndim,
    builtins.len,
    builtins.isinstance,
    np.broadcast_shapes,
    np.result_type,
    of_complex=True,
)

# arrays that depend on a shape alone
inactive(np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri, of_complex=True)
inactive(np.zeros_like, np.ones_like, np.empty_like, of_complex=True)

refused(
    *(np.mask_indices, np.einsum_path, np.frombuffer),
    reason="it looks at constants alone.",
    advice="Call it before the function, and pass its result as an argument.",
)

# other functions without derivative
refused(
    *(np.array2string, np.array_repr, np.array_str, np.base_repr, np.binary_repr, np.typename, np.info),
    *(np.format_float_positional, np.format_float_scientific),
    reason="its result is text.",
    advice="Make text after the function, of what it returns.",
)
refused(
    *(np.fromfile, np.fromregex, np.genfromtxt, np.load, np.loadtxt, np.save, np.savetxt, np.savez),
    np.savez_compressed,
    reason="it reads or writes a file.",
    advice="Read before the function, and pass the array as an argument; write what it returns.",
)
refused(
    *(np.fromstring, np.fromiter, np.from_dlpack, np.frompyfunc, np.asmatrix, np.bmat, np.nested_iters),
    *(np.require, np.asarray_chkfinite),
    reason="it makes something of other objects than arrays, or other objects of arrays.",
    advice="Call it before the function, and pass an array as an argument; inside use np.array or np.block.",
)
refused(
    np.matrix,
    reason="it makes an array class with its own semantics.",
    advice="Use a plain array, with '@' for products of matrices.",
)
refused(
    np.lib.stride_tricks.as_strided,
    reason="it looks at memory several times, which derivatives do not follow.",
    advice="Use np.lib.stride_tricks.sliding_window_view for windows, np.broadcast_to, or indices.",
)
refused(
    *(np.busday_count, np.busday_offset, np.is_busday, np.datetime_as_string, np.datetime_data, np.isnat),
    reason="it is a function of dates.",
    advice="Turn dates into numbers before the function, and pass these as an argument.",
)
refused(
    *(np.packbits, np.unpackbits),
    reason="it is a function of bits.",
    advice="Call it before the function, and pass its result as an argument.",
)
refused(
    *(np.can_cast, np.common_type, np.isdtype, np.issubdtype, np.min_scalar_type, np.mintypecode, np.promote_types),
    *(np.isfortran, np.iterable, np.may_share_memory, np.shares_memory),
    reason="it looks at types and memory, not at values.",
    advice="Ask before the function, or for x.dtype and x.shape.",
)
refused(
    *(np.get_printoptions, np.set_printoptions, np.printoptions, np.geterr, np.geterrcall, np.seterr, np.seterrcall),
    *(np.getbufsize, np.setbufsize, np.get_include, np.show_config, np.show_runtime),
    reason="it is about NumPy, not about values.",
    advice="Call it outside of the function; with np.errstate(...) may stand inside.",
)
