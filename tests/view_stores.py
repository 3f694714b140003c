"""Every way to look into an array, every way to write into it afterwards, and every way to read the view then.

`python -m tests.view_stores` judges all programs, `one_of=7` each seventh, `compiled` with the compiled backend; words
that are left choose programs whose text holds them.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegen import differentiable
from tapegen.errors import TapegenError
from tests.sources import define

BASES = {
    "fresh": "def f(m, v):\n    m = np.outer(v, np.cos(m[0])) + m[1]\n",
    "argument": "def f(m, v):\n",
}
"""Where the array comes from: the program makes it, or the caller does."""

VIEWS = (
    "m",
    "m[:]",
    "m[...]",
    "m[1:]",
    "m[::-1]",
    "m[:, 1]",
    "m[0]",
    "m[-1, ::-1]",
    "m[::2, 1:]",
    "m[None]",
    "m[:, None, 0]",
    "m[1:][:, :2]",
    "m.T",
    "m.T[1]",
    "m[0:1, 0:1].reshape(())",
    "m.transpose(1, 0)",
    "np.transpose(m)",
    "np.permute_dims(m, (1, 0))",
    "np.matrix_transpose(m)",
    "np.linalg.matrix_transpose(m)",
    "m.swapaxes(0, 1)",
    "np.swapaxes(m, 0, 1)",
    "np.moveaxis(m, 0, 1)",
    "np.rollaxis(m, 1)",
    "m.reshape(-1)",
    "m.reshape(9, 1)",
    "np.reshape(m, (1, 9))",
    "m.T.reshape(-1)",
    "m.ravel()",
    "np.ravel(m)",
    "np.ravel(m[1:])",
    "m.ravel()[2:7]",
    "m.flatten()",
    "m.squeeze()",
    "np.squeeze(m[0:1])",
    "np.expand_dims(m, 1)",
    "m.diagonal()",
    "m.diagonal(1)",
    "np.diagonal(m)",
    "np.diagonal(m, -1)",
    "np.diagonal(m.T, 1)[::-1]",
    "np.diagonal(m[None], 0, 1, 2)",
    "np.linalg.diagonal(m)",
    "np.diag(m)",
    "np.broadcast_to(m, (2, 3, 3))",
    "np.broadcast_to(m[1], (2, 3))",
    "np.broadcast_to(m[:, :1], (3, 2))",
    "np.broadcast_arrays(m, v)[0]",
    "np.flip(m)",
    "np.flip(m, 0)",
    "np.flipud(m)",
    "np.fliplr(m)",
    "np.rot90(m)",
    "np.rot90(m, 2)",
    "np.einsum('ii->i', m)",
    "np.einsum('ij->ji', m)",
    "np.einsum('iji->ij', m[:, None])",
    "np.real(m)",
    "m.real",
    "np.asarray(m)",
    "np.asanyarray(m)",
    "np.ascontiguousarray(m)",
    "np.atleast_1d(m)",
    "np.atleast_2d(m[0])",
    "np.atleast_3d(m)",
    "np.split(m, 3)[1]",
    "np.array_split(m, 2)[0]",
    "np.hsplit(m, 3)[2]",
    "np.vsplit(m, 3)[0]",
    "np.unstack(m)[1]",
    "np.unstack(m, axis=1)[0]",
    "[row for row in m][1]",
    "(m[1], m[0])[0]",
    "np.array(m)",
    "m.copy()",
    "m[[0, 1]]",
    "m * 1.0",
)
"""Ways to look into a matrix `m`; the last ones make copies."""

STORES = (
    "m[0, 0] = v[1] ** 2",
    "m[-1] = v * v",
    "m[:, 1] *= v[0]",
    "m[...] = m * v",
    "m += v",
    "m[1:] += m[:-1] * v[0]",
    "m[m > 0.6] = v[1] ** 2",
    "m[[0, 2, 0], [0, 1, 0]] = v * v",
    "m.flat[4] = v[1] ** 2",
    "e = m.T; e[0, 1:] = v[1:] ** 2",
    "e = m.ravel(); e[::2] *= v[0]",
    "for i in range(3): m[i, i] = v[i] ** 2 * m[i, i]",
    "for row in m: row *= v",
    "if v[0] > 0.1: m[0] = v[1] * m[0]",
    "m[0], m[1] = m[1] * v, m[0] * 1.0",
    "np.put(m, [0, 4, -1, 0], v * v)",
    "m.put([0, 4], v[1] ** 2)",
    "np.place(m, m > 0.6, v * v)",
    "np.putmask(m, m > 0.6, v * v)",
    "np.copyto(m, v * m)",
    "np.copyto(m, v[1] ** 2, where=m > 0.6)",
    "np.fill_diagonal(m, v * v)",
    "np.put_along_axis(m, np.array([[0], [2], [1]]), v[1] ** 2, 1)",
    "np.add.at(m, ([0, 1, 0], [0, 1, 0]), v * v)",
    "np.subtract.at(m, [0, 2, 0], v)",
    "np.multiply.at(m, ([0, 1, 0], [0, 1, 0]), v)",
    "np.multiply(m, v, out=m)",
    "np.add(m[0], v, out=m[1])",
    "np.exp(m, out=m)",
    "np.cumsum(m, axis=0, out=m)",
    "np.clip(m, 0.425, v[1], out=m)",
    "np.sum(m * v, axis=0, out=m[0])",
    "np.matmul(m, m, out=m)",
    "m.fill(v[1] ** 2)",
    "m.sort()",
    "m.sort(axis=0)",
    "m.partition(1)",
    "def double(a): a *= v[1]\n    double(m)",
)
"""Ways to write into it."""

READS = (
    "d[FIRST] * v[2] + d[LAST]",
    "d.item(0) * v[2]",
    "t = 0.0\n    for i in range(len(d)): t += np.sum(d[i] * v[0]) * v[i]\n    return t",
    "t = 0.0\n    for x in d: t += np.sum(x * x)\n    return t",
    "t = 0.0\n    for x, y in zip(d, d[::-1]): t += np.sum(x * y * y)\n    return t",
    "t = 0.0\n    for i, x in enumerate(d): t += np.sum(x * x) * v[i]\n    return t",
    "t = 0.0\n    for x in d.flat: t += x * x\n    return t",
    "np.sum(np.sin(d))",
    "np.sum(d)",
    "d.max() * v[0]",
    "np.sum(d[1:] ** 2)",
    "np.sum(d * d)",
    "d * v[0]",
    "d",
    "def total(a): return np.sum(a * a)\n    return total(d)",
)
"""Ways to read the view after that."""

BEFORE = ("", "t0 = d[FIRST] * v[0]; ", "t0 = np.sum(d * d); ")
"""What is read of the view before the array is written."""

POINT = (
    np.array([[0.5, 1.3, 0.35], [0.9, 0.2, 1.1], [0.7, 0.45, 0.8]]),
    np.array([0.75, 1.25, 0.55]),
)


GOOD = ("right", "refused", "fails as well")
"""Verdicts that are no mistake."""


@dataclass(frozen=True)
class Case:
    """One program and where it is judged."""

    text: str
    point: tuple[np.ndarray, ...] = POINT

    def __str__(self) -> str:
        return self.text


def cases() -> Iterator[Case]:
    """All programs that plain Python runs."""
    for base in BASES.values():
        for view in VIEWS:
            rank = _rank(view)
            for store in STORES:
                for read in READS:
                    for before in BEFORE:
                        if text := _text(base, view, store, read, before, rank):
                            yield Case(text)


def _rank(view: str) -> int:
    m, v = POINT
    return np.ndim(eval(view, {"np": np, "m": m, "v": v}))


def _text(base: str, view: str, store: str, read: str, before: str, rank: int) -> str:
    """The program; nothing where a view without axes is read as if it had some."""
    if rank == 0 and any(part in read for part in ("len(", " in d", "d[1:]", "zip", "enumerate")):
        return ""
    body = read if "return " in read else f"return {read}"
    if before:
        body = body.replace("return ", "return t0 * ", 1) if "return total" not in body else body
        body = body.replace("def total(a): return t0 * np", "def total(a): return np")
    text = f"{base}    d = {view}\n    {before.removesuffix('; ')}\n    {store}\n    {body}\n"
    first, last = (", ".join([k] * rank) or "()" for k in ("0", "-1"))
    return text.replace("    \n", "").replace("FIRST", first).replace("LAST", last)


def sampled(one_of: int, chosen: Callable[[], Iterator[Case]] = cases) -> Iterator[Case]:
    """Each `one_of`-th program, spread over all of them alike."""
    for k, case in enumerate(chosen()):
        if k * 2654435761 % 2**32 < 2**32 // one_of:
            yield case


# ---- judging -----------------------------------------------------------------------------------------------------


def copies(point: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.copy(x, order="K") if isinstance(x, np.ndarray) else x for x in point)


def gradients(func: Callable[..., Any], point: tuple[Any, ...], weights: Any) -> list[np.ndarray]:
    """Differences of the sixth order, by every number of the floating arguments."""
    found = []
    for slot, x in enumerate(point):
        gradient = np.zeros(np.shape(x))
        for index in np.ndindex(np.shape(x)):
            for distance, weight in ((1, 0.75), (2, -0.15), (3, 1 / 60)):
                for sign in (1, -1):
                    moved = copies(point)
                    moved[slot][index] += sign * distance * 1e-3
                    gradient[index] += sign * weight * float(np.sum(func(*moved) * weights)) / 1e-3
        found.append(gradient)
    return found


def verdict(case: Case, backend: str = "python") -> tuple[str, str]:
    """How tapegen does on a program of the matrix."""
    return judged(define("import numpy as np\n" + case.text), case.point, backend)


def judged(plain: Any, point: tuple[Any, ...], backend: str = "python") -> tuple[str, str]:
    """How tapegen does on a function: right, refused, fails as well, or what is wrong; and details."""
    left = copies(point)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = plain(*left)
        except Exception as error:
            return _refuses_too(plain, point, backend, error)
        rng = np.random.default_rng(3)
        weights = np.ones(np.shape(expected)) if np.ndim(expected) == 0 else rng.uniform(0.5, 1.5, np.shape(expected))
        directions = tuple(rng.uniform(0.5, 1.5, np.shape(x)) for x in point)
        wanted = gradients(plain, point, weights)
        far = 1.0 if "float32" not in inspect.getsource(plain) else 1e4  # differences of what was rounded
        derived = differentiable(plain, wrt=tuple(range(len(point))), backend=backend)
        found: list[tuple[str, str]] = []
        for mode in (_reverse, _forward):
            given = copies(point)
            try:
                value, slope, true = mode(derived, given, weights, directions, wanted)
            except TapegenError as error:
                kind = "refused" if type(error).__name__ != "InternalError" else "failed"
                found.append((kind, f"{mode.__name__}: {type(error).__name__}: {error}"))
                continue
            except Exception as error:
                found.append(("failed", f"{mode.__name__}: {type(error).__name__}: {error}"))
                continue
            if np.shape(value) != np.shape(expected) or not np.allclose(value, expected, rtol=1e-12, atol=1e-12):
                found.append(("wrong value", f"{mode.__name__}: {value} is not {expected}"))
            elif not all(np.allclose(a, b, rtol=1e-13) for a, b in zip(given, left)):
                found.append(("wrong arguments", f"{mode.__name__}: {given} are not {left}"))
            elif not all(np.allclose(a, b, rtol=1e-6 * far, atol=1e-7 * far) for a, b in zip(slope, true, strict=True)):
                found.append((f"wrong {mode.__name__.removeprefix('_')}", f"{slope} is not {true}"))
    for kind, detail in found:
        if kind != "refused":
            return kind, detail
    return found[0] if found else ("right", "")


def _refuses_too(plain: Any, point: tuple[Any, ...], backend: str, error: Exception) -> tuple[str, str]:
    """Where plain Python fails the gradient must not come either."""
    given = copies(point)
    derived = differentiable(plain, wrt=tuple(range(len(point))), backend=backend)
    try:
        derived.vjp(*given)
    except (TapegenError, type(error)):
        return "fails as well", str(error)
    except Exception as other:
        return "failed", f"{type(other).__name__}: {other}, but {type(error).__name__}: {error}"
    return "accepted", f"{type(error).__name__}: {error}"


def _reverse(derived: Any, given: Any, weights: Any, directions: Any, wanted: Any) -> tuple[Any, Any, Any]:
    if np.ndim(weights) == 0:
        value, gradient = derived.value_and_grad(*given)
    else:
        value, pullback = derived.vjp(*given)
        gradient = pullback(weights)
    return value, gradient, wanted


def _forward(derived: Any, given: Any, weights: Any, directions: Any, wanted: Any) -> tuple[Any, Any, Any]:
    value, tangent = derived.jvp(given, directions)
    true = sum(float(np.sum(g * d)) for g, d in zip(wanted, directions, strict=True))
    return value, [np.sum(tangent * weights)], [true]


def wrong(one_of: int, backend: str = "python", cases: Callable[[], Iterator[Case]] = cases) -> list[str]:
    """What is wrong with each `one_of`-th program."""
    verdicts = ((case, *verdict(case, backend)) for case in sampled(one_of, cases))
    return [f"{kind}:\n{case}{detail}" for case, kind, detail in verdicts if kind not in GOOD]


def main(arguments: list[str], chosen: Callable[[], Iterator[Case]] = cases) -> int:
    """Judge programs; says what is wrong, and how many there are of each verdict."""
    one_of = next((int(word.removeprefix("one_of=")) for word in arguments if word.startswith("one_of=")), 1)
    words = [word for word in arguments if not word.startswith("one_of=") and word not in ("compiled", "refusals")]
    counted: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for case in sampled(one_of, chosen):
        if not all(word in case.text for word in words):
            continue
        kind, detail = verdict(case, "numba" if "compiled" in arguments else "python")
        counted[kind] += 1
        if kind == "refused":
            reasons[detail.partition("\n")[0]] += 1
        if kind not in GOOD or ("refusals" in arguments and kind == "refused"):
            print(f"{kind}:\n{case}{detail}\n", flush=True)
    if "refusals" in arguments:
        print("\n".join(f"{count:6} {reason}" for reason, count in reasons.most_common(40)))
    print(", ".join(f"{count} {kind}" for kind, count in counted.most_common()))
    return sum(count for kind, count in counted.items() if kind not in GOOD)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
