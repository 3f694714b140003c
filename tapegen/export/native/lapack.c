/* Matrix factorisations by the LAPACK of a library, with its interface for Fortran: characters have hidden lengths. */

#include <limits.h>

/* `REAL` is the type of eigenvalues; `EVD` and `GQR` are what LAPACK calls the functions for symmetric or Hermitian,
 * and for orthogonal or unitary matrices.  Those of complex numbers take one more array to work in: `MORE` gives its
 * arguments, or nothing. */
#define TG_LAPACK(NUMBER, REAL, P, EVD, GQR, MORE)                                                                     \
    void TG_BLAS(P##getrf_)(int *m, int *n, NUMBER *a, int *lda, int *pivots, int *info);                              \
    void TG_BLAS(P##getri_)(int *n, NUMBER *a, int *lda, int *pivots, NUMBER *work, int *size, int *info);             \
    void TG_BLAS(P##gesv_)(int *n, int *columns, NUMBER *a, int *lda, int *pivots, NUMBER *b, int *ldb, int *info);    \
    void TG_BLAS(P##potrf_)(char *half, int *n, NUMBER *a, int *lda, int *info, size_t);                               \
    void TG_BLAS(P##EVD##_)(char *job, char *half, int *n, NUMBER *a, int *lda, REAL *w, NUMBER *work, int *size       \
                            MORE(REAL *, int *), int *iwork, int *isize, int *info, size_t, size_t);                   \
    void TG_BLAS(P##gesdd_)(char *job, int *m, int *n, NUMBER *a, int *lda, REAL *s, NUMBER *u, int *ldu,              \
                            NUMBER *vt, int *ldvt, NUMBER *work, int *size MORE(REAL *), int *iwork, int *info,        \
                            size_t);                                                                                   \
    void TG_BLAS(P##geqrf_)(int *m, int *n, NUMBER *a, int *lda, NUMBER *tau, NUMBER *work, int *size, int *info);     \
    void TG_BLAS(P##GQR##_)(int *m, int *n, int *k, NUMBER *a, int *lda, NUMBER *tau, NUMBER *work, int *size,         \
                            int *info);                                                                                \
                                                                                                                       \
    static int tg_##P##getrf(int m, int n, void *a, int lda, int *pivots) {                                            \
        int info = 0;                                                                                                  \
        TG_BLAS(P##getrf_)(&m, &n, a, &lda, pivots, &info);                                                            \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##gesv(int n, int columns, void *a, int lda, int *pivots, void *b, int ldb) {                     \
        int info = 0;                                                                                                  \
        TG_BLAS(P##gesv_)(&n, &columns, a, &lda, pivots, b, &ldb, &info);                                              \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##potrf(char half, int n, void *a, int lda) {                                                     \
        int info = 0;                                                                                                  \
        TG_BLAS(P##potrf_)(&half, &n, a, &lda, &info, 1);                                                              \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##getri(int n, void *a, int lda, int *pivots) {                                                   \
        int info = 0, size = -1;                                                                                       \
        NUMBER best;                                                                                                   \
        TG_BLAS(P##getri_)(&n, a, &lda, pivots, &best, &size, &info);                                                  \
        size = (int)best;                                                                                              \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        if (work == NULL)                                                                                              \
            return -1;                                                                                                 \
        TG_BLAS(P##getri_)(&n, a, &lda, pivots, work, &size, &info);                                                   \
        free(work);                                                                                                    \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##evd(char job, char half, int n, void *a, int lda, void *w) {                                    \
        int info = 0, size = -1, isize = -1, ibest, rsize = -1;                                                        \
        NUMBER best;                                                                                                   \
        REAL rbest = 0;                                                                                                \
        (void)rsize;                                                                                                   \
        TG_BLAS(P##EVD##_)(&job, &half, &n, a, &lda, w, &best, &size MORE(&rbest, &rsize), &ibest, &isize, &info, 1,   \
                           1);                                                                                         \
        size = (int)best;                                                                                              \
        isize = ibest;                                                                                                 \
        rsize = (int)rbest;                                                                                            \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        REAL *rwork = tg_room((size_t)rsize * sizeof *rwork);                                                          \
        int *iwork = tg_room((size_t)isize * sizeof *iwork);                                                           \
        if (work != NULL && rwork != NULL && iwork != NULL)                                                            \
            TG_BLAS(P##EVD##_)(&job, &half, &n, a, &lda, w, work, &size MORE(rwork, &rsize), iwork, &isize, &info, 1,  \
                               1);                                                                                     \
        else                                                                                                           \
            info = -1;                                                                                                 \
        free(work);                                                                                                    \
        free(rwork);                                                                                                   \
        free(iwork);                                                                                                   \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##gesdd(char job, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *vt,            \
                             int ldvt) {                                                                               \
        int info = 0, size = -1;                                                                                       \
        size_t less = (size_t)(m < n ? m : n), more = (size_t)(m < n ? n : m);                                         \
        NUMBER best;                                                                                                   \
        int *iwork = tg_room(less * 8 * sizeof *iwork);                                                                \
        size_t real = sizeof(NUMBER) > sizeof(REAL) ? less * (5 * less + 2 * more + 7) : 0;                            \
        REAL *rwork = tg_room(real * sizeof *rwork);                                                                   \
        NUMBER *work = NULL;                                                                                           \
        if (iwork != NULL && rwork != NULL) {                                                                          \
            TG_BLAS(P##gesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &best, &size MORE(rwork), iwork, &info,   \
                               1);                                                                                     \
            size = (int)best;                                                                                          \
            work = tg_room((size_t)size * sizeof *work);                                                               \
        }                                                                                                              \
        if (work != NULL)                                                                                              \
            TG_BLAS(P##gesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &size MORE(rwork), iwork, &info,    \
                               1);                                                                                     \
        else                                                                                                           \
            info = -1;                                                                                                 \
        free(work);                                                                                                    \
        free(rwork);                                                                                                   \
        free(iwork);                                                                                                   \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##geqrf(int m, int n, void *a, int lda, void *tau) {                                              \
        int info = 0, size = -1;                                                                                       \
        NUMBER best;                                                                                                   \
        TG_BLAS(P##geqrf_)(&m, &n, a, &lda, tau, &best, &size, &info);                                                 \
        size = (int)best;                                                                                              \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        if (work == NULL)                                                                                              \
            return -1;                                                                                                 \
        TG_BLAS(P##geqrf_)(&m, &n, a, &lda, tau, work, &size, &info);                                                  \
        free(work);                                                                                                    \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##gqr(int m, int n, int k, void *a, int lda, void *tau) {                                         \
        int info = 0, size = -1;                                                                                       \
        NUMBER best;                                                                                                   \
        TG_BLAS(P##GQR##_)(&m, &n, &k, a, &lda, tau, &best, &size, &info);                                             \
        size = (int)best;                                                                                              \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        if (work == NULL)                                                                                              \
            return -1;                                                                                                 \
        TG_BLAS(P##GQR##_)(&m, &n, &k, a, &lda, tau, work, &size, &info);                                              \
        free(work);                                                                                                    \
        return info;                                                                                                   \
    }

static void *tg_room(size_t size) {
    void *room = malloc(size == 0 ? 1 : size);
    if (room == NULL)
        tg_trouble = TG_NO_MEMORY;
    return room;
}

#define TG_NOTHING(...)
#define TG_THESE(...) , __VA_ARGS__

TG_LAPACK(double, double, d, syevd, orgqr, TG_NOTHING)
TG_LAPACK(float, float, s, syevd, orgqr, TG_NOTHING)
TG_LAPACK(double _Complex, double, z, heevd, ungqr, TG_THESE)
TG_LAPACK(float _Complex, float, c, heevd, ungqr, TG_THESE)

/* The wrappers that machine code calls: negative numbers are mistakes, positive ones what LAPACK has to say. */

#define TG_OF_KIND(NAME, ...)                                                                                          \
    (kind == 'd'   ? tg_d##NAME(__VA_ARGS__)                                                                           \
     : kind == 's' ? tg_s##NAME(__VA_ARGS__)                                                                           \
     : kind == 'z' ? tg_z##NAME(__VA_ARGS__)                                                                           \
                   : tg_c##NAME(__VA_ARGS__))

int numba_xxgetrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, int *pivots) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(getrf, (int)m, (int)n, a, (int)lda, pivots);
}

int numba_ez_xxgetri(char kind, ptrdiff_t n, void *a, ptrdiff_t lda, int *pivots) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(getri, (int)n, a, (int)lda, pivots);
}

int numba_xgesv(char kind, ptrdiff_t n, ptrdiff_t columns, void *a, ptrdiff_t lda, int *pivots, void *b,
                ptrdiff_t ldb) {
    if (!tg_fits(n) || !tg_fits(columns) || !tg_fits(lda) || !tg_fits(ldb))
        return -1;
    return TG_OF_KIND(gesv, (int)n, (int)columns, a, (int)lda, pivots, b, (int)ldb);
}

int numba_xxpotrf(char kind, char half, ptrdiff_t n, void *a, ptrdiff_t lda) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(potrf, half, (int)n, a, (int)lda);
}

int numba_ez_xxxevd(char kind, char job, char half, ptrdiff_t n, void *a, ptrdiff_t lda, void *w) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(evd, job, half, (int)n, a, (int)lda, w);
}

int numba_ez_gesdd(char kind, char job, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *s, void *u,
                   ptrdiff_t ldu, void *vt, ptrdiff_t ldvt) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda) || !tg_fits(ldu) || !tg_fits(ldvt))
        return -1;
    return TG_OF_KIND(gesdd, job, (int)m, (int)n, a, (int)lda, s, u, (int)ldu, vt, (int)ldvt);
}

int numba_ez_geqrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *tau) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(geqrf, (int)m, (int)n, a, (int)lda, tau);
}

int numba_ez_xxgqr(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *a, ptrdiff_t lda, void *tau) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(k) || !tg_fits(lda))
        return -1;
    return TG_OF_KIND(gqr, (int)m, (int)n, (int)k, a, (int)lda, tau);
}

/* Called after a negative number; the status says what was wrong. */
int numba_fatal_error(void) { return 0; }
