"""Shared libraries: built ahead of time, called from C, from C++, and from Python with NumPy alone."""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from examples.heat import march
from tapegen.cli import main
from tapegen.errors import BadArgument, BuildError, NameConflict
from tapegen.export.library import build, default_name
from tapegen.export.module import MODES
from tapegen.export.native.object_code import processor
from tests.libraries import load, narrow, run_program, same

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

U0 = np.array([3.0, 1.0, 2.0, 0.5])


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


STANDARDS = [("cc", name) for name in ("c89", "gnu89", "c99", "c11", "c17")] + [("c++", "c++98"), ("c++", "c++20")]


@pytest.mark.parametrize(("compiler", "standard"), STANDARDS)
def test_the_header_in_every_standard(portable: Path, compiler: str, standard: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(
            f"the header is read by {compiler}, which this machine does not have; tapegen itself needs cc alone"
        )
    flags = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only"]
    language = "c" if compiler == "cc" else "c++"
    command = [compiler, f"-std={standard}", *flags, "-x", language, str(portable / "heat.h")]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_a_cpp_program_does_too(portable: Path) -> None:
    run_program(portable, C_PROGRAM, "c++", "-std=c++17", suffix=".cpp")


FLOATS = """
#include <fenv.h>
#include <stdio.h>
#include <xmmintrin.h>
#include "heat.h"

int main(void) { /* all but the marks of what has happened: as the library is loaded, and as the caller sets it */
    double u0[4] = {3.0, 1.0, 2.0, 0.5}, u0_bar[4], energy, k_bar;
    if ((_mm_getcsr() & ~0x3fu) != 0x1f80 || fegetround() != FE_TONEAREST)
        return 1;
    unsigned modes[] = {0x1f80, 0x9fc0, 0x5f80}; /* as it is; denormals are zero; round up */
    for (int k = 0; k < 3; k++) {
        _mm_setcsr(modes[k]);
        if (heat_march_grad(u0, 4, 0.2, 10.0, &energy, u0_bar, &k_bar) != HEAT_OK)
            return 2;
        if ((_mm_getcsr() & ~0x3fu) != modes[k])
            return 3;
    }
    return 0;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks a processor of that kind")
def test_how_floats_are_rounded_stays_as_it_is(portable: Path) -> None:
    """J 131."""
    run_program(portable, FLOATS, "cc", suffix=".c", valgrind=False)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks a processor of that kind")
def test_a_machine_that_lacks_something_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """J 130: before anything runs."""
    newer = replace(processor("x86-64-v2"), features=("sse3", "fma4", "xop"))  # what no processor of today has
    monkeypatch.setattr("tapegen.export.library.processor", lambda name: newer)
    module = load(build(tg.differentiable(relax), np.ones(6), 3, 0.0, directory=tmp_path, modes=["value"]))
    u = np.ones(6)
    with pytest.raises(OSError, match="the library was built for another processor"):
        module.relax(u, 3, 0.0)
    np.testing.assert_array_equal(u, 1.0)


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


def test_d60_arrays_that_are_written_share_no_memory(tmp_path: Path) -> None:
    module = load(build(shifted, np.ones(4), np.ones(4), directory=tmp_path, modes=["grad"]))
    a = np.arange(8.0)
    with pytest.raises(ValueError, match="shares memory"):
        module.shifted_grad(a[:4], a[2:6])
    with pytest.raises(ValueError, match="shares memory"):
        module.shifted_grad(a[:4], a[:4])


def test_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "libraries.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parents[2] / "examples", "examples")
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
    assert listed[5].endswith(".tar.gz")
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
