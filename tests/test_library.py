"""Shared libraries: built ahead of time, called from C, from C++, and from Python with NumPy alone."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import inspect
import json
import math
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import threading
import zipfile
from collections import namedtuple
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import benchmarks.kernels
import tapegen as tg
from examples.heat import march
from tapegen.aot import MODES, build, build_library, default_name, loader
from tapegen.backend.library import entries
from tapegen.backend.library.entries import STATUS, identifier
from tapegen.backend.library.interface import comment
from tapegen.backend.library.objects import FIRST_ERROR
from tapegen.cli import main
from tapegen.errors import BadArgument, BuildError, NameConflict
from tapegen.written import Wanted

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

U0 = np.array([3.0, 1.0, 2.0, 0.5])


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(a: Any, b: Any) -> None:
    """Equal bit for bit, in the same structure, with the same types of numbers."""
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, np.ndarray | float | np.floating):
        assert type(a) is type(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b, strict=True)
    else:
        assert a == b and type(a) is type(b)


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of `march`."""
    f = tg.differentiable(march, wrt=("u0", "k"))
    return build(f, U0, 0.2, 10.0, directory=tmp_path_factory.mktemp("heat"), name="heat", cpu="native")


def test_the_module_gives_what_the_decorator_gives(heat: Path) -> None:
    module = load(heat)
    f = tg.differentiable(march, wrt=("u0", "k"))
    direction = (np.array([1.0, -1.0, 0.5, 2.0]), 0.25, None)
    same(module.march(U0, 0.2, 10.0), f(U0, 0.2, 10.0))
    same(module.march_value_and_grad(U0, 0.2, 10.0), f.value_and_grad(U0, 0.2, 10.0))
    same(module.march_grad(U0, 0.2, 10.0), f.grad(U0, 0.2, 10.0))
    same(module.march_jvp((U0, 0.2, 10.0), direction), f.jvp((U0, 0.2, 10.0), direction))
    same(module.march_hvp((U0, 0.2, 10.0), direction), tg.hvp(march, (U0, 0.2, 10.0), direction))
    value, pullback = module.march_vjp(U0, 0.2, 10.0)
    expected, expected_pullback = f.vjp(U0, 0.2, 10.0)
    same(value, expected)
    for bar in (1.0, -2.5, 1.0):
        same(pullback(bar), expected_pullback(bar))


