/* What the machine code of generated functions asks of its surroundings: memory and matrix products.
 *
 * Each block of memory is counted, and known to the thread that runs a call until the call has ended: where a call
 * fails, what it had allocated is freed.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*tg_destructor)(void *data, size_t size, void *info);

/* The order of the first six members is that of numba's runtime: machine code reads `references` and `data`. */
struct tg_block {
    _Atomic size_t references;
    tg_destructor destructor;
    void *destructor_info;
    void *data;
    size_t size;
    void *allocator;
    struct tg_block *before, *after;
    bool listed;
    size_t kept; /* references between calls, of an item of a list on a tape */
};

struct tg_complex128 {
    double re, im;
};

struct tg_complex64 {
    float re, im;
};

static _Thread_local struct tg_block *tg_live;

static void tg_list(struct tg_block *block) {
    block->before = NULL;
    block->after = tg_live;
    block->listed = true;
    if (tg_live != NULL)
        tg_live->before = block;
    tg_live = block;
}

/* From now on the block belongs to no thread. */
static void tg_unlist(struct tg_block *block) {
    if (!block->listed)
        return;
    if (block->before != NULL)
        block->before->after = block->after;
    else
        tg_live = block->after;
    if (block->after != NULL)
        block->after->before = block->before;
    block->listed = false;
}

void NRT_MemInfo_call_dtor(struct tg_block *block) {
    tg_unlist(block);
    if (block->destructor != NULL)
        block->destructor(block->data, block->size, block->destructor_info);
    free(block);
}

static void tg_release(void *owner) {
    struct tg_block *block = owner;
    if (block != NULL && atomic_fetch_sub(&block->references, 1) == 1)
        NRT_MemInfo_call_dtor(block);
}

/* Free what a failed call has left. */
static void tg_abandon(void) {
    while (tg_live != NULL) {
        struct tg_block *block = tg_live;
        tg_live = block->after;
        if (block->destructor != NULL)
            block->destructor(block->data, block->size, NULL); /* what its items own is in this list too */
        free(block);
    }
}

/* No object is larger than the differences of addresses. */
static struct tg_block *tg_block_of(size_t room) {
    struct tg_block *block = room > PTRDIFF_MAX - sizeof *block ? NULL : malloc(sizeof *block + room);
    if (block == NULL)
        return NULL;
    memset(block, 0, sizeof *block);
    atomic_init(&block->references, 1);
    tg_list(block);
    return block;
}

void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align) {
    struct tg_block *block = size > SIZE_MAX - align ? NULL : tg_block_of(size + align);
    if (block == NULL)
        return NULL;
    uintptr_t address = (uintptr_t)(block + 1);
    block->data = (void *)((address + align - 1) / align * align);
    block->size = size;
    return block;
}

void *tapegen_new_memory(size_t size, uint32_t align) { return NRT_MemInfo_alloc_aligned(size, align); }

void *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

/* Memory without an owner: what an exception is made of. */

void *NRT_Allocate(size_t size) {
    struct tg_block *block = tg_block_of(size);
    return block == NULL ? NULL : block + 1;
}

void NRT_Free(void *data) {
    if (data == NULL)
        return;
    struct tg_block *block = (struct tg_block *)data - 1;
    tg_unlist(block);
    free(block);
}

/* Lists: their items lie in a second block of memory that grows. */

static void tg_free_items(void *data, size_t size, void *info) {
    if (info != NULL)
        ((tg_destructor)info)(data, size, NULL);
    free(data);
}

void *NRT_MemInfo_new_varsize_dtor(size_t size, tg_destructor destructor) {
    struct tg_block *block = tg_block_of(0);
    if (block == NULL)
        return NULL;
    block->data = malloc(size);
    block->size = size;
    if (block->data == NULL) {
        NRT_MemInfo_call_dtor(block);
        return NULL;
    }
    block->destructor = tg_free_items;
    block->destructor_info = (void *)destructor;
    return block;
}

void *NRT_MemInfo_new_varsize(size_t size) { return NRT_MemInfo_new_varsize_dtor(size, NULL); }

void *NRT_MemInfo_varsize_alloc(struct tg_block *block, size_t size) {
    block->data = malloc(size);
    block->size = block->data == NULL ? 0 : size;
    return block->data;
}

void *NRT_MemInfo_varsize_realloc(struct tg_block *block, size_t size) {
    void *data = realloc(block->data, size);
    if (data == NULL)
        return NULL;
    block->data = data;
    block->size = size;
    return data;
}

void NRT_MemInfo_varsize_free(struct tg_block *block, void *data) {
    free(data);
    if (data == block->data)
        block->data = NULL;
}

/* Some statuses of the interface; the last one is what products and factorisations of matrices could not do. */

enum { TG_OK = 0, TG_NO_MEMORY = 1, TG_LARGE = 6, TG_SPOILT = 7 };

static _Thread_local int tg_trouble;

/* The status of what has happened since the last question. */
static int tg_noticed(void) {
    int status = tg_trouble;
    tg_trouble = 0;
    return status;
}

/* Python's lock: there is none to take.  What goes wrong below is noticed by its status, so nothing is fatal. */

int numba_gil_ensure(void *state) {
    (void)state;
    return 0;
}

void Py_FatalError(const char *text) { (void)text; }

/* What would make an exception of Python from one whose text is put together as it is raised: never called, as the
 * status says its class. */

void *PyExc_RuntimeError;

void PyErr_SetString(void *kind, const char *text) {
    (void)kind;
    (void)text;
}

ptrdiff_t PyObject_Hash(void *object) {
    (void)object;
    return -1;
}

void *PyTuple_Pack(ptrdiff_t count, ...) {
    (void)count;
    return NULL;
}

void *PyUnicode_FromKindAndData(int kind, const void *data, ptrdiff_t size) {
    (void)kind;
    (void)data;
    (void)size;
    return NULL;
}

/* Strides (in bytes) for a reshaped view in C order; 0 if there are none.  The number of items is the same.
 *
 * Old and new axes are taken in the smallest groups of equal size; a group is a view if its old axes have a common
 * stride.
 */
int numba_attempt_nocopy_reshape(ptrdiff_t old_rank, const ptrdiff_t *old_shape, const ptrdiff_t *old_strides,
                                 ptrdiff_t rank, const ptrdiff_t *shape, ptrdiff_t *strides, ptrdiff_t item_size,
                                 int fortran) {
    if (fortran)
        return 0;
    ptrdiff_t old = 0, next = 0, step = item_size;
    for (ptrdiff_t k = rank; k-- > 0; step *= shape[k])
        strides[k] = step;
    if (step == 0)
        return 1;
    while (next < rank) {
        ptrdiff_t first = next, items = shape[next++];
        if (items == 1)
            continue;
        while (old_shape[old] == 1)
            old++;
        ptrdiff_t old_items = old_shape[old], last = old;
        while (items != old_items)
            if (items < old_items)
                items *= shape[next++];
            else {
                ptrdiff_t outer = last++;
                while (old_shape[last] == 1)
                    last++;
                if (old_strides[outer] != old_shape[last] * old_strides[last])
                    return 0;
                old_items *= old_shape[last];
            }
        step = old_strides[last];
        for (ptrdiff_t k = next; k-- > first; step *= shape[k])
            strides[k] = step;
        old = last + 1;
    }
    (void)old_rank;
    return 1;
}
