"""Run as a program with a counter of allocations loaded: each allocation of each function of a library fails once.

    LD_PRELOAD=counter.so python allocations.py FOLDER LIBRARY

`FOLDER` holds a library, and in `cases` the arguments and tangents of each function, pickled.  Prints for each function
of the module how many allocations have failed, how many of its pullback, and how often a tape was lost by that.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

COUNTER = """
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static char *first, *last; /* the code that is watched */
static void *blocks[1 << 16];
static long used, left = -1;
long taken, refused;

void watch(char *from, char *to) { first = from; last = to; }
void fail_after(long count) { left = count; refused = 0; }

#define WATCHED (first <= (char *)__builtin_return_address(0) && (char *)__builtin_return_address(0) < last)

static int refuses(void) {
    int now = left == 0;
    left -= left >= 0;
    refused += now;
    return now;
}

static void *known(void *block) {
    if (block != NULL) {
        long k = 0;
        while (k < used && blocks[k] != NULL)
            k++;
        if (k == 1 << 16)
            __builtin_trap();
        used += k == used;
        blocks[k] = block;
        taken++;
    }
    return block;
}

static int forgotten(void *block) {
    for (long k = 0; taken > 0 && block != NULL && k < used; k++)
        if (blocks[k] == block) {
            blocks[k] = NULL;
            taken--;
            used = taken == 0 ? 0 : used;
            return 1;
        }
    return 0;
}

void *malloc(size_t n) {
    if (!WATCHED)
        return __libc_malloc(n);
    return refuses() ? NULL : known(__libc_malloc(n));
}

void *calloc(size_t n, size_t m) {
    if (!WATCHED)
        return __libc_calloc(n, m);
    return refuses() ? NULL : known(__libc_calloc(n, m));
}

void *realloc(void *old, size_t n) {
    if (!WATCHED)
        return __libc_realloc(old, n);
    if (refuses())
        return NULL;
    forgotten(old);
    return known(__libc_realloc(old, n));
}

void free(void *block) {
    forgotten(block);
    __libc_free(block);
}
"""


class Counter:
    """Allocations of a library that this process has loaded."""

    def __init__(self, file: str) -> None:
        self.native = ctypes.CDLL(None)
        self.taken, self.refused = (ctypes.c_long.in_dll(self.native, name) for name in ("taken", "refused"))
        maps = Path("/proc/self/maps").read_text().splitlines()
        (span,) = [line.split()[0] for line in maps if line.endswith(file) and " r-xp " in line]
        self.native.watch(*(ctypes.c_void_p(int(end, 16)) for end in span.split("-")))

    def fails(self, n: int, call: Callable[..., Any], *args: Any) -> tuple[bool, Any]:
        """Call with memory for `n` allocations, and none for the next: whether that failed, and the result."""
        self.native.fail_after(ctypes.c_long(n))
        said, found = None, None
        try:
            found = call(*args)
        except MemoryError as error:
            said = str(error)
        refused = self.refused.value
        self.native.fail_after(ctypes.c_long(-1))
        if said is None:
            assert refused == 0, "an allocation failed, and nobody noticed"
        else:
            assert refused == 1, "an error, and there was memory"
            assert re.match("out of memory|Allocation failed|cannot (allocate|resize) list", said), said
        return said is not None, found

    def nothing_is_left(self) -> None:
        """All that the library has taken is given back."""
        gc.collect()
        assert self.taken.value == 0, f"{self.taken.value} blocks are left"


def flat(value: Any) -> list[bytes]:
    """All numbers of a structure, bit for bit."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return (
        [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [np.asarray(value).tobytes()]
    )


def check_call(counter: Counter, call: Callable[[], Any]) -> int:
    """How many allocations have failed."""
    expected = flat(call())
    counter.nothing_is_left()
    n = 0
    while True:
        failed, found = counter.fails(n, call)
        counter.nothing_is_left()
        if not failed:
            assert flat(found) == expected
            return n
        n += 1


def check_pair(counter: Counter, record: Callable[[], Any]) -> tuple[int, int, int]:
    """Failures of the forward sweep, of the backward sweep, and tapes that were lost by these."""
    value, pullback = record()
    expected, right = flat(value), flat(pullback(value))
    del pullback
    counter.nothing_is_left()
    records = pullbacks = lost = 0
    while True:
        failed, found = counter.fails(records, record)
        if not failed:
            break
        counter.nothing_is_left()
        records += 1
    again, pullback = found
    del found
    assert flat(again) == expected
    while True:
        failed, bars = counter.fails(pullbacks, pullback, value)
        if not failed:
            break
        pullbacks += 1
        try:
            once_more = flat(pullback(value))
        except ValueError as error:
            once_more = str(error)
        if once_more != right:  # what the tape holds is no more what it was, and the library knows
            assert once_more == "a call with this tape has failed halfway, so it cannot be used again"
            lost += 1
            del pullback
            counter.nothing_is_left()
            _, pullback = record()
    assert flat(bars) == right
    del pullback
    counter.nothing_is_left()
    return records, pullbacks, lost


def main(folder: str, library: str) -> None:
    cases = pickle.loads(Path(folder, "cases").read_bytes())
    sys.path.insert(0, folder)
    module = __import__(library)
    counter = Counter(f"/lib{library}.so")
    for function, (args, along) in cases.items():
        for mode in ("", "_value_and_grad", "_jvp", "_hvp", "_vjp"):
            call = getattr(module, function + mode, None)
            if call is None:
                continue
            given = (args, along) if mode in ("_jvp", "_hvp") else args

            def bound(call: Any = call, given: Any = given) -> Any:
                return call(*given)

            found = check_pair(counter, bound) if mode == "_vjp" else (check_call(counter, bound), 0, 0)
            print(function + mode, *found)


if __name__ == "__main__":
    main(*sys.argv[1:])
