"""Rules of linear algebra.

* `contractions` - products of vectors, matrices and tensors
* `solve` - linear systems, determinants, norms
* `factorizations` - Cholesky, QR, eigenvalues, singular values
* `scipy_linalg` - functions of `scipy.linalg`
* `scipy_eigen` - eigenvalue decompositions of `scipy.linalg`
* `scipy_matrix_functions` - matrix exponential and other functions of a matrix
* `scipy_special_matrices` - structured matrices
* `scipy_sparse` - refusals of sparse matrices
"""
