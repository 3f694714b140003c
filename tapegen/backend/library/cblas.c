/* Products of vectors and matrices by a library with the C interface of BLAS. */

void cblas_dgemm(int order, int transa, int transb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);
void cblas_sgemm(int order, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemv(int order, int trans, int m, int n, double alpha, const double *a, int lda, const double *x, int incx,
                 double beta, double *y, int incy);
void cblas_sgemv(int order, int trans, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                 float beta, float *y, int incy);
double cblas_ddot(int n, const double *x, int incx, const double *y, int incy);
float cblas_sdot(int n, const float *x, int incx, const float *y, int incy);

enum { TG_FORTRAN = 102, TG_AS_IS = 111, TG_TURNED = 112 };

static int tg_turn(char trans) { return trans == 'n' || trans == 'N' ? TG_AS_IS : TG_TURNED; }

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *result) {
    (void)conjugate;
    if (kind == 'd')
        *(double *)result = cblas_ddot((int)n, x, 1, y, 1);
    else
        *(float *)result = cblas_sdot((int)n, x, 1, y, 1);
    return 0;
}

int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    if (kind == 'd')
        cblas_dgemv(TG_FORTRAN, tg_turn(trans), (int)m, (int)n, *(double *)alpha, a, (int)lda, x, 1, *(double *)beta, y,
                    1);
    else
        cblas_sgemv(TG_FORTRAN, tg_turn(trans), (int)m, (int)n, *(float *)alpha, a, (int)lda, x, 1, *(float *)beta, y,
                    1);
    return 0;
}

int numba_xxgemm(char kind, char transa, char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    if (kind == 'd')
        cblas_dgemm(TG_FORTRAN, tg_turn(transa), tg_turn(transb), (int)m, (int)n, (int)k, *(double *)alpha, a, (int)lda,
                    b, (int)ldb, *(double *)beta, c, (int)ldc);
    else
        cblas_sgemm(TG_FORTRAN, tg_turn(transa), tg_turn(transb), (int)m, (int)n, (int)k, *(float *)alpha, a, (int)lda,
                    b, (int)ldb, *(float *)beta, c, (int)ldc);
    return 0;
}
