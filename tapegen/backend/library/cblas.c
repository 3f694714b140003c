/* Products of vectors and matrices by a library with the C interface of BLAS. */

void TG_BLAS(cblas_dgemm)(int order, int transa, int transb, int m, int n, int k, double alpha, const double *a,
                            int lda, const double *b, int ldb, double beta, double *c, int ldc);
void TG_BLAS(cblas_dgemv)(int order, int trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                            int incx, double beta, double *y, int incy);
void TG_BLAS(cblas_sgemm)(int order, int transa, int transb, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
void TG_BLAS(cblas_sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda, const float *x,
                            int incx, float beta, float *y, int incy);
double TG_BLAS(cblas_ddot)(int n, const double *x, int incx, const double *y, int incy);
float TG_BLAS(cblas_sdot)(int n, const float *x, int incx, const float *y, int incy);

static bool tg_fits(ptrdiff_t n) {
    if (n <= 0x7fffffff)
        return true;
    tg_trouble = TG_LARGE;
    return false;
}

enum { TG_FORTRAN = 102, TG_AS_IS = 111, TG_TURNED = 112 };

static int tg_turn(char trans) { return trans == 'n' || trans == 'N' ? TG_AS_IS : TG_TURNED; }

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *result) {
    (void)conjugate;
    if (!tg_fits(n))
        return -1;
    if (kind == 'd')
        *(double *)result = TG_BLAS(cblas_ddot)((int)n, x, 1, y, 1);
    else
        *(float *)result = TG_BLAS(cblas_sdot)((int)n, x, 1, y, 1);
    return 0;
}

int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    int turned = tg_turn(trans), rows = (int)m, columns = (int)n, step = (int)lda;
    if (kind == 'd')
        TG_BLAS(cblas_dgemv)(TG_FORTRAN, turned, rows, columns, *(double *)alpha, a, step, x, 1, *(double *)beta, y, 1);
    else
        TG_BLAS(cblas_sgemv)(TG_FORTRAN, turned, rows, columns, *(float *)alpha, a, step, x, 1, *(float *)beta, y, 1);
    return 0;
}

int numba_xxgemm(char kind, char transa, char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(k) || !tg_fits(lda) || !tg_fits(ldb) || !tg_fits(ldc))
        return -1;
    int turn_a = tg_turn(transa), turn_b = tg_turn(transb), rows = (int)m, columns = (int)n, inner = (int)k;
    int step_a = (int)lda, step_b = (int)ldb, step_c = (int)ldc;
    if (kind == 'd')
        TG_BLAS(cblas_dgemm)(TG_FORTRAN, turn_a, turn_b, rows, columns, inner, *(double *)alpha, a, step_a, b, step_b,
                             *(double *)beta, c, step_c);
    else
        TG_BLAS(cblas_sgemm)(TG_FORTRAN, turn_a, turn_b, rows, columns, inner, *(float *)alpha, a, step_a, b, step_b,
                             *(float *)beta, c, step_c);
    return 0;
}
