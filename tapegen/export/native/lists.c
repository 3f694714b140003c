/* Lists on a tape: a pullback takes items off a copy, so that the tape serves the next one as well.
 *
 * The block of a list holds the number of items, the room for items, a mark, and then the items; those that are arrays
 * begin with their owners, in `struct tg_item`.
 */

struct tg_list {
    void *owner, *parent;
};

struct tg_item {
    struct tg_block *owner;
    void *parent;
    int64_t items, item_size;
    char *data;
    int64_t axes[]; /* sizes, then strides */
};

static int64_t tg_length(const struct tg_list *list) { return *(int64_t *)((struct tg_block *)list->owner)->data; }

/* An item that is an array; all have the same rank. */
static struct tg_item *tg_item(const struct tg_list *list, int rank, int64_t k) {
    size_t size = sizeof(struct tg_item) + 2 * (size_t)rank * sizeof(int64_t);
    return (struct tg_item *)((char *)((struct tg_block *)list->owner)->data + 3 * sizeof(int64_t) + (size_t)k * size);
}

/* Make the items fit for a tape, as `tg_settle`. */
__attribute__((unused)) static int tg_settle_items(struct tg_list *list, int rank, int order, int written) {
    int status = TG_OK;
    for (int64_t k = 0; status == TG_OK && k < tg_length(list); k++) {
        struct tg_item *item = tg_item(list, rank, k);
        status = tg_settle((void **)&item->owner, &item->data, item->item_size, rank, item->axes, item->axes + rank,
                           order, written);
    }
    return status;
}

/* From now on the list belongs to no thread, and neither do its items if they are arrays (of this rank, else -1). */
static void tg_unlist_items(struct tg_list *list, int rank) {
    tg_unlist(list->owner);
    for (int64_t k = 0; rank >= 0 && k < tg_length(list); k++)
        tg_unlist(tg_item(list, rank, k)->owner);
}

/* Remember how often the items are referred to between calls, or have it so again. */
__attribute__((unused)) static void tg_keep_items(struct tg_list *list, int rank, int again) {
    for (int64_t k = 0; k < tg_length(list); k++) {
        struct tg_block *block = tg_item(list, rank, k)->owner;
        if (again)
            atomic_store(&block->references, block->kept);
        else
            block->kept = atomic_load(&block->references);
    }
}

/* A list with the same items, whose first one has an offset in its block; `rank` as above. */
static int tg_copy_list(struct tg_list *to, const struct tg_list *from, size_t offset, size_t item_size, int rank) {
    const struct tg_block *old = from->owner;
    size_t size = offset + (size_t)tg_length(from) * item_size;
    struct tg_block *made = NRT_MemInfo_new_varsize_dtor(size, (tg_destructor)old->destructor_info);
    if (made == NULL)
        return 0;
    memcpy(made->data, old->data, size);
    ((int64_t *)made->data)[1] = tg_length(from);
    to->owner = made;
    to->parent = NULL;
    for (int64_t k = 0; rank >= 0 && k < tg_length(to); k++)
        atomic_fetch_add(&tg_item(to, rank, k)->owner->references, 1);
    return 1;
}
