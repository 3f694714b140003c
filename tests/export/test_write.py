"""`tapegen write`: modules that need tapegen no more, and give what the decorator gives."""

from __future__ import annotations

import copy
import importlib.util
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.cli import main
from tapegen.pipeline.artifacts.execution import run
from tests.goldens import written_examples
from tests.test_programs import PROGRAMS

ROOT = Path(__file__).parents[2]
KERNEL = """
import numpy as np


def march(u0, k, cap):
    u = u0.copy()
    energy = 0.0
    i = 1
    while i < u.size and energy < cap:
        u[i] = u[i] + k * np.sin(u[i - 1] - u[i])
        energy = energy + u[i] * u[i]
        i = i + 1
    return energy
"""
TYPES = "f8[::1], f8, f8"


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command looks beside its file first; a `numpy.py` there must not reach the processes of other tests."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def write(folder: Path, text: str, *arguments: str, name: str = "kernel.py") -> str:
    """What the command prints for a file; a refusal fails."""
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    out = folder / "written.py"
    assert (
        main(["write", *(argument.replace("FILE", str(folder / name)) for argument in arguments), "-o", str(out)]) == 0
    )
    return out.read_text(encoding="utf-8")


def refusal(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """What the command says when it refuses."""
    assert main(["write", *arguments]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def load(path: Path) -> ModuleType:
    """Import a file; numba finds functions that call themselves by the name of their module."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernel(tmp_path: Path) -> ModuleType:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    return load(tmp_path / "kernel.py")


ARGS = (np.array([3.0, 1.0, 2.5, 0.5, -1.0]), 0.3, 100.0)
DOTS = (np.array([0.1, -0.2, 0.3, 0.4, -0.5]), 0.7)


def same(have: Any, want: Any) -> None:
    """Bit for bit."""
    assert len(have) == len(want)
    for a, b in zip(have, want, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("form", ["compiled", "readable"])
def test_written_functions_equal_the_decorator(tmp_path: Path, kernel: ModuleType, form: str) -> None:
    flags = ["--readable"] if form == "readable" else []
    write(
        tmp_path, KERNEL, "FILE::march", "--args", TYPES, "--wrt", "u0,k", "--mode", "value,grad,split,jvp,hvp", *flags
    )
    written = load(tmp_path / "written.py")
    backend = "python" if form == "readable" else "numba"
    march = tg.differentiable(kernel.march, wrt=(0, 1), backend=backend)
    value, gradient = march.value_and_grad(*ARGS)
    assert written.march(*ARGS) == value
    same(written.march_value_and_grad(*ARGS), (value, *gradient))
    assert written.march_value_and_grad(*ARGS, 2.0)[2] == 2.0 * gradient[1]
    energy, *kept = written.march_record(*ARGS)
    same((energy, *written.march_pullback(*kept, 0.5)), (value, *march.vjp(*ARGS)[1](0.5)))
    same(written.march_jvp(*ARGS, *DOTS), march.jvp(ARGS, (*DOTS, None)))
    product = written.march_hvp(*ARGS, *DOTS)
    same(product[:2], gradient)
    same(product[2:], tg.hvp(march, ARGS, (*DOTS, None), backend=backend))


def test_written_module_runs_without_tapegen(tmp_path: Path) -> None:
    write(tmp_path, KERNEL, "FILE::march", "--args", TYPES, "--wrt", "u0,k")
    program = (
        "import sys; sys.modules['tapegen'] = None; import numpy as np, written; "
        "print(written.march_value_and_grad(np.array([3.0, 1.0, 2.0]), 0.2, 10.0)[2])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) != 0.0


# programs of several kinds: structures, options, captured values, functions of the user's that are called as they are
SAMPLE = [
    *("language/structures_in", "language/options", "language/global_values-at_top"),
    *("language/mutated_arguments-in_for", "language/local_lists-in_for"),
    *("textbook/kalman_filter", "textbook/cubic_spline", "textbook/adaptive_simpson", "textbook/multigrid"),
    *("science/lattice_boltzmann", "science/barnes_hut_quadrants", "science/dopri_dense_event", "science/viterbi_path"),
]


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("form", ["readable", pytest.param("compiled", marks=pytest.mark.compiled)])
def test_written_programs_equal_the_decorator(tmp_path: Path, name: str, form: str) -> None:
    from tapegen.export.module import ExportRequest, module_text

    (program,) = [each for each in PROGRAMS if each.name == name]
    function = program.decorated("python" if form == "readable" else "numba")
    call = function._specialise(program.args(), program.kwargs())
    mode, scalar = ("grad", True) if program.is_scalar else ("split", False)
    text = module_text(
        [ExportRequest(function, program.args(), program.kwargs(), (mode,))], readable=form == "readable"
    )
    (tmp_path / "written.py").write_text(text, encoding="utf-8")
    written = load(tmp_path / "written.py")
    stages = call.program.stages(scalar=scalar)
    if scalar:
        found = getattr(written, stages.joint.name)(*copy.deepcopy(call.leaves()))
        same(found, run(call.program, "joint", [*copy.deepcopy(call.leaves()), 1.0]))
    else:
        found = getattr(written, stages.record.name)(*copy.deepcopy(call.leaves()))
        assert len(found) == len(run(call.program, "record", copy.deepcopy(call.leaves())))


def test_check_tells_stale_from_fresh(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    command = ["FILE::march", "--args", TYPES, "--readable"]
    text = write(tmp_path, KERNEL, *command)
    capsys.readouterr()
    arguments = [part.replace("FILE", str(tmp_path / "kernel.py")) for part in command]
    arguments += ["-o", str(tmp_path / "written.py"), "--check"]
    assert main(["write", *arguments]) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "kernel.py").write_text(KERNEL.replace("np.sin(", "np.tanh("), encoding="utf-8")
    sys.modules.pop("kernel", None)
    assert main(["write", *arguments]) == 1
    seen = capsys.readouterr()
    assert "\n-" in seen.out
    assert "\n+" in seen.out
    assert "np.tanh" in seen.out
    assert "stale" in seen.err
    assert (tmp_path / "written.py").read_text(encoding="utf-8") == text
    (tmp_path / "written.py").unlink()
    assert main(["write", *arguments]) == 1
    assert "missing" in capsys.readouterr().err


def test_the_head_names_the_primal_by_a_hash_of_its_text(tmp_path: Path) -> None:
    command = ("FILE::march", "--args", TYPES, "--readable")
    heads = []
    for name, text in (("one", KERNEL), ("two", KERNEL), ("three", KERNEL.replace("0.0", "0.5"))):
        heads.append(re.sub(r"\s+", " ", write(tmp_path, text, *command, name=f"{name}_march.py").partition("\n\n")[0]))
    assert re.fullmatch(r"# Generated by tapegen from march for \(f8\[::1\], f8, f8\), primal [0-9a-f]{12}\.", heads[0])
    assert heads[0] == heads[1] != heads[2]


def test_versions_and_functions_in_one_module(tmp_path: Path) -> None:
    text = """
    from tapegen import differentiable

    @differentiable(signatures=["f8[:], f8", "f4[:], f4"])
    def scaled(x, k):
        s = 0.0 * k
        for i in range(x.size):
            s += x[i] * k
        return s

    @differentiable(wrt="b", signatures=["f8, f8"])
    def product(a, b):
        return a * b
    """
    write(tmp_path, text, "FILE", "--readable", name="several_functions.py")
    written = load(tmp_path / "written.py")
    x = np.array([1.0, 2.0])
    same(written.scaled_value_and_grad(x, 3.0), (9.0, np.array([3.0, 3.0])))
    assert written.scaled_value_and_grad_2(x.astype(np.float32), np.float32(3.0))[1].dtype == np.float32
    assert written.product_value_and_grad(3.0, 5.0) == (15.0, 3.0)


@pytest.mark.parametrize("form", [pytest.param("compiled", marks=pytest.mark.compiled), "readable"])
def test_arguments_of_other_types_are_refused(tmp_path: Path, form: str) -> None:
    flags = ["--readable"] if form == "readable" else []
    write(tmp_path, KERNEL, "FILE::march", "--args", TYPES, "--mode", "grad,jvp", *flags)
    written = load(tmp_path / "written.py")
    for bad, error in (
        (ARGS[0].astype(np.float32), TypeError),
        (ARGS[0].astype(int), TypeError),
        (ARGS[0][::2], ValueError),
        (np.array([1.0]), ValueError),
    ):
        with pytest.raises(error, match="u0"):
            written.march_value_and_grad(bad, *ARGS[1:])
    with pytest.raises(TypeError, match="u0_dot"):
        written.march_jvp(*ARGS, np.array([1, 2, 3, 4, 5]))
    with pytest.raises(ValueError, match="u0_dot must have the shape of u0"):
        written.march_jvp(*ARGS, np.array([1.0, 2.0]))
    assert written.march_value_and_grad(ARGS[0], 1, 100)[0] == written.march_value_and_grad(ARGS[0], 1.0, 100.0)[0]


POWER = """
def power(x, n, flag=True):
    y = (x, 2.0 * x, 3.0 * x)
    return sum(y[:n]) if flag else -x
"""


def test_what_must_be_known_is_a_value_in_the_signature(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "powers.py"
    file.write_text(POWER, encoding="utf-8")
    said = refusal(capsys, f"{file}::power", "--args", "f8, i8")
    assert "'n' must be known" in said
    assert "n=" in said
    assert "'flag' must be known" in refusal(capsys, f"{file}::power", "--args", "f8, n=2, flag=b1")
    text = write(tmp_path, POWER, "FILE::power", "--args", "f8, n=2", "--readable", name="powers.py")
    assert "n is 2." in text
    assert "flag is True." in text
    assert load(tmp_path / "written.py").power_value_and_grad(5.0) == (15.0, 3.0)


DEFAULTS = """
import numpy as np

def scaled(x, base, k=2, n=3, on=True, top=np.inf, *, shift=-0.5):
    y = k * np.sum(x ** n) + shift
    return min(y, top) if n > 2 else base * y

def between(x, k=2.0, n=3.5, shift=1, huge=2**70):
    return x * k * n + shift + huge
"""


@pytest.mark.parametrize("form", [pytest.param("compiled", marks=pytest.mark.compiled), "readable"])
def test_numbers_have_the_defaults_of_the_function(tmp_path: Path, form: str) -> None:
    flags = ["--readable"] if form == "readable" else []
    types = "f8[:], f8, f8, i8, True, f8, shift=f8"
    write(tmp_path, DEFAULTS, "FILE::scaled", "--args", types, "--mode", "grad,jvp", *flags, name="defaults.py")
    text = (tmp_path / "written.py").read_text(encoding="utf-8")
    assert "def scaled_value_and_grad(x, base, k=2.0, n=3, top=np.inf, shift=-0.5, result_bar=1.0):" in text
    assert "def scaled_jvp(x, base, k, n, top, shift, x_dot):" in text  # a tangent has no default
    written = load(tmp_path / "written.py")
    x = np.array([1.0, 2.0])
    same(written.scaled_value_and_grad(x, 7.0), (17.5, np.array([6.0, 24.0])))
    same(written.scaled_value_and_grad(x, 7.0, 1, 2), (31.5, np.array([14.0, 28.0])))


def test_defaults_of_other_types_are_none(tmp_path: Path) -> None:
    text = write(tmp_path, DEFAULTS, "FILE::between", "--args", "f8, f8, i8, f8, f8", "--readable", name="between.py")
    assert "def between_value_and_grad(x, k, n, shift, huge, result_bar=1.0):" in text


def test_an_axis_of_size_one_has_a_signature_of_its_own(tmp_path: Path) -> None:
    text = """
    import numpy as np

    def f(a, b):
        return np.sum(a * b)
    """
    write(tmp_path, text, "FILE::f", "--args", "f8[1], f8[:]", "--wrt", "0,1", "--readable", name="units.py")
    written = load(tmp_path / "written.py")
    value, a_bar, b_bar = written.f_value_and_grad(np.array([2.0]), np.array([1.0, 3.0]))
    same((value, a_bar, b_bar), (8.0, np.array([4.0]), np.array([2.0, 2.0])))
    with pytest.raises(ValueError, match="axis 0 of a must have size 1"):
        written.f_value_and_grad(np.array([2.0, 3.0]), np.array([1.0, 3.0]))
    with pytest.raises(ValueError, match="b has an axis of size 1"):
        written.f_value_and_grad(np.array([2.0]), np.array([1.0]))


@pytest.mark.parametrize("value", ["s * s", "s.reshape(s.shape) ** 2"])
def test_an_array_without_axes_has_a_signature_of_its_own(tmp_path: Path, value: str) -> None:
    text = f"""
    import numpy as np

    def f(x, s):
        s[()] = 3.0 * x[0]
        for extent in s.shape:
            x = x * extent
        return np.sum(x) * ({value})
    """
    types = ("--args", "f8[:], f8[()]")
    write(tmp_path, text, "FILE::f", *types, "--wrt", "0", "--readable", name="no_axes.py")
    written = load(tmp_path / "written.py")
    found, x_bar = written.f_value_and_grad(np.array([1.0, 2.0]), np.array(5.0))
    same((found, x_bar), (27.0, np.array([63.0, 9.0])))
    with pytest.raises(TypeError, match="s must be an array of float64 with 0 axes"):
        written.f_value_and_grad(np.array([1.0, 2.0]), np.array([5.0]))


def test_a_file_that_is_not_ours_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    mine = tmp_path / "mine.py"
    mine.write_text("precious = 1\n", encoding="utf-8")
    said = refusal(capsys, f"{tmp_path}/kernel.py::march", "--args", TYPES, "-o", str(mine))
    assert "tapegen did not write it" in said
    assert mine.read_text(encoding="utf-8") == "precious = 1\n"
    said = refusal(capsys, f"{tmp_path}/kernel.py::march", "--args", TYPES, "-o", str(tmp_path / "no" / "such.py"))
    assert "cannot be written" in said


@pytest.mark.parametrize(
    "name", ["-rf.py", "a b; echo.py", "line\nbreak.py", "naïve \x1b[31m.py", "numpy.py", "import.py"]
)
def test_file_names_are_data(tmp_path: Path, name: str) -> None:
    """J 127, 128."""
    text = write(tmp_path, KERNEL, "FILE::march", "--args", TYPES, "--readable", name=name)
    assert load(tmp_path / "written.py").march_value_and_grad(*ARGS)
    assert text.isascii()
    assert np.__name__ == sys.modules["numpy"].__name__
    hostile = tmp_path / f"out {name}"
    assert main(["write", f"{tmp_path / name}::march", "--args", TYPES, "--readable", "-o", str(hostile)]) == 0
    assert hostile.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "text", ["", "f9", "f8[", "f8[:,2]", "__import__('os')", "**f8", "f8)(f8", "lambda: 0", "\0", "{**f8}"]
)
def test_signatures_are_data(tmp_path: Path, capsys: pytest.CaptureFixture, text: str) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    said = refusal(capsys, f"{tmp_path}/kernel.py::march", "--args", text)
    assert said.startswith("BadArgument: ")


def test_committed_modules_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    commands = written_examples()
    assert len(commands) == 3
    for command in commands:
        assert main([*command, "--check"]) == 0
