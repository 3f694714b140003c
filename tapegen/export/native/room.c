/* How much memory a call may take: half of what is free. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Linux's own, whose headers define names that a library may have (F_OK). */
extern int open(const char *file, int flags, ...);
extern ptrdiff_t read(int handle, void *to, size_t size);
extern int close(int handle);

enum {
    TG_MEASURED = 1 << 24,     /* bytes of a tape from which it asks */
    TG_READ_ALONE = 02000000, /* the handle is closed where another program is started */
};

static _Thread_local int64_t tg_allowed = -1, tg_held; /* what the tapes of a call may take, and what they take */

/* The first number after a word of a file, or its first number; -1 if there is none.  Nothing is allocated. */
static int64_t tg_number(const char *file, const char *word) {
    char text[4096];
    int handle = open(file, TG_READ_ALONE);
    if (handle < 0)
        return -1;
    ptrdiff_t size = read(handle, text, sizeof text - 1);
    close(handle);
    if (size <= 0)
        return -1;
    text[size] = 0;
    const char *start = strstr(text, word);
    if (start == NULL)
        return -1;
    start += strlen(word);
    start += strspn(start, " \t:");
    return *start < '0' || *start > '9' ? -1 : strtoll(start, NULL, 10);
}

static int64_t tg_available(void) {
    int64_t found = tg_number("/proc/meminfo", "MemAvailable");
    found = found < 0 ? INT64_MAX : found * 1024;
    int64_t limit = tg_number("/sys/fs/cgroup/memory.max", "");
    int64_t used = tg_number("/sys/fs/cgroup/memory.current", "");
    return limit < 0 || used < 0 || limit - used > found ? found : limit < used ? 0 : limit - used;
}

/* Whether Ctrl-C was pressed, asked after so many iterations of a loop: that is the concern of the program. */
int32_t tapegen_interrupted(int64_t *iterations) {
    *iterations = INT64_MAX;
    return 0;
}

/* New tapes begin. */
void tapegen_begin(void) {
    tg_allowed = -1;
    tg_held = 0;
}

/* Whether there is room for an array of this size, which may be a tape of so many items that has become twice as long. */
int32_t tapegen_room(int64_t size, int32_t is_tape, int64_t items) {
    (void)items;
    if (!is_tape)
        return size <= tg_available() / 2;
    if (tg_allowed < 0 && size >= TG_MEASURED)
        tg_allowed = tg_available() / 2;
    if (tg_allowed >= 0 && tg_held + size > tg_allowed)
        return 0;
    tg_held += size / 2;
    return 1;
}
