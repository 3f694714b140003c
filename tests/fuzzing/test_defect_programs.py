"""Small programs, each of which a planted defect breaks: `tests/random_programs/defects` says what the defects are.

They are judged by the oracles of grown programs.
"""

from __future__ import annotations

import ast

import pytest

from tests.grown.checks import FINE, REFUSED, judge
from tests.random_programs.defects import DEFECTS

STAGES = ("primal", "reverse", "forward", "jacobian")
PROGRAMS: dict[str, tuple[str, str]] = {
    "an odd reflection is taken for an even one": (
        "v=np.array([0.5, 1.5, -0.4])",
        """w = np.pad(v, 2, mode='reflect', reflect_type='odd')
    return np.sum(w * w)""",
    ),
    "the result of einsum without an arrow is in the order of the operands": (
        "m=np.arange(1.0, 17.0).reshape(2, 2, 2, 2) / 7",
        """r = np.einsum('bcca', m)
    return r[0, 1] * 2 + np.sum(r * r)""",
    ),
    "the one bound of clip is taken for the other": (
        "v=np.array([0.5, 1.5, -0.4])",
        "return np.sum(np.clip(v, max=1.0) * 3) + np.sum(np.clip(v, min=0.1) ** 2)",
    ),
    "the dtype that a ufunc computes in is forgotten": (
        "v=np.array([0.5, 1.5, -0.4])",
        """w = np.multiply(v, v, dtype=np.float32)
    return np.sum(w)""",
    ),
    "a ufunc reduces all axes": (
        "m=np.array([[0.5, 1.5], [0.2, -0.4]])",
        """r = np.add.reduce(m)
    return np.sum(r * r)""",
    ),
    "an outer ufunc adds one axis": (
        "m=np.array([[0.5, 1.5], [0.2, -0.4]])",
        """r = np.multiply.outer(m[0], m)
    return np.sum(r[0] * 2) + r.ndim""",
    ),
    "one array for two results": (
        "v=np.array([0.5, 1.5, -0.4])",
        """w = np.zeros(3)
    np.divmod(v, 0.4, out=(w, w))
    return np.sum(w * v)""",
    ),
    "a function stores what it reads element by element": (
        "m=np.array([[0.5, 1.5], [0.2, -0.4]])",
        """np.fill_diagonal(m, m[::-1, 0])
    return np.sum(m * np.arange(4.0).reshape(2, 2))""",
    ),
    "any test is taken to tell the kind": (
        "v=np.array([0.5, 1.5])",
        """e = v if v[0] > 99 else 2.0
    if v[1] > 1.0:
        e = v * 2.0
    else:
        e = 3.0
    return np.sum(e) * v[0]""",
    ),
    "a number is taken for an array without axes that has other names": (
        "x=0.7",
        """a = np.array(x)
    b = a if x > 0.1 else x
    b *= 2.0
    return a * x + b""",
    ),
    "two names of a number without axes are taken for one": (
        "x=0.7",
        """a = np.array(x)
    if x < 0.1:
        a = x * 1.0
    b = a
    b *= 2.0
    return a * x + b""",
    ),
    "an item that is removed stays": (
        "v=np.array([1.1, 0.9, 1.2]), d={'n': 1, 'm': 2}",
        """del d['n']
    return np.sum(v) * d['m']""",
    ),
    "the value is read after the backward sweep has used its name": (
        "v=np.array([1.1, 0.9, 1.2])",
        """s = v[0]
    for k in range(3):
        s = s * v[k]
    v[0] = s
    return s""",
    ),
    "an axis of unknown size is taken not to be one": (
        "m=np.array([[0.5, 0.2, 0.1], [1.5, 0.4, 0.3]])",
        """k = int(m[0, 0] > 0)
    w = m[:, :k]
    u = w * m
    return np.sum(u * u)""",
    ),
    "a broadcast is taken to have the shape of its first operand": (
        "m=np.array([[0.5, 0.2, 0.1], [1.5, 0.4, 0.3]])",
        """k = int(m[0, 0] > 0)
    u = m[:, :k] + m
    w = u * u
    return np.sum(w * m[:, :k])""",
    ),
    "an array that leaves a list is taken for a copy": (
        "v=np.array([0.5, 1.5, -0.4])",
        """l = []
    for k in range(3):
        l.append(v * k)
    a = l[1]
    b = l.pop()
    b[0] = v[1] ** 2
    l.append(b)
    b[1] = 2.0
    return np.sum(l[2] * v) + np.sum(a)""",
    ),
    "an array put into a list is taken for a copy": (
        "v=np.array([0.5, 1.5, -0.4])",
        """l = []
    w = v * 1.0
    for k in range(3):
        l.append(w)
    w[0] = v[1] ** 2
    return np.sum(l[2] * v)""",
    ),
    "the second of several results is forgotten": (
        "m=np.array([[0.5, 1.0], [1.5, 0.3]])",
        """a, b = np.linalg.slogdet(m)
    w, u = np.linalg.eigh(m + m.T)
    return np.sum(w) + b + np.sum(u[0] ** 2 * w)""",
    ),
    "a range with a step starts backwards at its bound": (
        "v=np.array([0.5, 1.5, -0.4, 0.8, 0.2])",
        """s = v[0]
    n = int(np.sum(v > -9)) - 1
    for k in range(0, n, 2):
        s = s * v[k] + np.sin(s)
    return s""",
    ),
    "a zero cotangent times an infinite partial": (
        "v=np.array([0.5, 0.0])",
        "return np.sum(np.where(v > 0.1, np.cbrt(v), v))",
    ),
    "a partial that raises": (
        "x=0.0",
        "return math.cbrt(x) + x",
    ),
    "= for += over the items of a list": (
        "v=np.array([0.5, 1.5])",
        """l = []
    for k in range(3):
        if v[1] > k:
            l.append(v[0] * k + v[1])
    return np.sum(np.array(l) ** 2) + np.sum(np.array(l)) * v[0]""",
    ),
    "a counter that pauses is taken for one that does not": (
        "v=np.array([1.1, 0.9, 1.2, 0.8])",
        """s = v[0]
    c = 0
    for i in range(len(v)):
        if v[i] > 1.0:
            continue
        c += 1
        s = np.sin(s) * v[c]
    return s""",
    ),
    "iterations are counted from the loop variable": (
        "v=np.array([1.1, 0.9, 1.2, 0.8])",
        """s = v[0]
    c = 0
    for i in range(2, 5):
        s = np.sin(s) * v[c] * i
        c += 1
    return s""",
    ),
    "an array that is written later is recomputed": (
        "v=np.array([1.1, 0.9, 1.2, 0.8])",
        """w = v * 2.0
    s = np.sum(np.sin(w))
    w[0] = s
    return np.sum(w * v)""",
    ),
    "the extent of the wrong axis": (
        "m=np.array([[1.1, 0.9, 1.2], [0.3, 0.4, 0.5]])",
        """w = m * 1.0
    for k in range(2):
        w = np.concatenate((w, w[:, k:]), axis=1)
    return np.sum(w * w[0])""",
    ),
    "the constant of a bound is not multiplied": (
        "v=np.array([1.1, 0.9, 1.2]), n=3",
        """s = v[0]
    for i in range(n):
        for j in range(-2 + i, n):
            s = np.sin(s) * v[j % 3]
    return s""",
    ),
    "a factor of a bound is forgotten": (
        "v=np.array([1.1, 0.9, 1.2]), n=3",
        """s = v[0]
    for i in range(n):
        for j in range(2 * i):
            s = np.sin(s) * v[j % 3]
    return s""",
    ),
    "a loop without a winner is undone for its first iteration": (
        "v=np.array([2.5, 1.5, 0.4])",
        """best = -9.0
    for k in range(3):
        if v[k] > best:
            best = v[k]
    return best * v[1]""",
    ),
    "the iteration that wins is that which stays": (
        "v=np.array([0.5, 1.5, 0.4])",
        """best = v[2]
    for k in range(len(v)):
        if v[k] <= best:
            best = best
        else:
            best = v[k]
    return best * v[0]""",
    ),
    "a frontier of another shape is tested element by element": (
        "m=np.array([[0.5, 0.0, 1.2], [0.3, 0.7, 0.9]])",
        """y = np.cbrt(m)
    w = y.T * 1.0
    return np.sum(w[0] * 2)""",
    ),
    "of two uses in one statement the last is tested": (
        "v=np.array([0.5, 0.0])",
        """w = np.cbrt(v) ** 3
    z = np.where(v > -1, w, w)
    u = np.where(v > 9, w, 1.0)
    return np.sum(z) + np.sum(u)""",
    ),
    "the tangent of an item that nobody reads stays in its list": (
        "v=np.array([1.0, 0.3, 0.5])",
        """l = []
    for k in range(3):
        l.append(v[k] * v[0])
    l.pop()
    s = 0.0
    for a in l:
        s += a * a
    return s + l[-1]""",
    ),
    "two tangents share memory that is written": (
        "v=np.array([1.0, 0.3, 0.5])",
        """w = np.real(v + 0.0)
    u = v + 1.0
    u[0] = 2.0
    t = u - 3.0
    t[1] = v[0] ** 2
    return np.sum(w * v) + np.sum(u * v) + np.sum(t * u)""",
    ),
    "the constants of a linear function are added to the tangent": (
        "m=np.array([[0.5, 1.0, 0.1], [1.5, 0.3, 0.2]])",
        "return np.sum(np.sum(m, axis=0, initial=2.0) ** 2) + np.sum(np.pad(m, 1, constant_values=3.0) ** 2)",
    ),
    "a zero tangent times an infinite partial": (
        "x=0.5",
        "return np.cbrt(x * 0.0) + x",
    ),
    "a tangent has the shape of one operand": (
        "v=np.array([0.5, 1.5]), x=0.3",
        """w = np.array([1.0, 2.0, 3.0]) + x
    w[0] = x ** 2
    u = np.ones((2, 2)) + v
    u[0, 0] = x
    return np.sum(w * w) + np.sum(u * u)""",
    ),
    "the tangents of a swap move one after the other": (
        "v=np.array([0.5, 1.5])",
        """a, b = v[0] * 2, v[1] ** 2
    for k in range(3):
        a, b = b, a
    a, b = b, a + b
    return a * a + b""",
    ),
    "a loop is not carried over to the tangents of its block": (
        "v=np.array([0.5, 1.5])",
        """l = []
    for k in range(3):
        l.append(v * k)
    s = 0.0
    for a in l:
        s += np.sum(a * a)
    return s + np.sum(l[1])""",
    ),
    "tangents are not made where a block is left": (
        "v=np.array([1.1, 0.9, 1.2])",
        """w = np.zeros(3)
    s = v[0]
    for k in range(3):
        s = s * v[k]
        if k == 1:
            break
        w[k] = s * s
    return w * s""",
    ),
    "an option that no rule speaks of is let through": (
        "v=np.array([0.5, 1.5, -0.4])",
        "return np.sum(np.quantile(v, 0.4, method='hazen') ** 2)",
    ),
    "a container of the caller is dropped with its kind": (
        "v=np.array([0.5, 1.5]), l=[1.0, 2.0]",
        """l[1] = v[0] ** 2
    w = l if v[0] > 99 else v * 1.0
    l = None
    w[0] = v[1] ** 2
    return w[0]""",
    ),
    "a container that another name holds is dropped with its kind": (
        "v=np.array([0.5, 1.5])",
        """l = [v[0], 2.0]
    w = l if v[0] > 99 else v * 1.0
    w[0] = v[1] ** 2
    return l[0] * 2 + w[0]""",
    ),
    "an array on a tape is not copied": (
        "v=np.array([0.5, 1.5, -0.4])",
        """w = v * 1.0
    s = v[0]
    for k in range(4):
        if k == 2:
            w = np.append(w, s)
        w[0] = np.sin(w[1]) * s
        w *= w
        s = s + np.sum(np.sin(w))
    return s""",
    ),
    "a candidate that depends on the selected value is taken for another": (
        "v=np.array([0.5, 1.5, -0.4, 1.7])",
        """best = v[0]
    for k in range(len(v)):
        c = v[k] + best
        if c > best:
            best = c
    return best * v[1]""",
    ),
    "a product is taken for linear": (
        "v=np.array([0.5, 1.5, -0.4, 1.0])",
        """s = 0.0
    for k in range(3):
        best = -9.0
        c = 1.0 + k
        for i in range(k * k + 1):
            a = v[i % 4] * c
            if a > best:
                best = a
            c = c * 0.5 + 0.1
        s += best * best
    return s""",
    ),
    "the tangent is stored where the index means another element": (
        "v=np.array([0.5, 1.5, -0.4, 0.2])",
        """w = v * 1.0
    w[np.argmax(w)] = v[0] * 0.1
    return np.sum(w * v)""",
    ),
    "a name for a table that is written is taken for a copy": (
        "v=np.array([0.5, 1.5, -0.4])",
        """w = v * v
    u = np.reshape(w, (3, 1))
    u[0] = v[1] ** 2
    return w * v""",
    ),
    "the tangent is loaded where the index means another element": (
        "v=np.array([2.2, 3.2, 1.2, 0.2])",
        """s = v[1]
    while s > 1.0:
        s = v[round(s)]
    return s * s""",
    ),
    "of uses that are not kept none is tested": (
        "v=np.array([0.5, 0.0])",
        """w = np.sqrt(v)
    u = w[:1]
    t = np.where(v > 0.1, w, v)
    return u[0] + t[1]""",
    ),
}
"""By the name of the defect: the arguments, and the body of the function."""
LOOPS: dict[str, tuple[str, str]] = {
    "a store into what a reshape was made of is not looked at": (
        "v=np.array([0.5, 1.5, -0.4, 0.2, 0.3, 0.9, 1.1, 0.7])",
        """w = v[::2]
    u = w.reshape(2, 2)
    w[0] = 5.0
    return np.sum(u * u)""",
    ),
}
"""The same, where the text for compiled code alone shows it."""


def text_of(arguments: str, body: str) -> str:
    """A module as grown programs are."""
    call = ast.parse(f"dict({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    names = ", ".join(keyword.arg or "" for keyword in call.keywords)
    head = f"import math\n\nimport numpy as np\n\n\ndef f({names}):\n    {body}\n\n\n"
    return f"{head}def arguments():\n    return tuple(dict({arguments}).values())\n"


@pytest.mark.parametrize("name", [*PROGRAMS, *LOOPS])
def test_a_small_program_finds_the_defect(name: str) -> None:
    (defect,) = (each for each in DEFECTS if each.name == name)
    text, stages = (text_of(*LOOPS[name]), ("loops",)) if name in LOOPS else (text_of(*PROGRAMS[name]), STAGES)
    right = judge(text, stages)
    assert right.kind in FINE, right
    with defect.plant():
        wrong = judge(text, stages)
    assert wrong.kind != right.kind
    assert right.kind != REFUSED or wrong.kind not in FINE