def test_a_pullback_keeps_what_it_needs(heat: Path) -> None:
    module = load(heat)
    u0 = U0.copy()
    _, pullback = module.march_vjp(u0, 0.2, 10.0)
    before = pullback(1.0)
    u0[:] = np.nan
    same(pullback(1.0), before)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((U0.astype("f4"), 0.2, 10.0), TypeError, "float64"),
        ((U0[None], 0.2, 10.0), TypeError, "rank 2"),
        ((U0[::2], 0.2, 10.0), ValueError, "contiguous"),
        (([1.0, 2.0], 0.2, 10.0), TypeError, "not list"),
        ((U0, "0.2", 10.0), TypeError, "k must be a number"),
        ((U0, True, 10.0), TypeError, "k must be a number"),
        ((U0[:1], 0.2, 10.0), ValueError, "size 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(heat: Path, arguments: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        load(heat).march_grad(*arguments)


def test_tangents_that_do_not_fit_are_refused(heat: Path) -> None:
    module = load(heat)
    with pytest.raises(ValueError, match="no derivative with respect to cap"):
        module.march_jvp((U0, 0.2, 10.0), (U0, 0.0, 1.0))
    with pytest.raises(ValueError, match="shape"):
        module.march_jvp((U0, 0.2, 10.0), (np.ones(3), 0.0, None))
    _, pullback = module.march_vjp(U0, 0.2, 10.0)
    with pytest.raises(ValueError, match="cotangent"):
        pullback(np.ones(2))


def test_threads_call_at_the_same_time(heat: Path) -> None:
    module = load(heat)
    expected = module.march_grad(U0, 0.2, 10.0)
    _, pullback = module.march_vjp(U0, 0.2, 10.0)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(200):
            for found in (module.march_grad(U0, 0.2, 10.0), pullback(1.0)):
                if not np.array_equal(found[0], expected[0]) or found[1] != expected[1]:
                    wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- C and C++ -----------------------------------------------------------------------------------------------------

C_PROGRAM = """
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "heat.h"

int main(void) {
    double u0[4] = {3.0, 1.0, 2.0, 0.5}, u0_bar[4], u0_dot[4] = {1, 0, 0, 0}, again[4];
    double energy, k_bar, k_bar_again, tangent;
    int failed = 0;
    failed |= heat_march_grad(u0, 4, 0.2, 10.0, &energy, u0_bar, &k_bar);
    printf("%.17g %.17g %.17g %.17g %.17g %.17g\\n", energy, u0_bar[0], u0_bar[1], u0_bar[2], u0_bar[3], k_bar);
    failed |= heat_march_jvp(u0, 4, 0.2, 10.0, u0_dot, 0.0, &energy, &tangent);
    failed |= fabs(tangent - u0_bar[0]) > 1e-12;
    heat_march_tape *tape;
    failed |= heat_march_record(u0, 4, 0.2, 10.0, &energy, &tape);
    memset(u0, 0, sizeof u0);
    for (int i = 0; i < 3; i++) {
        failed |= heat_march_pullback(tape, 1.0, again, &k_bar_again);
        failed |= memcmp(again, u0_bar, sizeof again) != 0 || k_bar_again != k_bar;
    }
    heat_march_tape_free(tape);
    heat_march_tape_free(NULL);
    failed |= heat_march_value(u0, 4, 0.2, 10.0, NULL); /* a result that nobody wants */
    failed |= heat_march_value(NULL, 4, 0.2, 10.0, &energy) != HEAT_SIZE;
    failed |= heat_march_value(u0, -4, 0.2, 10.0, &energy) != HEAT_SIZE;
    failed |= heat_march_grad(again, 4, 0.2, 10.0, &energy, again, &k_bar) != HEAT_ALIAS; /* results over arguments */
    failed |= heat_march_grad(u0, 4, 0.2, 10.0, &again[3], again, &k_bar) != HEAT_ALIAS;
    failed |= heat_march_grad(u0, 4, 0.2, 10.0, &k_bar, again, &k_bar) != HEAT_ALIAS;
    failed |= heat_march_jvp(u0, 4, 0.2, 10.0, u0_dot, 0.0, &energy, u0_dot) != HEAT_ALIAS;
    int status = heat_march_value(u0, 1, 0.2, 10.0, &energy);
    printf("%s\\n", heat_strerror(status));
    failed |= status < 16 || strlen(heat_strerror(-7)) == 0;
    return failed;
}
"""


def run_program(
    folder: Path, text: str, compiler: str, *flags: str, suffix: str, check: bool = True, valgrind: bool = True
) -> list[str]:
    """Compile a program against the library, run it (under valgrind where there is one), and give what it prints."""
    source = folder / f"program{suffix}"
    source.write_text(text)
    library = next(folder.glob("lib*.so"))
    program = folder / f"program_{compiler.replace('+', 'x')}"
    command = [
        compiler,
        "-Wall",
        "-Wextra",
        "-Werror",
        *flags,
        source,
        library,
        f"-Wl,-rpath,{folder}",
        "-lm",
        "-o",
        program,
    ]
    made = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    command = ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=9"]
    prefix = command if valgrind and shutil.which("valgrind") else []
    done = subprocess.run([*prefix, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same library for processors that valgrind knows."""
    f = tg.differentiable(march, wrt=("u0", "k"))
    return build(f, U0, 0.2, 10.0, directory=tmp_path_factory.mktemp("portable"), name="heat").parent


def test_a_c_program_calls_every_function(portable: Path) -> None:
    numbers, message = run_program(portable, C_PROGRAM, "cc", "-std=c99", suffix=".c")
    value, (u0_bar, k_bar) = tg.differentiable(march, wrt=("u0", "k")).value_and_grad(U0, 0.2, 10.0)
    np.testing.assert_array_equal([float(word) for word in numbers.split()], [value, *u0_bar, k_bar])
    assert message == "ValueError: u0 has an axis of size 1, which needs other code"


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_cpp_program_does_too(portable: Path) -> None:
    run_program(portable, C_PROGRAM, "c++", "-std=c++17", suffix=".cpp")


def relax(u, steps, floor):
    for _ in range(steps):
        work = np.zeros(u.size)
        work[1:-1] = 0.5 * (u[:-2] + u[2:])
        if np.min(u) < floor:
            raise ValueError("too cold for this model")
        u[1:-1] = work[1:-1]
    return np.sum(u**2)


FAILING = """
#include <stdio.h>
#include "relax.h"

int main(void) {
    double u[6] = {5, 4, 3, 2, 1, -3}, u_bar[6], value;
    int status = relax_relax_grad(u, 6, 3, 0.0, &value, u_bar);
    printf("%s\\n", relax_strerror(status));
    status = relax_relax_grad(u, 6, 3, -100.0, &value, u_bar);
    printf("%s\\n", relax_strerror(status));
    return 0;
}
"""


def test_what_a_failed_call_has_allocated_is_freed(tmp_path: Path) -> None:
    build(relax, np.ones(6), 3, 0.0, directory=tmp_path, modes=["grad"])
    assert run_program(tmp_path, FAILING, "cc", suffix=".c") == ["ValueError: too cold for this model", "no error"]


def test_a_failed_call_leaves_the_arrays_of_python_as_they_were(tmp_path: Path) -> None:
    module = load(build(relax, np.ones(6), 3, 0.0, directory=tmp_path, modes=["grad"]))
    u = np.array([5.0, 4.0, 3.0, 2.0, 1.0, -3.0])
    before = u.copy()
    with pytest.raises(ValueError, match="too cold"):
        module.relax_grad(u, 3, 0.0)
    np.testing.assert_array_equal(u, before)
    mine, theirs = u.copy(), u.copy()
    same(module.relax_grad(mine, 3, -100.0), tg.grad(relax)(theirs, 3, -100.0))
    np.testing.assert_array_equal(mine, theirs)
    mine.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        module.relax_grad(mine, 3, -100.0)


def shifted(a, b):
    a[0] = b[1] * 2.0
    return np.sum(a * b)


def test_arrays_that_are_written_share_no_memory(tmp_path: Path) -> None:
    module = load(build(shifted, np.ones(4), np.ones(4), directory=tmp_path, modes=["grad"]))
    a = np.arange(8.0)
    with pytest.raises(ValueError, match="shares memory"):
        module.shifted_grad(a[:4], a[2:6])
    with pytest.raises(ValueError, match="shares memory"):
        module.shifted_grad(a[:4], a[:4])


def test_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parent.parent / "docs" / "libraries.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parent.parent / "examples", "examples")
    command = shlex.split(blocks["sh"])
    assert command[:3] == ["python", "-m", "tapegen"] and main(command[3:]) == 0
    from_command = load(Path("build/heat.py")).march_grad(U0, 0.2, 10.0)
    shutil.rmtree("build")
    exec(blocks["python"], {})
    same(load(Path("build/heat.py")).march_grad(U0, 0.2, 10.0), from_command)
    program = f"""
#include <stdio.h>
#include "heat.h"
int main(void) {{
{textwrap.indent(blocks["c"], "    ")}
    printf("%g %g\\n", energy, k_bar);
    return status;
}}
"""
    assert run_program(tmp_path / "build", program, "cc", suffix=".c") == ["6.6 8"]


# ---- structures, arrays of unknown size, strides, constants ---------------------------------------------------------

Point = namedtuple("Point", ["x", "y"])


def network(params, x, *, mode="tanh", power=2):
    h = x @ params["w"] + params["b"]
    h = np.tanh(h) if mode == "tanh" else np.maximum(h, 0.0)
    return np.sum(h**power)


def test_structures_and_constants(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    params = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
    x = rng.normal(size=(5, 3))
    f = tg.differentiable(network)
    module = load(build(f, params, x, mode="tanh", directory=tmp_path))
    found, expected = module.network_grad(params, x), f.grad(params, x)
    for key in params:
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-13)
    with pytest.raises(ValueError, match="built for mode = 'tanh'"):
        module.network(params, x, mode="relu")
    with pytest.raises(ValueError, match="built for params with the keys 'w', 'b'"):
        module.network({**params, "c": x}, x)
    with pytest.raises(TypeError, match="params must be a dict"):
        module.network(list(params.values()), x)
    _, pullback = module.network_vjp(params, x, power=2)
    for key in params:
        np.testing.assert_allclose(pullback(1.0)[key], expected[key], rtol=1e-13)
    value, tangent = module.network_jvp((params, x), (params, None), mode="tanh")
    same(value, f(params, x))
    np.testing.assert_allclose(tangent, f.jvp((params, x), (params, None))[1], rtol=1e-13)


def spread(p, n):
    grid = np.empty((n, 2))
    for i in range(n):
        grid[i, 0] = p.x * i
        grid[i, 1] = p.y / (i + 1.0)
    return Point(grid, p.x * p.y), {"mean": np.mean(grid), "name": "spread"}


def test_results_whose_size_only_the_call_knows(tmp_path: Path) -> None:
    f = tg.differentiable(spread)
    module = load(build(f, Point(0.5, 2.0), 3, directory=tmp_path))
    for n in (3, 7, 3):
        (grid, product), rest = module.spread(Point(0.5, 2.0), n)
        (expected, product_), rest_ = f(Point(0.5, 2.0), n)
        same(grid, expected)
        same(product, product_)
        same(rest, rest_)
    value, pullback = module.spread_vjp(Point(0.5, 2.0), 4)
    value_, pullback_ = f.vjp(Point(0.5, 2.0), 4)
    bar = (Point(np.full((4, 2), 0.5), 2.0), {"mean": 3.0, "name": None})
    found, expected = pullback(bar), pullback_((Point(np.full((4, 2), 0.5), 2.0), {"mean": 3.0, "name": "spread"}))
    same(tuple(found), tuple(expected))
    same(tuple(value[0]), tuple(value_[0]))
    with pytest.raises(ValueError, match="cotangent"):
        pullback((Point(np.ones((3, 2)), 2.0), {"mean": 3.0, "name": None}))
    assert not hasattr(module, "spread_grad")


def weighted(a, w):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += w[j] * a[i, j] ** 2
    return total


def test_strides(tmp_path: Path) -> None:
    big = np.random.default_rng(2).normal(size=(8, 12))
    a, w = big[::2, ::-3], np.arange(4.0)
    f = tg.differentiable(weighted, wrt=("a", "w"))
    module = load(build(f, a, w, directory=tmp_path))
    same(module.weighted_value_and_grad(a, w), f.value_and_grad(a, w))
    same(module.weighted_value_and_grad(np.asfortranarray(a), w)[1][0], f.grad(np.asfortranarray(a), w)[0])
    _, pullback = module.weighted_vjp(a, w)
    same(pullback(1.0)[0], f.grad(a, w)[0])


TABLE = np.array([0.25, -0.5, 2.0])


def looked_up(x):
    return np.sum(TABLE * x)


def test_arrays_from_outside_are_part_of_the_library(tmp_path: Path) -> None:
    module = load(build(looked_up, np.ones(3), directory=tmp_path))
    same(module.looked_up_grad(np.ones(3)), TABLE)


STRIDED = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-2]


def looked_up_across(x):
    return np.sum(STRIDED * x)


def kept_outside(x):
    TABLE[0] = x[0]
    return np.sum(TABLE * x)


def test_arrays_from_outside_in_any_order(tmp_path: Path) -> None:
    x = np.ones((2, 2, 3))
    module = load(build(looked_up_across, x, directory=tmp_path, modes=["grad"]))
    same(module.looked_up_across_grad(x), np.ascontiguousarray(STRIDED))
    with pytest.raises(BuildError, match="writes into 'TABLE'"):
        build(kept_outside, np.ones(3), directory=tmp_path, modes=["grad"])


def narrow(x):
    return np.sum(np.sin(x) * x)


def test_single_precision(tmp_path: Path) -> None:
    x = np.linspace(0, 1, 9, dtype=np.float32)
    f = tg.differentiable(narrow)
    module = load(build(f, x, directory=tmp_path, cpu="native"))
    same(module.narrow_value_and_grad(x), f.value_and_grad(x))


# ---- kernels -------------------------------------------------------------------------------------------------------


KERNELS = [info.name for info in pkgutil.iter_modules(benchmarks.kernels.__path__) if not info.name.startswith("_")]
QUICK = ("cholesky", "black_scholes")
PRODUCTS = ("mlp", "logreg", "trisolv", "gramschmidt", "lstm")  # their own loops add in another order than BLAS


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.compiled) for n in KERNELS])
def test_kernels_equal_the_compiled_gradient_bit_for_bit(name: str, tmp_path: Path) -> None:
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    f = tg.differentiable(kernel.f, wrt=kernel.WRT)
    module = load(build(f, *kernel.small(), directory=tmp_path, modes=["grad"], cpu="native"))
    found, expected = module.f_value_and_grad(*kernel.small()), f.value_and_grad(*kernel.small())
    if name not in PRODUCTS:
        same(found, expected)
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12 * np.max(np.abs(b), initial=1.0))


def leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [value]


# ---- where it runs, and what it is made of -------------------------------------------------------------------------


def test_the_module_needs_numpy_alone(heat: Path) -> None:
    text = f"""
        import sys
        sys.path.insert(0, {str(heat.parent)!r})
        import numpy as np
        import heat
        assert not {{"tapegen", "numba", "llvmlite", "scipy"}} & set(sys.modules)
        print(heat.march_grad(np.array([3.0, 1.0, 2.0, 0.5]), 0.2, 10.0)[1])
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(8.0)


def test_only_functions_of_the_header_can_be_seen(heat: Path) -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", heat.with_name("libheat.so")], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert names == {"heat_strerror", "heat_abi", "heat_march_tape_free"} | {
        f"heat_march_{role}" for role in ("value", "grad", "record", "pullback", "jvp", "hvp")
    }
    assert b"/" + str(heat.parent).encode() not in heat.with_name("libheat.so").read_bytes()


def test_the_description(heat: Path) -> None:
    about = json.loads(heat.with_suffix(".json").read_text())
    assert about["functions"][0]["function"] == "march"
    assert about["functions"][0]["modes"] == list(MODES)
    assert about["cpu"] == "native" and "sse3" in about["features"]
    assert "ValueError: u0 has an axis of size 1, which needs other code" in about["errors"].values()


def test_a_wheel_can_be_installed(portable: Path, tmp_path: Path) -> None:
    from tapegen.aot.packaging import wheel

    made = wheel(portable / "heat.py")
    assert made == wheel(portable / "heat.py")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
        assert archive.testzip() is None
    same(load(tmp_path / "heat.py").march_grad(U0, 0.2, 10.0), tg.grad(march, ("u0", "k"))(U0, 0.2, 10.0))


# ---- the command ---------------------------------------------------------------------------------------------------

SEVERAL = """
import numpy as np
from tapegen import differentiable


@differentiable(wrt=("x", "k"), signatures=["f8[:], f8", "f4[::1], f4"])
def energy(x, k):
    return k * np.sum(x * x)


@differentiable(signatures=["f8[::1], n=3"])
def power(x, n):
    return np.sum(x**n)
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "models.py").write_text(SEVERAL)
    out = tmp_path / "out"
    assert main(["build", str(tmp_path / "models.py"), "-o", str(out), "--pip"]) == 0
    listed = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert listed[:4] == ["models.py", "models.h", "libmodels.so", "models.json"] and listed[4].endswith(".whl")
    module = load(out / "models.py")
    x = np.arange(3.0)
    same(module.energy_grad(x, 2.0), (4.0 * x, 5.0))
    same(module.energy_2_grad(x.astype("f4"), np.float32(2.0))[0], (4 * x).astype("f4"))
    same(module.power_grad(x, 3), 3 * x**2)
    same(module.power_grad(x, 4), 4 * x**3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cpu", "pentium"], "pentium"),
        (["--blas", "cblas:/nowhere/libblas.so"], "no file"),
        (["--blas", "mkl"], "builtin or cblas"),
        (["--name", "rm -rf"], "prefix of C functions"),
        (["--mode", "fly"], "mode 'fly' is unknown"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture, arguments: list[str], text: str
) -> None:
    (tmp_path / "models.py").write_text(SEVERAL)
    assert main(["build", str(tmp_path / "models.py"), "-o", str(tmp_path / "out"), *arguments]) == 1
    said = capsys.readouterr().err
    assert text in said and "Traceback" not in said
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The C text that is part of each library, alone."""
    made = tmp_path_factory.mktemp("runtime") / "runtime.so"
    text = Path(entries.__file__).with_name("runtime.c")
    subprocess.run(["cc", "-std=c11", "-O1", "-fPIC", "-shared", "-w", "-o", made, text], check=True)
    return ctypes.CDLL(str(made))


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_views_of_another_shape_are_those_of_numpy(runtime: ctypes.CDLL, data: st.DataObject) -> None:
    factors = data.draw(st.lists(st.sampled_from([0, 1, 2, 2, 3]), max_size=5))
    split = [data.draw(st.integers(0, len(factors))) for _ in range(2)]
    old = [math.prod(part) for part in (factors[: min(split)], factors[min(split) : max(split)], factors[max(split) :])]
    new = data.draw(st.permutations([*factors, 1]))
    whole = np.arange(np.prod([2 * n for n in old], dtype=int)).reshape([2 * n for n in old])
    steps = [data.draw(st.sampled_from([1, 2, -1])) for _ in old]
    view = whole[tuple(slice(None, None, step) for step in steps)][tuple(slice(n) for n in old)]
    view = view.transpose(data.draw(st.permutations(range(3))))
    longs = [(ctypes.c_ssize_t * max(len(each), 1))(*each) for each in (view.shape, view.strides, new, [0] * len(new))]
    rank, new_rank, size = (ctypes.c_ssize_t(n) for n in (view.ndim, len(new), view.itemsize))
    found = runtime.numba_attempt_nocopy_reshape(rank, longs[0], longs[1], new_rank, longs[2], longs[3], size, 0)
    expected = view.reshape(new)
    assert found == (np.shares_memory(expected, view) or not view.size)
    if found and view.size:
        same(tuple(s for s, n in zip(longs[3], new) if n > 1), tuple(s for s, n in zip(expected.strides, new) if n > 1))


# ---- matrices ------------------------------------------------------------------------------------------------------


def solved(a, b):
    return np.sum(np.linalg.solve(a @ a.T + np.eye(len(b), dtype=a.dtype), b) ** 2)


def factorised(a, b):
    s = a @ a.T + np.eye(len(b), dtype=a.dtype)
    q, r = np.linalg.qr(s)
    u, w, v = np.linalg.svd(s, full_matrices=False)
    lam, _ = np.linalg.eigh(s)
    whole = np.linalg.cholesky(s) @ np.linalg.inv(s) + q @ r + u @ v
    return np.sum(np.linalg.solve(whole, b)) + np.linalg.det(s) + np.sum(w * lam) + b @ s @ b


def openblas() -> str:
    """The library in the wheel of scipy, with CBLAS and LAPACK."""
    found = sorted(Path(scipy.__file__).parent.with_name("scipy.libs").glob("libscipy_openblas-*.so"))
    if not found:
        pytest.skip("scipy has no OpenBLAS of its own here")
    return f"cblas:{found[0]}"


@pytest.mark.parametrize(
    ("func", "dtype"),
    [(solved, "f8"), *(pytest.param(factorised, dtype, marks=pytest.mark.compiled) for dtype in ("f8", "f4"))],
)
def test_lapack_of_a_library(func: Any, dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 4)).astype(dtype), rng.normal(size=4).astype(dtype)
    f = tg.differentiable(func, wrt=("a", "b"))
    module = load(build(f, a, b, directory=tmp_path, modes=["grad"], blas=openblas(), name="matrices"))
    gradient = getattr(module, f"{func.__name__}_value_and_grad")
    for one, other in zip(leaves(gradient(a, b)), leaves(f.value_and_grad(a, b)), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-11 if dtype == "f8" else 2e-3)
    with pytest.raises((ValueError, RuntimeError), match="infs or NaNs"):
        gradient(np.full((4, 4), np.nan, dtype), b)


def test_products_of_a_library(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    params, x = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}, rng.normal(size=(5, 3))
    f = tg.differentiable(network)
    module = load(build(f, params, x, directory=tmp_path, modes=["grad"], blas=openblas()))
    for one, other in zip(module.network_grad(params, x).values(), f.grad(params, x).values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_lapack_needs_a_library(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="LAPACK") as caught:
        build(solved, np.eye(3), np.ones(3), directory=tmp_path, modes=["grad"])
    assert "--blas cblas:PATH" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_libraries_that_do_not_fit(tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("no library")
    with pytest.raises(BuildError, match="is no library"):
        build(solved, np.eye(3), np.ones(3), directory=tmp_path / "out", blas=f"cblas:{text}")
    (tmp_path / "wide.c").write_text(
        "#include <stdint.h>\nvoid cblas_dgemm(void) {}\n"
        "double ddot_(int64_t *n, double *x, int64_t *i, double *y, int64_t *j)"
        "{ double sum = 0; for (int64_t k = 0; k < *n; k++) sum += x[k * *i] * y[k * *j]; return sum; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libwide.so", tmp_path / "wide.c"], check=True)
    with pytest.raises(BuildError, match="64 bits"):
        build(solved, np.eye(3), np.ones(3), directory=tmp_path / "out", blas=f"cblas:{tmp_path / 'libwide.so'}")


# ---- names ---------------------------------------------------------------------------------------------------------


def value(value, tape, found, shapes, seed, *primals, np=1.0, record=2.0, tangents):
    return sum(value**2) * tape * found * shapes * seed * np * record * primals[0] * tangents


def with_options(value, **tape):
    scale = tape.pop("tangents")
    return np.sum(value**2) * scale + tape["found"]["seed"]


def collected(*xs):
    return np.sum(xs[0] * xs[1])


def of_complex(x, z):
    return np.sum(x) * z[0].real


def test_what_no_library_can_be_built_of(tmp_path: Path) -> None:
    x = np.arange(3.0)
    module = load(build(collected, x, x + 1, directory=tmp_path))
    assert "collected_hvp" not in module.__all__
    same(module.collected_grad(x, x + 1), (x + 1, x))
    with pytest.raises(BuildError, match="no Hessian product by arguments that a function collects"):
        build(collected, x, x, directory=tmp_path / "out", modes=["hvp"])
    with pytest.raises(BuildError, match="complex"):
        build(of_complex, x, np.ones(1, complex), directory=tmp_path / "out", modes=["grad"])
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

    wanted = [Wanted(tg.differentiable(g), (np.ones(3),), {}, ("value", "grad")) for g in (f, f_grad, f)]
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


def test_the_module_knows_the_codes_of_the_library() -> None:
    assert {name: number for name, number, _ in STATUS}["SHAPE"] == loader._SHAPE
    assert loader._FIRST_ERROR == FIRST_ERROR > max(number for _, number, _ in STATUS)
    assert all(
        name.startswith("_")
        for name, each in vars(loader).items()
        if getattr(each, "__module__", "") == loader.__name__
    )


# ---- what goes wrong -----------------------------------------------------------------------------------------------


def test_a_library_that_is_built_again_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    found = []
    for factor in (1.0, 2.0, 3.0, 2.0):

        def f(x, factor=factor):
            return np.sum(x) * factor

        found.append(load(build(f, np.ones(3), directory=tmp_path, modes=["value"])).f(np.ones(3)))
    assert found == [3.0, 6.0, 9.0, 6.0]


def test_a_module_beside_a_library_of_another_build_is_refused(heat: Path, portable: Path, tmp_path: Path) -> None:
    shutil.copy(heat, tmp_path)
    shutil.copy(portable / "libheat.so", tmp_path)
    with pytest.raises(ImportError, match=r"libheat\.so is not the library"):
        load(tmp_path / "heat.py")


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "narrow.py"
    source.write_text("import numpy as np\n\n\ndef narrow(x):\n    return np.sum(x**2)\n")
    before = source.read_text()
    with pytest.raises(BuildError, match=r"narrow\.py exists"):
        build(narrow, np.ones(3), directory=tmp_path, modes=["value"])
    assert source.read_text() == before and [*tmp_path.iterdir()] == [source]
    assert main(["build", f"{source}::narrow", "--args", "f8[:]", "-o", str(tmp_path), "--mode", "value"]) == 1
    build(narrow, np.ones(3), directory=source.parent / "out", modes=["value"])
    build(narrow, np.ones(3), directory=source.parent / "out", modes=["value"])
    with pytest.raises(BuildError, match="cannot be written"):
        build(narrow, np.ones(3), directory=source, modes=["value"])
    assert default_name("signal") == "signal_grad" and default_name("heat") == "heat"
    with pytest.raises(NameConflict, match="numpy"):
        build(narrow, np.ones(3), directory=tmp_path / "out", name="numpy")


def test_an_argument_of_wrt_that_is_named_twice(tmp_path: Path) -> None:
    f = tg.differentiable(narrow, wrt=("x", 0))
    with pytest.raises(BadArgument, match="twice"):
        build(f, np.ones(3), directory=tmp_path, modes=["jvp"])


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


def test_an_array_of_many_axes(tmp_path: Path) -> None:
    def f(x):
        return np.sum(x * x)

    x = np.random.default_rng(5).normal(size=(1, 2, 1, 2, 1, 2, 1, 2, 2))
    module = load(build(f, x, directory=tmp_path, modes=["split"]))
    same(module.f_vjp(x)[1](1.0), 2 * x)


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no C compiler"):
        build(narrow, np.ones(3), directory=tmp_path, modes=["value"])


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
