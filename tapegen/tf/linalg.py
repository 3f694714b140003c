"""`tf.linalg`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tapegen.tf.functions import einsum, matmul, norm, tensordot
from tapegen.tf.values import absent, convert_to_tensor, eye, of_one

inv, det, cholesky = of_one(np.linalg.inv), of_one(np.linalg.det), of_one(np.linalg.cholesky)


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
    "cholesky",
    "det",
    "diag_part",
    "einsum",
    "eye",
    "inv",
    "matmul",
    "matvec",
    "norm",
    "solve",
    "tensordot",
    "trace",
]
