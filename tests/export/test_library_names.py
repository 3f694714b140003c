"""Shared libraries: functions and arguments of any name, functions among arguments, what is bound."""

from __future__ import annotations

import functools
import inspect
import math
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, BuildError
from tapegen.export import python_loader
from tapegen.export.library import build, build_library
from tapegen.export.module import ExportRequest
from tapegen.export.native.c_header import comment
from tapegen.export.native.entry_points import STATUS, identifier
from tapegen.export.native.object_code import FIRST_ERROR, Errors, _numbered
from tests.libraries import load, narrow, same, weighted

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def value(value, tape, found, shapes, seed, *primals, np=1.0, record=2.0, tangents):
    return sum(value**2) * tape * found * shapes * seed * np * record * primals[0] * tangents


def with_options(value, **tape):
    scale = tape.pop("tangents")
    return np.sum(value**2) * scale + tape["found"]["seed"]


def collected(*xs):
    return np.sum(xs[0] * xs[1])


def told(x):
    if x[0] > 1.0:
        print("large")
    return np.sum(x * x)


def ordered_by_two(m):
    return np.sum(m[np.lexsort((m[:, 0], m[:, 1]))] * m)


def test_what_no_library_can_be_built_of(tmp_path: Path) -> None:
    x = np.arange(3.0)
    module = load(build(collected, x, x + 1, directory=tmp_path))
    assert "collected_hvp" not in module.__all__
    same(module.collected_grad(x, x + 1), (x + 1, x))
    with pytest.raises(BuildError, match="no Hessian product by arguments that a function collects"):
        build(collected, x, x, directory=tmp_path / "out", modes=["hvp"])
    with pytest.raises(BuildError, match=r"(?s)print writes by way of Python.*print\(\"large\"\)"):
        build(told, x, directory=tmp_path / "out")
    with pytest.raises(BuildError, match=r"np\.lexsort has no compiled form"):
        build(ordered_by_two, np.ones((3, 2)), directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def swung(a, x, b):
    return a * math.sin(b) * np.sum(x * x)


def test_numbers_come_back_as_numbers(tmp_path: Path) -> None:
    f = tg.differentiable(swung, wrt=("b", "x", "a"))
    args = (2.0, np.arange(3.0), 0.5)
    module = load(build(f, *args, directory=tmp_path, modes=["grad", "hvp"], cpu="native"))
    same(module.swung_value_and_grad(*args), f.value_and_grad(*args))
    along = (0.5, np.ones(3), 0.25)
    same(module.swung_hvp(args, along), tg.hvp(f, args, along)[::-1])  # in the order of wrt


def test_keywords_may_have_any_name(tmp_path: Path) -> None:
    f = tg.differentiable(with_options, wrt=("value", "tape"))
    x, words = np.arange(3.0), {"tangents": 0.25, "found": {"seed": 2.0}}
    module = load(build(f, x, directory=tmp_path, modes=["grad"], **words))
    assert str(inspect.signature(module.with_options_grad)) == "(value, **tape)"
    same(module.with_options_value_and_grad(x, **words), f.value_and_grad(x, **words))
    with pytest.raises(ValueError, match="built for tape with the keys 'tangents', 'found'"):
        module.with_options_grad(x, tangents=1.0)


def test_arguments_may_have_any_name(tmp_path: Path) -> None:
    f = tg.differentiable(value, wrt=("value", "seed"))
    x = np.arange(3.0)
    args, words = (x, 1.0, 2.0, 3.0, 4.0, 5.0), {"np": 0.5, "tangents": 0.25}
    module = load(build(f, *args, directory=tmp_path, modes=["grad", "split", "jvp"], **words))
    assert str(inspect.signature(module.value_grad)) == (
        "(value, tape, found, shapes, seed, *primals, np=1.0, record=2.0, tangents)"
    )
    same(module.value_value_and_grad(*args, **words), f.value_and_grad(*args, **words))
    same(module.value_vjp(*args, **words)[1](1.0), f.vjp(*args, **words)[1](1.0))
    along = (x + 1, None, None, None, 2.0, None)
    (bar, seed_bar), value_dot = f.grad(*args, **words), module.value_jvp(args, along, **words)[1]
    assert value_dot == pytest.approx(np.sum(bar * along[0]) + seed_bar * along[4])
    with pytest.raises(ValueError, match="primals with length 1"):
        module.value_grad(*args, 6.0, **words)
    with pytest.raises(ValueError, match="6 arguments have 5 tangents"):
        module.value_jvp(args, along[:5], **words)


@pytest.mark.parametrize("name", ["np", "map", "_vjp", "lambda"])
def test_functions_may_have_any_name(name: str, tmp_path: Path) -> None:
    def f(x, k=2.0):
        return np.sum(x**2) * k

    f.__name__ = f"<{name}>" if name == "lambda" else name
    module = load(build(f, np.ones(3), directory=tmp_path, name="any", modes=["value", "split"]))
    plain = identifier(name)
    assert set(module.__all__) <= set(vars(module))
    assert getattr(module, module.__all__[0])(np.ones(3)) == 6.0
    same(getattr(module, f"{plain}_vjp")(np.ones(3))[1](1.0), np.full(3, 4.0))


def test_functions_with_names_that_others_make(tmp_path: Path) -> None:
    def f(x):
        return np.sum(x)

    def f_grad(x):
        return np.sum(x**2)

    wanted = [ExportRequest(tg.differentiable(g), (np.ones(3),), {}, ("value", "grad")) for g in (f, f_grad, f)]
    module = load(build_library(wanted, tmp_path, "several"))
    assert len(set(module.__all__)) == 9
    same(module.f_grad(np.full(3, 3.0)), np.ones(3))
    same(module.f_grad_2_grad(np.full(3, 3.0)), np.full(3, 6.0))
    same(module.f_2_grad(np.full(3, 3.0)), np.ones(3))


def test_an_argument_that_hides_the_module(tmp_path: Path) -> None:
    def f(_vjp):
        return np.sum(_vjp)

    with pytest.raises(BadArgument, match="'_vjp'"):
        build(f, np.ones(3), directory=tmp_path, modes=["grad"])


def chosen(x, how, *, power=2.0, where=None):
    return np.sum(how(x) ** power)


def test_functions_as_arguments_are_part_of_the_library(tmp_path: Path) -> None:
    module = load(build(chosen, np.ones(3), np.sin, directory=tmp_path, modes=["grad"]))
    assert str(inspect.signature(module.chosen_grad)) == "(x, how, *, power=2.0, where=None)"
    same(module.chosen_grad(np.ones(3), None), tg.grad(chosen)(np.ones(3), np.sin))
    with pytest.raises(ValueError, match="how is part of the library"):
        module.chosen_grad(np.ones(3), np.cos)


@pytest.mark.parametrize("name", ["5f", "5f.13", "5f.13.27"])  # of code that LLVM has linked once, twice, three times
def test_exceptions_become_numbers(name: str) -> None:
    errors = Errors()
    data = "".join(f"\\{byte:02X}" for byte in pickle.dumps((MemoryError, ("none left",), None)))
    text = _numbered(f'@.const.pickledata.{name} = internal constant [9 x i8] c"{data}"', errors)
    assert text.endswith('c"\\10\\00\\00\\00", align 4\n')
    assert errors.items() == [(FIRST_ERROR, "MemoryError", "none left")]


def test_the_module_knows_the_codes_of_the_library() -> None:
    assert {name: number for name, number, _ in STATUS}["SHAPE"] == python_loader._SHAPE
    assert python_loader._FIRST_ERROR == FIRST_ERROR > max(number for _, number, _ in STATUS)
    assert all(
        name.startswith("_")
        for name, each in vars(python_loader).items()
        if getattr(each, "__module__", "") == python_loader.__name__
    )


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * np.sum(x)

    def times(self, x, y):
        return self.factor * np.sum(x) * y


def test_what_is_bound_is_part_of_the_library(tmp_path: Path) -> None:
    x, direction = np.array([1.0, 2.0]), np.array([0.5, 0.25])
    part = functools.partial(weighted, w=np.arange(6.0)[::2])
    module = load(build(part, np.ones((2, 3)), directory=tmp_path, modes=["grad"]))
    assert str(inspect.signature(module.weighted_grad)) == "(a)"
    same(module.weighted_grad(np.ones((2, 3))), tg.grad(part)(np.ones((2, 3))))
    module = load(build(Scaled(3.0), x, directory=tmp_path / "object", modes=["grad"]))
    same(getattr(module, module.__all__[1])(x), np.full(2, 3.0))
    method = tg.differentiable(Scaled(2.0).times, wrt=("x", "y"))
    module = load(build(method, x, 5.0, directory=tmp_path / "method", modes=["grad", "jvp"]))
    same(module.times_grad(x, 5.0), method.grad(x, 5.0))
    same(module.times_jvp((x, 5.0), (direction, 1.0)), method.jvp((x, 5.0), (direction, 1.0)))


def test_an_attribute_with_a_derivative_is_given(tmp_path: Path) -> None:
    scaled = Scaled(2.0)
    f = tg.differentiable(scaled.times, wrt=("self.factor", "x"))
    module = load(build(f, np.ones(2), 5.0, directory=tmp_path, modes=["grad"]))
    same(module.times_grad(Scaled(4.0), np.ones(2), 5.0), (10.0, np.full(2, 20.0)))


def test_a_name_that_is_none_for_c(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="letters, digits"):
        build(narrow, np.ones(3), directory=tmp_path, name="../evil")


def test_hostile_names_are_data(tmp_path: Path) -> None:
    def größe(class_, int, u_n0, u, tape, default):
        return np.sum(class_) * int * u_n0 * np.sum(u) + tape * default

    module = load(build(größe, np.ones(3), 2.0, 3.0, np.ones(3), 5.0, 1.0, directory=tmp_path))
    (name,) = [name for name in vars(module) if name.endswith("_grad") and not name.endswith("and_grad")]
    same(getattr(module, name)(np.ones(3), 2.0, 3.0, np.ones(3), 5.0, 1.0), np.full(3, 18.0))
    assert identifier("int") == "int_" and identifier("9lives") == "f_9lives" and identifier("größe") == "gr_e"
    assert "*/" not in comment("evil */ int x; /* \\\n ??/ \x00")
    assert "\n" not in comment("a\nb")
