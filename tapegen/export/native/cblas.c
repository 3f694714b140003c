/* Products of vectors and matrices by a library with the C interface of BLAS. */

#define TG_CBLAS(NUMBER, PASSED, P)                                                                                    \
    void TG_BLAS(cblas_##P##gemm)(int order, int transa, int transb, int m, int n, int k, PASSED alpha,                \
                                  const NUMBER *a, int lda, const NUMBER *b, int ldb, PASSED beta, NUMBER *c,          \
                                  int ldc);                                                                            \
    void TG_BLAS(cblas_##P##gemv)(int order, int trans, int m, int n, PASSED alpha, const NUMBER *a, int lda,          \
                                  const NUMBER *x, int incx, PASSED beta, NUMBER *y, int incy);

TG_CBLAS(double, double, d)
TG_CBLAS(float, float, s)
TG_CBLAS(void, const void *, z)
TG_CBLAS(void, const void *, c)
double TG_BLAS(cblas_ddot)(int n, const double *x, int incx, const double *y, int incy);
float TG_BLAS(cblas_sdot)(int n, const float *x, int incx, const float *y, int incy);
void TG_BLAS(cblas_zdotu_sub)(int n, const void *x, int incx, const void *y, int incy, void *result);
void TG_BLAS(cblas_zdotc_sub)(int n, const void *x, int incx, const void *y, int incy, void *result);
void TG_BLAS(cblas_cdotu_sub)(int n, const void *x, int incx, const void *y, int incy, void *result);
void TG_BLAS(cblas_cdotc_sub)(int n, const void *x, int incx, const void *y, int incy, void *result);

static bool tg_fits(ptrdiff_t n) {
    if (n <= 0x7fffffff)
        return true;
    tg_trouble = TG_LARGE;
    return false;
}

enum { TG_FORTRAN = 102, TG_AS_IS = 111, TG_TURNED = 112, TG_CONJUGATED = 113 };

static int tg_turn(char trans) {
    return trans == 'n' || trans == 'N' ? TG_AS_IS : trans == 't' || trans == 'T' ? TG_TURNED : TG_CONJUGATED;
}

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *result) {
    if (!tg_fits(n))
        return -1;
    int size = (int)n;
    switch (kind) {
    case 'd': *(double *)result = TG_BLAS(cblas_ddot)(size, x, 1, y, 1); return 0;
    case 's': *(float *)result = TG_BLAS(cblas_sdot)(size, x, 1, y, 1); return 0;
    case 'z': (conjugate ? TG_BLAS(cblas_zdotc_sub) : TG_BLAS(cblas_zdotu_sub))(size, x, 1, y, 1, result); return 0;
    default: (conjugate ? TG_BLAS(cblas_cdotc_sub) : TG_BLAS(cblas_cdotu_sub))(size, x, 1, y, 1, result); return 0;
    }
}

int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    int turn = tg_turn(trans), rows = (int)m, columns = (int)n, step = (int)lda;
#define TG_GEMV(P, ALPHA, BETA)                                                                                        \
    TG_BLAS(cblas_##P##gemv)(TG_FORTRAN, turn, rows, columns, ALPHA, a, step, x, 1, BETA, y, 1)
    switch (kind) {
    case 'd': TG_GEMV(d, *(double *)alpha, *(double *)beta); return 0;
    case 's': TG_GEMV(s, *(float *)alpha, *(float *)beta); return 0;
    case 'z': TG_GEMV(z, alpha, beta); return 0;
    default: TG_GEMV(c, alpha, beta); return 0;
    }
}

int numba_xxgemm(char kind, char transa, char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(k) || !tg_fits(lda) || !tg_fits(ldb) || !tg_fits(ldc))
        return -1;
    int turn_a = tg_turn(transa), turn_b = tg_turn(transb), rows = (int)m, columns = (int)n, inner = (int)k;
    int step_a = (int)lda, step_b = (int)ldb, step_c = (int)ldc;
#define TG_GEMM(P, ALPHA, BETA)                                                                                        \
    TG_BLAS(cblas_##P##gemm)(TG_FORTRAN, turn_a, turn_b, rows, columns, inner, ALPHA, a, step_a, b, step_b, BETA, c,   \
                             step_c)
    switch (kind) {
    case 'd': TG_GEMM(d, *(double *)alpha, *(double *)beta); return 0;
    case 's': TG_GEMM(s, *(float *)alpha, *(float *)beta); return 0;
    case 'z': TG_GEMM(z, alpha, beta); return 0;
    default: TG_GEMM(c, alpha, beta); return 0;
    }
}
