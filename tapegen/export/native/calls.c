/* What the functions of the interface share. */

/* The status for what a native function has raised. */
static int tg_failed(void *raised) {
    int32_t number = tg_noticed();
    if (number == 0 && raised == NULL)
        number = TG_NO_MEMORY;
    else if (number == 0)
        memcpy(&number, *(void **)raised, sizeof number);
    tg_abandon();
    return number;
}

/* Copy an array of any strides (in bytes) to contiguous memory in C order. */
static void tg_copy(char *to, const char *from, int64_t item_size, int rank, const int64_t *shape,
                    const int64_t *strides) {
    int64_t items = 1, dense = item_size;
    int contiguous = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        contiguous = contiguous && (shape[axis] == 1 || strides[axis] == dense);
        dense *= shape[axis];
        items *= shape[axis];
    }
    if (items == 0)
        return;
    if (contiguous) {
        memcpy(to, from, (size_t)(items * item_size));
        return;
    }
    int64_t step = items / shape[0] * item_size;
    for (int64_t i = 0; i < shape[0]; i++)
        tg_copy(to + i * step, from + i * strides[0], item_size, rank - 1, shape + 1, strides + 1);
}

/* Give an array memory of its own, contiguous in the order of C or Fortran; whether there was any. */
__attribute__((unused)) static int tg_own(void **owner, char **data, int64_t item_size, int rank, int64_t *shape,
                                          int64_t *strides, int fortran) {
    int64_t reversed[64], turned[64]; /* no array of NumPy has more axes */
    size_t size = (size_t)item_size;
    for (int axis = 0; axis < rank; axis++) {
        size *= (size_t)shape[axis];
        reversed[axis] = shape[rank - 1 - axis];
        turned[axis] = strides[rank - 1 - axis];
    }
    struct tg_block *block = NRT_MemInfo_alloc_aligned(size, 32);
    if (block == NULL)
        return 0;
    tg_copy(block->data, *data, item_size, rank, fortran ? reversed : shape, fortran ? turned : strides);
    int64_t dense = item_size;
    for (int k = 0; k < rank; k++) {
        int axis = fortran ? k : rank - 1 - k;
        strides[axis] = dense;
        dense *= shape[axis];
    }
    *owner = block;
    *data = block->data;
    return 1;
}

/* Whether a native function that takes arrays in the order of C or Fortran may take this one. */
__attribute__((unused)) static int tg_in_order(int64_t item_size, int rank, const int64_t *shape,
                                               const int64_t *strides, int fortran) {
    int64_t dense = item_size;
    int right = 1;
    for (int k = 0; k < rank; k++) {
        int axis = fortran ? k : rank - 1 - k;
        if (shape[axis] == 0)
            return 1;
        right = right && (shape[axis] == 1 || strides[axis] == dense);
        dense *= shape[axis];
    }
    return right;
}

enum { TG_ORDER_C, TG_ORDER_F, TG_ORDER_ANY };

/* Make an array fit for a tape: in memory that no caller has, and in an order; the status.
 *
 * Where `written` says that a pullback writes into what the tape holds, an array that is held twice must stay one.
 */
__attribute__((unused)) static int tg_settle(void **owner, char **data, int64_t item_size, int rank, int64_t *shape,
                                             int64_t *strides, int order, int written) {
    struct tg_block *old = *owner;
    if (old != NULL && (order == TG_ORDER_ANY || tg_in_order(item_size, rank, shape, strides, order == TG_ORDER_F)))
        return TG_OK;
    if (old != NULL && written && atomic_load(&old->references) > 1)
        return TG_SPOILT;
    if (!tg_own(owner, data, item_size, rank, shape, strides, order == TG_ORDER_F))
        return TG_NO_MEMORY;
    tg_release(old);
    return TG_OK;
}

/* Whether there is memory for an array: no size is negative, an array with items has an address, and neither its bytes
 * nor the way from its first to its last one are more than addresses can tell apart.  Strides count items; there are
 * none of an array that is contiguous.
 */
__attribute__((unused)) static int tg_holds(const char *data, size_t item_size, int rank, const int64_t *shape,
                                            const int64_t *strides) {
    int64_t bytes = (int64_t)item_size, before = 0, behind = bytes - 1, step, reach;
    int is_empty = 0;
    for (int axis = 0; axis < rank; axis++) {
        if (shape[axis] < 0 || (shape[axis] > 0 && __builtin_mul_overflow(bytes, shape[axis], &bytes)))
            return 0;
        is_empty |= shape[axis] == 0;
    }
    if (is_empty)
        return 1;
    if (strides == NULL)
        behind = bytes - 1;
    for (int axis = 0; axis < rank && strides != NULL; axis++) {
        if (shape[axis] == 1)
            continue; /* its stride may be anything */
        if (__builtin_mul_overflow(strides[axis], (int64_t)item_size, &step) ||
            __builtin_mul_overflow(step, shape[axis] - 1, &reach) ||
            (reach < 0 ? __builtin_add_overflow(before, reach, &before)
                       : __builtin_add_overflow(behind, reach, &behind)))
            return 0;
    }
    uintptr_t first = (uintptr_t)data;
    return first != 0 && first <= INTPTR_MAX && behind <= INTPTR_MAX - (int64_t)first && before >= -(int64_t)first;
}

/* First and last byte of an array that memory holds. */
static void tg_bounds(const char *data, size_t item_size, int rank, const int64_t *shape, const int64_t *strides,
                      uintptr_t *first, uintptr_t *last) {
    *first = *last = (uintptr_t)data;
    for (int axis = 0; axis < rank; axis++) {
        if (shape[axis] == 1)
            continue; /* its stride may be anything */
        int64_t reach = (shape[axis] - 1) * strides[axis] * (int64_t)item_size;
        if (reach < 0)
            *first -= (uintptr_t)-reach;
        else
            *last += (uintptr_t)reach;
    }
    *last += item_size - 1;
}

__attribute__((unused)) static int tg_overlap(const char *a, size_t a_size, int a_rank, const int64_t *a_shape,
                                              const int64_t *a_strides, const char *b, size_t b_size, int b_rank,
                                              const int64_t *b_shape, const int64_t *b_strides) {
    uintptr_t a_first, a_last, b_first, b_last;
    for (int axis = 0; axis < a_rank; axis++)
        if (a_shape[axis] == 0)
            return 0;
    for (int axis = 0; axis < b_rank; axis++)
        if (b_shape[axis] == 0)
            return 0;
    tg_bounds(a, a_size, a_rank, a_shape, a_strides, &a_first, &a_last);
    tg_bounds(b, b_size, b_rank, b_shape, b_strides, &b_first, &b_last);
    return a_first <= b_last && b_first <= a_last;
}
