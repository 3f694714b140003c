/* Products of vectors and matrices in the order of Fortran, as BLAS has them. */

#include <complex.h>

enum { TG_AS_IS, TG_TURNED, TG_CONJUGATED };

/* `CONJ` is the conjugate of a number. */
#define TG_PRODUCTS(NUMBER, NAME, CONJ)                                                                                \
    static void NAME##_dot(bool conjugate, ptrdiff_t n, const NUMBER *x, const NUMBER *y, NUMBER *result) {            \
        NUMBER sums[4] = {0, 0, 0, 0};                                                                                 \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + 4 <= n; i += 4)                                                                                     \
            for (int k = 0; k < 4; k++)                                                                                \
                sums[k] += (conjugate ? CONJ(x[i + k]) : x[i + k]) * y[i + k];                                         \
        for (; i < n; i++)                                                                                             \
            sums[0] += (conjugate ? CONJ(x[i]) : x[i]) * y[i];                                                         \
        *result = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                           \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_scale(ptrdiff_t n, NUMBER factor, NUMBER *y) {                                                  \
        if (factor == 0)                                                                                               \
            memset(y, 0, (size_t)n * sizeof *y);                                                                       \
        else if (factor != 1)                                                                                          \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                y[i] *= factor;                                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_add(ptrdiff_t n, NUMBER factor, const NUMBER *x, NUMBER *restrict y) {                          \
        for (ptrdiff_t i = 0; i < n; i++)                                                                              \
            y[i] += factor * x[i];                                                                                     \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_gemv(int turn, ptrdiff_t m, ptrdiff_t n, const NUMBER *alpha, const NUMBER *a, ptrdiff_t lda,   \
                            const NUMBER *x, const NUMBER *beta, NUMBER *y) {                                          \
        NAME##_scale(turn ? n : m, *beta, y);                                                                          \
        for (ptrdiff_t j = 0; j < n; j++) {                                                                            \
            NUMBER sum;                                                                                                \
            if (turn) {                                                                                                \
                NAME##_dot(turn == TG_CONJUGATED, m, a + j * lda, x, &sum);                                            \
                y[j] += *alpha * sum;                                                                                  \
            } else                                                                                                     \
                NAME##_add(m, *alpha * x[j], a + j * lda, y);                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void NAME##_gemm(int turn_a, int turn_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const NUMBER *alpha,        \
                            const NUMBER *a, ptrdiff_t lda, const NUMBER *b, ptrdiff_t ldb, const NUMBER *beta,        \
                            NUMBER *c, ptrdiff_t ldc) {                                                                \
        for (ptrdiff_t j = 0; j < n; j++) {                                                                            \
            NUMBER *column = c + j * ldc;                                                                              \
            NAME##_scale(m, *beta, column);                                                                            \
            if (!turn_a)                                                                                               \
                for (ptrdiff_t l = 0; l < k; l++) {                                                                    \
                    NUMBER factor = turn_b ? b[j + l * ldb] : b[l + j * ldb];                                          \
                    NAME##_add(m, *alpha * (turn_b == TG_CONJUGATED ? CONJ(factor) : factor), a + l * lda, column);    \
                }                                                                                                      \
            else                                                                                                       \
                for (ptrdiff_t i = 0; i < m; i++) {                                                                    \
                    NUMBER sum = 0;                                                                                    \
                    if (!turn_b)                                                                                       \
                        NAME##_dot(turn_a == TG_CONJUGATED, k, a + i * lda, b + j * ldb, &sum);                        \
                    else                                                                                               \
                        for (ptrdiff_t l = 0; l < k; l++) {                                                            \
                            NUMBER left = a[l + i * lda], right = b[j + l * ldb];                                      \
                            left = turn_a == TG_CONJUGATED ? CONJ(left) : left;                                        \
                            sum += left * (turn_b == TG_CONJUGATED ? CONJ(right) : right);                             \
                        }                                                                                              \
                    column[i] += *alpha * sum;                                                                         \
                }                                                                                                      \
        }                                                                                                              \
    }

#define TG_REAL(x) (x)

TG_PRODUCTS(double, tg_d, TG_REAL)
TG_PRODUCTS(float, tg_s, TG_REAL)
TG_PRODUCTS(double _Complex, tg_z, conj)
TG_PRODUCTS(float _Complex, tg_c, conjf)

static int tg_turn(char trans) {
    return trans == 'n' || trans == 'N' ? TG_AS_IS : trans == 't' || trans == 'T' ? TG_TURNED : TG_CONJUGATED;
}

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, void *x, void *y, void *result) {
    switch (kind) {
    case 'd': tg_d_dot(conjugate, n, x, y, result); return 0;
    case 's': tg_s_dot(conjugate, n, x, y, result); return 0;
    case 'z': tg_z_dot(conjugate, n, x, y, result); return 0;
    default: tg_c_dot(conjugate, n, x, y, result); return 0;
    }
}

int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, void *alpha, void *a, ptrdiff_t lda, void *x,
                 void *beta, void *y) {
    int turn = tg_turn(trans);
    switch (kind) {
    case 'd': tg_d_gemv(turn, m, n, alpha, a, lda, x, beta, y); return 0;
    case 's': tg_s_gemv(turn, m, n, alpha, a, lda, x, beta, y); return 0;
    case 'z': tg_z_gemv(turn, m, n, alpha, a, lda, x, beta, y); return 0;
    default: tg_c_gemv(turn, m, n, alpha, a, lda, x, beta, y); return 0;
    }
}

int numba_xxgemm(char kind, char transa, char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *alpha, void *a,
                 ptrdiff_t lda, void *b, ptrdiff_t ldb, void *beta, void *c, ptrdiff_t ldc) {
    int turn_a = tg_turn(transa), turn_b = tg_turn(transb);
    switch (kind) {
    case 'd': tg_d_gemm(turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); return 0;
    case 's': tg_s_gemm(turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); return 0;
    case 'z': tg_z_gemm(turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); return 0;
    default: tg_c_gemm(turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); return 0;
    }
}
