/* Products of vectors and matrices in the order of Fortran, as BLAS has them. */

#define TG_PRODUCTS(NUMBER, NAME)                                                                                      \
    static void NAME##_dot(ptrdiff_t n, const NUMBER *x, const NUMBER *y, NUMBER *result) {                           \
        NUMBER sums[4] = {0, 0, 0, 0};                                                                                 \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + 4 <= n; i += 4)                                                                                     \
            for (int k = 0; k < 4; k++)                                                                                \
                sums[k] += x[i + k] * y[i + k];                                                                        \
        for (; i < n; i++)                                                                                             \
            sums[0] += x[i] * y[i];                                                                                    \
        *result = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                           \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_scale(ptrdiff_t n, NUMBER factor, NUMBER *y) {                                                 \
        if (factor == 0)                                                                                               \
            memset(y, 0, (size_t)n * sizeof *y);                                                                       \
        else if (factor != 1)                                                                                          \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                y[i] *= factor;                                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_add(ptrdiff_t n, NUMBER factor, const NUMBER *x, NUMBER *restrict y) {                         \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            y[i] += factor * x[i];                                                                                     \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_gemv(bool turned, ptrdiff_t m, ptrdiff_t n, NUMBER alpha, const NUMBER *a, ptrdiff_t lda,      \
                            const NUMBER *x, NUMBER beta, NUMBER *y) {                                                 \
        NAME##_scale(turned ? n : m, beta, y);                                                                         \
        for (ptrdiff_t j = 0; j < n; j++) {                                                                            \
            NUMBER sum;                                                                                                \
            if (turned) {                                                                                              \
                NAME##_dot(m, a + j * lda, x, &sum);                                                                   \
                y[j] += alpha * sum;                                                                                   \
            } else                                                                                                     \
                NAME##_add(m, alpha * x[j], a + j * lda, y);                                                           \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_gemm(bool turn_a, bool turn_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, NUMBER alpha,            \
                            const NUMBER *a, ptrdiff_t lda, const NUMBER *b, ptrdiff_t ldb, NUMBER beta, NUMBER *c,    \
                            ptrdiff_t ldc) {                                                                           \
        for (ptrdiff_t j = 0; j < n; j++) {                                                                            \
            NUMBER *column = c + j * ldc;                                                                              \
            NAME##_scale(m, beta, column);                                                                             \
            if (!turn_a)                                                                                               \
                for (ptrdiff_t l = 0; l < k; l++)                                                                      \
                    NAME##_add(m, alpha * (turn_b ? b[j + l * ldb] : b[l + j * ldb]), a + l * lda, column);            \
            else                                                                                                       \
                for (ptrdiff_t i = 0; i < m; i++) {                                                                    \
                    NUMBER sum = 0;                                                                                    \
                    if (!turn_b)                                                                                       \
                        NAME##_dot(k, a + i * lda, b + j * ldb, &sum);                                                 \
                    else                                                                                               \
                        for (ptrdiff_t l = 0; l < k; l++)                                                              \
                            sum += a[l + i * lda] * b[j + l * ldb];                                                    \
                    column[i] += alpha * sum;                                                                          \
                }                                                                                                      \
        }                                                                                                              \
    }

TG_PRODUCTS(double, tg_d)
TG_PRODUCTS(float, tg_s)

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *result) {
    (void)conjugate;
    if (kind == 'd')
        tg_d_dot(n, x, y, result);
    else
        tg_s_dot(n, x, y, result);
    return 0;
}

int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    bool turned = trans != 'n' && trans != 'N';
    if (kind == 'd')
        tg_d_gemv(turned, m, n, *(double *)alpha, a, lda, x, *(double *)beta, y);
    else
        tg_s_gemv(turned, m, n, *(float *)alpha, a, lda, x, *(float *)beta, y);
    return 0;
}

int numba_xxgemm(char kind, char transa, char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    bool turn_a = transa != 'n' && transa != 'N', turn_b = transb != 'n' && transb != 'N';
    if (kind == 'd')
        tg_d_gemm(turn_a, turn_b, m, n, k, *(double *)alpha, a, lda, b, ldb, *(double *)beta, c, ldc);
    else
        tg_s_gemm(turn_a, turn_b, m, n, k, *(float *)alpha, a, lda, b, ldb, *(float *)beta, c, ldc);
    return 0;
}
