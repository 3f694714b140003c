"""What a caller in C may do wrong, and threads: a status for each, under valgrind."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tapegen as tg
from tapegen.aot import build
from tests.libraries import run_program

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static double a[16], x[8], value, a_bar[16], x_bar[4];

#define IS(wanted, call) if ((status = (call)) != (wanted)) return printf("line %d: %d\\n", __LINE__, status), 1
#define RAISES(kind, call) if (strncmp(net_strerror(call), kind, strlen(kind)) != 0) return __LINE__

static void *work(void *tape) {
    double v, p[16], q[4];
    net_f_tape *own = NULL;
    long wrong = 0;
    for (int k = 0; k < 50; k++) {
        wrong |= net_f_record(a, 4, 4, 4, 1, x, 4, 2, 3, &v, &own) || v != value;
        wrong |= net_f_record(a, 4, 4, 4, 1, x, 3, 2, 3, &v, &own) == NET_OK;
        wrong |= net_f_pullback(own, 1.0, p, q) || memcmp(p, a_bar, sizeof p) || memcmp(q, x_bar, sizeof q);
        net_f_tape_free(own);
    }
    wrong |= net_f_pullback(tape, 1.0, p, q) || memcmp(p, a_bar, sizeof p); /* of another thread */
    net_f_tape_free(tape);
    return (void *)wrong;
}

int main(void) {
    double v, p[16], q[4], turned[4], across[16];
    int status;
    net_f_tape *tape = (net_f_tape *)8;
    for (int i = 0; i < 16; i++)
        a[i] = 0.1 * (i % 5) - 0.2;
    for (int i = 0; i < 8; i++)
        x[i] = i % 2 ? 99.0 : 0.3 * (i + 1);
    IS(NET_OK, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, &value, a_bar, x_bar));
    for (int i = 0; i < 4; i++)
        turned[3 - i] = x[2 * i];
    IS(NET_OK, net_f_grad(a, 4, 4, 4, 1, turned + 3, 4, -1, 3, &v, p, q));
    if (v != value || memcmp(p, a_bar, sizeof p) || memcmp(q, x_bar, sizeof q))
        return 2;
    for (int i = 0; i < 16; i++)
        across[i % 4 * 4 + i / 4] = a[i];
    IS(NET_OK, net_f_grad(across, 4, 4, 1, 4, x, 4, 2, 3, &v, p, q));
    if (v != value || memcmp(p, a_bar, sizeof p) || memcmp(q, x_bar, sizeof q))
        return 3;
    IS(NET_OK, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, NULL, NULL, NULL));
    IS(NET_OK, net_f_grad(a, 0, 0, 4, 1, NULL, 0, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(NULL, 4, 4, 4, 1, x, 4, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 4, 4, 4, 1, NULL, 4, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, -4, 4, 4, 1, x, 4, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 4, 4, 4, 1, x, -1, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_record(a, 4, 4, 4, 1, x, 4, 2, 3, &v, NULL));
    IS(NET_SIZE, net_f_pullback(NULL, 1.0, p, q));
    IS(NET_ALIAS, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, &v, a, q));
    IS(NET_ALIAS, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, &v, p, p));
    IS(NET_ALIAS, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, p, p, q));
    IS(NET_ALIAS, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, x, p, q));
    double *one = malloc(sizeof *one); /* the gradient would be written behind it */
    IS(NET_ALIAS, net_f_grad(a, 4, 4, 4, 1, x, 4, 2, 3, one, one, q));
    free(one);
    RAISES("ValueError", net_f_grad(a, 4, 4, 4, 1, x, 3, 2, 3, &v, p, q));
    RAISES("ValueError", net_f_grad(a, 4, 4, 4, 1, x, 4, 2, INT64_MAX, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, (int64_t)1 << 60, 4, 4, 1, x, 4, 2, 3, &v, p, q)); /* more than addresses */
    IS(NET_SIZE, net_f_grad(a, 4, 4, 4, 1, x, ((int64_t)1 << 61) + 4, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, INT64_MAX, INT64_MAX, 4, 1, x, INT64_MAX, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 4, 4, (int64_t)1 << 60, 1, x, 4, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 4, 4, 4, 1, x, 4, INT64_MAX, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 4, 4, 4, 1, x, 4, INT64_MIN, 3, &v, p, q));
    IS(NET_SIZE, net_f_grad(a, 0, INT64_MAX, 4, INT64_MAX, x, 0, 2, 3, &v, p, q));
    IS(NET_SIZE, net_f_record(a, 4, 4, 4, INT64_MIN, x, 4, 2, 3, &v, &tape));
    RAISES("ValueError", net_f_record(a, 4, 4, 4, 1, x, 3, 2, 3, &v, &tape));
    RAISES("unknown", -5);
    if (tape != (net_f_tape *)8)
        return 4;
    net_f_tape_free(NULL);
    IS(NET_OK, net_f_record(a, 4, 4, 4, 1, x, 4, 2, 3, NULL, &tape));
    IS(NET_OK, net_f_pullback(tape, 1.0, NULL, NULL));
    IS(NET_ALIAS, net_f_pullback(tape, 1.0, p, p));
    IS(NET_OK, net_f_pullback(tape, 1.0, p, q));
    if (memcmp(p, a_bar, sizeof p) || memcmp(q, x_bar, sizeof q))
        return 5;
    net_f_tape_free(tape);
    pthread_t threads[4];
    long wrong = 0;
    for (int k = 0; k < 4; k++) {
        IS(NET_OK, net_f_record(a, 4, 4, 4, 1, x, 4, 2, 3, &v, &tape));
        pthread_create(&threads[k], NULL, work, tape);
    }
    for (int k = 0; k < 4; k++) {
        void *found;
        pthread_join(threads[k], &found);
        wrong |= (long)found;
    }
    return wrong ? 6 : 0;
}
"""


def f(a, x, n):
    y = x.copy()
    for _ in range(n):
        y = np.sin(a @ y) * x
    return np.sum(y * y)


def test_a_status_for_each_mistake(tmp_path: Path) -> None:
    function = tg.differentiable(f, wrt=("a", "x"))
    a, x = np.ones((4, 8))[:, ::2], np.ones(8)[::2]
    build(function, a, x, 3, directory=tmp_path, name="net", modes=["grad", "split"])
    run_program(tmp_path, PROGRAM, "cc", "-std=c99", "-pthread", suffix=".c")
