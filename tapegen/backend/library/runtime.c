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

static struct tg_block *tg_block_of(size_t room) {
    struct tg_block *block = room > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + room);
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

/* Python's lock: there is none to take.  The products below never fail, so nothing is fatal. */

int numba_gil_ensure(void *state) {
    (void)state;
    return 0;
}

void Py_FatalError(const char *text) { (void)text; }
