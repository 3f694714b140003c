"""Views of an array that a loop replaces while the view is alive: every view x way to replace it x use of the view."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tests.judged import right
from tests.sources import define

VIEWS = {
    "reversed": "w[::-1]",
    "raveled": "w.ravel()",
    "reshaped": "w.reshape(3)",
    "transposed": "w.T",
    "row": "w[None][0]",
    "flipped": "np.flip(w)",
}

REPLACED = {
    "continue": """
        v = {view}
        w = v
        if v[0] > 0.85:
            {use}
            continue
        x = x * 2
        {use}
    """,
    "other": """
        v = {view}
        if v[0] > 0.85:
            {use}
            w = v
        else:
            w = v * x
            {use}
    """,
    "one side": """
        v = {view}
        if v[0] > 0.85:
            w = w * x
            {use}
        x = x * v[1]
    """,
    "loop": """
        v = {view}
        for j in range(2):
            if v[j] > 0.85:
                w = v
                {use}
                x = x * w[0]
    """,
    "break": """
        v = {view}
        if v[0] > 0.85:
            w = v
            {use}
            break
        w = v[::-1]
        x = x * v[2]
    """,
    "twice": """
        v = {view}
        if v[0] > 0.85:
            w = v
            if x > 2.0:
                w = v[::-1]
                x = x * w[0]
                {use}
        else:
            w = w * 0.5
    """,
}

USES = {
    "nothing": "pass",
    "read": "x = x + v @ v",
    "element": "x = x * v[1]",
    "stored": "v[1] = v[1] * x",
    "scaled": "v *= 1.5",
    "stored behind": "w[2] = v[0] * x",
}

HEADS = ["for i in range(3):", "while i < 3:\n        i += 1"]


def program(head: str, replaced: str, view: str, use: str) -> Any:
    body = REPLACED[replaced].format(view=VIEWS[view], use=USES[use]).strip("\n").rstrip()
    text = f"""import numpy as np

def f(w, x):
    i = 0
    w = w * 1.0
    {head}
{body}
    return w @ w * x + w[0]
"""
    return define(text)


@pytest.mark.parametrize("replaced", REPLACED)
@pytest.mark.parametrize("head", HEADS, ids=["for", "while"])
def test_gradients(replaced: str, head: str) -> None:
    for view, use in itertools.product(VIEWS, USES):
        right(program(head, replaced, view, use), np.array([0.88, 1.34, 0.82]), 1.24, backend="python", wrt=(0, 1))


@pytest.mark.compiled
@pytest.mark.parametrize("replaced", REPLACED)
def test_compiled(replaced: str) -> None:
    for view, use in (("reversed", "stored"), ("row", "read"), ("flipped", "nothing")):
        right(program(HEADS[0], replaced, view, use), np.array([0.88, 1.34, 0.82]), 1.24, backend="numba")


def test_text_without_such_views_stays_as_it_is() -> None:
    def plain(w: Any, x: float) -> Any:
        for _ in range(3):
            w = w[::-1] * x
        return w @ w

    assert "w_1_1" not in differentiable(plain).inspect(np.ones(3), 2.0).joint
