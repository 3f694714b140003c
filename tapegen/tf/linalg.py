"""`tf.linalg`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import scipy.linalg

from tapegen.tape import global_norm
from tapegen.tape.tensors import numpy_dispatch
from tapegen.tf.functions import einsum, matmul, norm, tensordot
from tapegen.tf.values import absent, convert_to_tensor, eye, of_one

inv, det = of_one(np.linalg.inv), of_one(np.linalg.det)
pinv, eigvalsh, slogdet = of_one(np.linalg.pinv), of_one(np.linalg.eigvalsh), of_one(np.linalg.slogdet)
eigh, qr, matrix_transpose = of_one(np.linalg.eigh), of_one(np.linalg.qr), of_one(np.matrix_transpose)


def expm(input: Any, name: str | None = None) -> Any:
    """The exponential of a matrix."""
    return numpy_dispatch.function(scipy.linalg.expm, (convert_to_tensor(input),), {})


def logdet(matrix: Any) -> Any:
    """The logarithm of the determinant."""
    return np.linalg.slogdet(convert_to_tensor(matrix))[1]


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular values, and with `compute_uv` the singular vectors in columns."""
    matrix = convert_to_tensor(tensor)
    if not compute_uv:
        return np.linalg.svd(matrix, compute_uv=False)
    u, s, vh = np.linalg.svd(matrix, full_matrices=full_matrices)
    return s, u, np.conj(np.matrix_transpose(vh))


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False) -> Any:
    """The `x` with `matrix @ x == rhs`, of a triangle of the matrix."""
    full = convert_to_tensor(matrix)
    triangle: Any = np.tril(full) if lower else np.triu(full)
    return np.linalg.solve(np.conj(np.matrix_transpose(triangle)) if adjoint else triangle, convert_to_tensor(rhs))


def cholesky_solve(chol: Any, rhs: Any) -> Any:
    """The `x` with `chol @ chol.T @ x == rhs`."""
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def lstsq(matrix: Any, rhs: Any) -> Any:
    """The `x` for which `matrix @ x` is nearest to `rhs`."""
    return np.linalg.pinv(convert_to_tensor(matrix)) @ convert_to_tensor(rhs)


def cross(a: Any, b: Any) -> Any:
    """The product of vectors of three numbers."""
    return np.cross(convert_to_tensor(a), convert_to_tensor(b))


def diag(diagonal: Any) -> Any:
    """Matrices with a diagonal."""
    values: Any = convert_to_tensor(diagonal)
    return values[..., None] * np.eye(values.shape[-1], dtype=values.dtype)


tensor_diag = diag


def set_diag(input: Any, diagonal: Any) -> Any:
    """Matrices with another diagonal."""
    matrix = convert_to_tensor(input)
    is_diagonal = np.equal(*np.indices(matrix.shape[-2:], sparse=True))
    return np.where(is_diagonal, diag(convert_to_tensor(diagonal, matrix.dtype)), matrix)


def band_part(input: Any, num_lower: int, num_upper: int) -> Any:
    """Some of the diagonals below and above the main one (-1: all)."""
    matrix = convert_to_tensor(input)
    offset = np.arange(matrix.shape[-1]) - np.arange(matrix.shape[-2])[:, None]
    kept = ((num_lower < 0) | (-offset <= num_lower)) & ((num_upper < 0) | (offset <= num_upper))
    return np.where(kept, matrix, np.zeros((), matrix.dtype))


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None) -> tuple[Any, Any]:
    """A tensor over its norm, and the norm."""
    size = norm(tensor, ord, axis, keepdims=True)
    return convert_to_tensor(tensor) / size, size


def cholesky(input: Any) -> Any:
    """The lower triangle `l` with `l @ l.T` equal to a symmetric matrix; both its halves get a gradient."""
    matrix: Any = convert_to_tensor(input)
    return np.linalg.cholesky((matrix + np.conj(np.matrix_transpose(matrix))) / 2)


def solve(matrix: Any, rhs: Any) -> Any:
    """The `x` with `matrix @ x == rhs`."""
    return np.linalg.solve(convert_to_tensor(matrix), convert_to_tensor(rhs))


def matvec(a: Any, b: Any) -> Any:
    """The product of matrices and vectors."""
    return np.squeeze(convert_to_tensor(a) @ np.expand_dims(convert_to_tensor(b), -1), -1)


def trace(x: Any) -> Any:
    """The sum of the diagonal of matrices in the last two axes."""
    return np.trace(convert_to_tensor(x), axis1=-2, axis2=-1)


def diag_part(input: Any) -> Any:
    """The diagonal of matrices in the last two axes."""
    return np.diagonal(convert_to_tensor(input), axis1=-2, axis2=-1)


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.linalg", name)


__all__ = [
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "logdet",
    "lstsq",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "svd",
    "tensor_diag",
    "tensordot",
    "trace",
    "triangular_solve",
]
