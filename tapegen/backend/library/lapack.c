/* Matrix factorisations by the LAPACK of a library, with its interface for Fortran: characters have hidden lengths. */

#include <limits.h>

#define TG_LAPACK(NUMBER, P)                                                                                           \
    void TG_BLAS(P##getrf_)(int *m, int *n, NUMBER *a, int *lda, int *pivots, int *info);                              \
    void TG_BLAS(P##getri_)(int *n, NUMBER *a, int *lda, int *pivots, NUMBER *work, int *size, int *info);             \
    void TG_BLAS(P##gesv_)(int *n, int *columns, NUMBER *a, int *lda, int *pivots, NUMBER *b, int *ldb, int *info);    \
    void TG_BLAS(P##potrf_)(char *half, int *n, NUMBER *a, int *lda, int *info, size_t);                               \
    void TG_BLAS(P##syevd_)(char *job, char *half, int *n, NUMBER *a, int *lda, NUMBER *w, NUMBER *work, int *size,    \
                            int *iwork, int *isize, int *info, size_t, size_t);                                        \
    void TG_BLAS(P##gesdd_)(char *job, int *m, int *n, NUMBER *a, int *lda, NUMBER *s, NUMBER *u, int *ldu,            \
                            NUMBER *vt, int *ldvt, NUMBER *work, int *size, int *iwork, int *info, size_t);            \
    void TG_BLAS(P##geqrf_)(int *m, int *n, NUMBER *a, int *lda, NUMBER *tau, NUMBER *work, int *size, int *info);     \
    void TG_BLAS(P##orgqr_)(int *m, int *n, int *k, NUMBER *a, int *lda, NUMBER *tau, NUMBER *work, int *size,         \
                            int *info);                                                                                \
                                                                                                                       \
    static int tg_##P##getri(int n, NUMBER *a, int lda, int *pivots) {                                                 \
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
    static int tg_##P##syevd(char job, char half, int n, NUMBER *a, int lda, NUMBER *w) {                              \
        int info = 0, size = -1, isize = -1, ibest;                                                                    \
        NUMBER best;                                                                                                   \
        TG_BLAS(P##syevd_)(&job, &half, &n, a, &lda, w, &best, &size, &ibest, &isize, &info, 1, 1);                    \
        size = (int)best;                                                                                              \
        isize = ibest;                                                                                                 \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        int *iwork = tg_room((size_t)isize * sizeof *iwork);                                                           \
        if (work != NULL && iwork != NULL)                                                                             \
            TG_BLAS(P##syevd_)(&job, &half, &n, a, &lda, w, work, &size, iwork, &isize, &info, 1, 1);                  \
        else                                                                                                           \
            info = -1;                                                                                                 \
        free(work);                                                                                                    \
        free(iwork);                                                                                                   \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##gesdd(char job, int m, int n, NUMBER *a, int lda, NUMBER *s, NUMBER *u, int ldu, NUMBER *vt,    \
                             int ldvt) {                                                                               \
        int info = 0, size = -1;                                                                                       \
        NUMBER best;                                                                                                   \
        int *iwork = tg_room((size_t)(m < n ? m : n) * 8 * sizeof *iwork);                                             \
        if (iwork == NULL)                                                                                             \
            return -1;                                                                                                 \
        TG_BLAS(P##gesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &best, &size, iwork, &info, 1);               \
        size = (int)best;                                                                                              \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        if (work != NULL)                                                                                              \
            TG_BLAS(P##gesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &size, iwork, &info, 1);            \
        else                                                                                                           \
            info = -1;                                                                                                 \
        free(work);                                                                                                    \
        free(iwork);                                                                                                   \
        return info;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    static int tg_##P##geqrf(int m, int n, NUMBER *a, int lda, NUMBER *tau) {                                          \
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
    static int tg_##P##orgqr(int m, int n, int k, NUMBER *a, int lda, NUMBER *tau) {                                   \
        int info = 0, size = -1;                                                                                       \
        NUMBER best;                                                                                                   \
        TG_BLAS(P##orgqr_)(&m, &n, &k, a, &lda, tau, &best, &size, &info);                                             \
        size = (int)best;                                                                                              \
        NUMBER *work = tg_room((size_t)size * sizeof *work);                                                           \
        if (work == NULL)                                                                                              \
            return -1;                                                                                                 \
        TG_BLAS(P##orgqr_)(&m, &n, &k, a, &lda, tau, work, &size, &info);                                              \
        free(work);                                                                                                    \
        return info;                                                                                                   \
    }

static void *tg_room(size_t size) {
    void *room = malloc(size == 0 ? 1 : size);
    if (room == NULL)
        tg_trouble = TG_NO_MEMORY;
    return room;
}

TG_LAPACK(double, d)
TG_LAPACK(float, s)

/* The wrappers that machine code calls: negative numbers are mistakes, positive ones what LAPACK has to say. */

int numba_xxgetrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, int *pivots) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    int rows = (int)m, columns = (int)n, step = (int)lda, info = 0;
    if (kind == 'd')
        TG_BLAS(dgetrf_)(&rows, &columns, a, &step, pivots, &info);
    else
        TG_BLAS(sgetrf_)(&rows, &columns, a, &step, pivots, &info);
    return info;
}

int numba_ez_xxgetri(char kind, ptrdiff_t n, void *a, ptrdiff_t lda, int *pivots) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    return kind == 'd' ? tg_dgetri((int)n, a, (int)lda, pivots) : tg_sgetri((int)n, a, (int)lda, pivots);
}

int numba_xgesv(char kind, ptrdiff_t n, ptrdiff_t columns, void *a, ptrdiff_t lda, int *pivots, void *b,
                ptrdiff_t ldb) {
    if (!tg_fits(n) || !tg_fits(columns) || !tg_fits(lda) || !tg_fits(ldb))
        return -1;
    int rows = (int)n, given = (int)columns, step_a = (int)lda, step_b = (int)ldb, info = 0;
    if (kind == 'd')
        TG_BLAS(dgesv_)(&rows, &given, a, &step_a, pivots, b, &step_b, &info);
    else
        TG_BLAS(sgesv_)(&rows, &given, a, &step_a, pivots, b, &step_b, &info);
    return info;
}

int numba_xxpotrf(char kind, char half, ptrdiff_t n, void *a, ptrdiff_t lda) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    int rows = (int)n, step = (int)lda, info = 0;
    if (kind == 'd')
        TG_BLAS(dpotrf_)(&half, &rows, a, &step, &info, 1);
    else
        TG_BLAS(spotrf_)(&half, &rows, a, &step, &info, 1);
    return info;
}

int numba_ez_xxxevd(char kind, char job, char half, ptrdiff_t n, void *a, ptrdiff_t lda, void *w) {
    if (!tg_fits(n) || !tg_fits(lda))
        return -1;
    return kind == 'd' ? tg_dsyevd(job, half, (int)n, a, (int)lda, w) : tg_ssyevd(job, half, (int)n, a, (int)lda, w);
}

int numba_ez_gesdd(char kind, char job, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *s, void *u,
                   ptrdiff_t ldu, void *vt, ptrdiff_t ldvt) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda) || !tg_fits(ldu) || !tg_fits(ldvt))
        return -1;
    if (kind == 'd')
        return tg_dgesdd(job, (int)m, (int)n, a, (int)lda, s, u, (int)ldu, vt, (int)ldvt);
    return tg_sgesdd(job, (int)m, (int)n, a, (int)lda, s, u, (int)ldu, vt, (int)ldvt);
}

int numba_ez_geqrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *tau) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(lda))
        return -1;
    return kind == 'd' ? tg_dgeqrf((int)m, (int)n, a, (int)lda, tau) : tg_sgeqrf((int)m, (int)n, a, (int)lda, tau);
}

int numba_ez_xxgqr(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *a, ptrdiff_t lda, void *tau) {
    if (!tg_fits(m) || !tg_fits(n) || !tg_fits(k) || !tg_fits(lda))
        return -1;
    return kind == 'd' ? tg_dorgqr((int)m, (int)n, (int)k, a, (int)lda, tau)
                       : tg_sorgqr((int)m, (int)n, (int)k, a, (int)lda, tau);
}

/* Called after a negative number; the status says what was wrong. */
int numba_fatal_error(void) { return 0; }
