"""What lowering tells its caller: what had to be known, the types of results."""

from __future__ import annotations

import importlib.util
import textwrap
from typing import Any

import numpy as np
import pytest

from tapegen import differentiable
from tapegen.ir.printer import function_text
from tapegen.ir.types import Array, Scalar
from tests.interpret import run
from tests.lowering import agree, lower


def test_integers_that_decide_about_the_form_are_static() -> None:
    def program(x, n):
        return np.sum(x, axis=n)

    x = np.ones((2, 3))
    lowered = lower(program, x, 1)
    assert lowered.statics == (("n", (), 1),)
    assert lowered.holds({"x": x, "n": 1})
    assert not lowered.holds({"x": x, "n": 0})
    assert [param.var.name for param in lowered.params] == ["x"]


def halves(x):
    n = x.size
    if n == 1:
        return x[0]
    return halves(x[: n // 2]) - halves(x[n // 2 :])


def collected(x, found):
    n = x.size
    if n == 1:
        found.append(x[0])
        return
    collected(x[: n // 2], found)
    collected(x[n // 2 :], found)


def leaves_of_halves(x):
    found = []
    collected(x, found)
    return found[0] * found[-1]


def test_recursion_over_arrays_is_lowered_once_for_all_sizes() -> None:
    lowered = agree(halves, np.array([1.0, 2.0, 4.0, 8.0]))
    assert lowered.statics == ()
    assert lowered.holds({"x": np.ones(8)})
    assert run(lowered.function, np.arange(9.0)) == (halves(np.arange(9.0)),)


def test_shapes_that_decide_about_recursion_are_static() -> None:
    """A list that the function appends to: it is written out, once for each size."""
    lowered = agree(leaves_of_halves, np.array([1.0, 2.0, 4.0, 8.0]))
    assert lowered.statics == (("x", (), (4,)),)
    assert not lowered.holds({"x": np.ones(8)})


def test_types_tell_python_from_numpy_and_known_axes() -> None:
    def program(x, y, m):
        return x, y * 2.0, m[0, 0], m @ m.T, np.sum(m, axis=1, keepdims=True)

    values = lower(program, 0.5, np.float32(0.5), np.ones((2, 1))).function.body[-1].values
    types = [Scalar("float64"), Scalar("float32", False), Scalar("float64", False)]
    assert [value.type for value in values[:3]] == types
    assert values[4].type == Array("float64", 2, "C", (False, True))
    assert lower(program, 0.5, 0.5, np.ones((2, 1))).params[2].var.type.unit == (False, True)


def test_a_computed_item_of_python_floats_is_a_python_float() -> None:
    def powers(x: float, count: int) -> float:
        found = [x]
        for k in range(count):
            found.append(found[k] * x)
        return found[-1]

    assert agree(powers, 1.5, 3).function.body[-1].values[0].type == Scalar("float64")


def test_lists_of_other_items_merge_alike_every_time() -> None:
    def last(x: float, w: float, count: int) -> float:
        before = [x, x * x]
        for _ in range(count):
            now = [before[-1] * w]
            for k in range(len(before)):
                now.append(now[k] + before[k])
            before = now
        return before[-1]

    assert len({function_text(lower(last, 0.5, 1.1, 3).function) for _ in range(6)}) == 1


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_long_conditions_and_integer_chains(tmp_path: Any, backend: str) -> None:
    """Text that a program has written: hundreds of terms in a condition, in the test of a loop, in an index."""
    count = range(150 if backend == "python" else 60)
    source = f"""
    def f(x, k):
        i = {" + ".join(f"k % {n + 2}" for n in count)}
        while {" or ".join(f"i > {400 + 3 * n}" for n in count)}:
            i = i - 1
            x = x * 1.001
        if {" and ".join(f"x > {-n}.5" for n in count)}:
            x = x * x
        return x * i
    """
    path = tmp_path / "long_chains.py"
    path.write_text(textwrap.dedent(source))
    spec = importlib.util.spec_from_file_location("long_chains", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    value, gradient = differentiable(module.f, backend=backend).value_and_grad(1.5, 6)
    assert value == pytest.approx(module.f(1.5, 6), rel=1e-14)
    assert gradient == pytest.approx(2.0 * value / 1.5, rel=1e-12)


def test_keywords_that_a_function_collects_are_parameters() -> None:
    def scaled(x, **options):
        scale = options.pop("scale", 2.0)
        return np.sum(x * x) * scale * options["p"]["w"] * sum(options["q"])

    f = differentiable(scaled, wrt=("x", "options"), backend="python")
    x = np.arange(3.0)
    value, (x_bar, bars) = f.value_and_grad(x, p={"w": 0.5}, q=[1.0, 2.0])
    assert value == scaled(x, p={"w": 0.5}, q=[1.0, 2.0]) == 15.0
    np.testing.assert_array_equal(x_bar, 6.0 * x)
    assert bars == {"p": {"w": 30.0}, "q": [5.0, 5.0]}
    assert f.grad(x, scale=3.0, p={"w": 0.5}, q=[1.0, 2.0])[1]["scale"] == 7.5
