"""Refusals of `scipy.sparse`: matrices that store their nonzero elements only."""

import scipy.sparse as sparse

from tapegen.rules.registry import refused

_MAKERS = (
    *("block_array", "block_diag", "bmat", "diags", "diags_array", "eye", "eye_array", "hstack", "identity", "kron"),
    *("kronsum", "spdiags", "tril", "triu", "vstack"),
    *(f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil") for kind in ("array", "matrix")),
)

refused(
    *(getattr(sparse, name) for name in _MAKERS if hasattr(sparse, name)),
    reason="sparse matrices have no derivative with respect to their elements.",
    advice="Write the product with slices (of a tridiagonal matrix d * x, u * x[1:] and l * x[:-1]), or use np.diag.",
)
