"""The cache on disk between processes: what a second one finds, and what it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tapegen.backend.background import availability
from tapegen.backend.cache import store
from tapegen.backend.cache.store import key_of

ROOT = Path(__file__).parents[2]
KEY = key_of("a test")


KERNEL = """
import numpy as np

SCALE = 3.0


def helper(x):
    return SCALE * x * x


def f(x):
    total = 0.0
    for i in range(x.size):
        total += helper(x[i])
    return total
"""
RUN = """
import json, sys, warnings
import numpy as np
import tapegen as tg
from tapegen.pipeline import compile as compiler
from numba.core.compiler import compile_extra
from tapegen.backend.numba.compiler import GeneratedCodeCompiler

work = {"derived": 0, "compiled": 0}
differentiate, pipelines = compiler.derive_reverse, GeneratedCodeCompiler.define_pipelines

def counted(*args, **kwargs):
    work["derived"] += 1
    return differentiate(*args, **kwargs)

def compiled(self):
    work["compiled"] += 1
    return pipelines(self)

compiler.derive_reverse, GeneratedCodeCompiler.define_pipelines = counted, compiled
sys.path.insert(0, FOLDER)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import kernel
    PREPARE
    f = tg.differentiable(kernel.f, **OPTIONS)
    value, gradient = f.value_and_grad(np.array([1.0, 2.0], DTYPE))
print(json.dumps([float(value), [float(g) for g in gradient], work["derived"], work["compiled"], len(said)]))
"""
RIGHT = [15.0, [6.0, 12.0]]


class Machine:
    """Runs the kernel in processes that share a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        (folder / "code").mkdir()
        self.write(KERNEL)

    def write(self, text: str, name: str = "kernel.py") -> None:
        (self.folder / "code" / name).write_text(text, encoding="utf-8")

    def start(
        self, *, code: str = "code", prepare: str = "pass", options: str = "{}", dtype: str = "float", **env: str
    ) -> subprocess.Popen[str]:
        text = RUN.replace("FOLDER", repr(str(self.folder / code))).replace("PREPARE", prepare)
        text = text.replace("OPTIONS", options).replace("DTYPE", repr(dtype))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TAPEGEN")},
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            store.FOLDER: str(self.cache),
            availability.SWITCH: "0",
            **env,
        }
        return subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True)

    def result(self, process: subprocess.Popen[str]) -> tuple[list[Any], int, int, int]:
        """Value and gradient; how many programs were derived and compiled; warnings."""
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        value, gradient, derived, compiled, said = json.loads(out)
        return [value, gradient], derived, compiled, said

    def run(self, **how: Any) -> tuple[list[Any], int, int, int]:
        return self.result(self.start(**how))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_second_process_derives_and_compiles_nothing(machine: Machine) -> None:
    assert machine.run() == (RIGHT, 1, 1, 0)
    assert machine.run() == (RIGHT, 0, 0, 0)
    # the same code elsewhere, two lines further down: by content, not by place (I 118, 122)
    (machine.folder / "elsewhere").mkdir()
    (machine.folder / "elsewhere" / "kernel.py").write_text("\n\n" + KERNEL, encoding="utf-8")
    assert machine.run(code="elsewhere") == (RIGHT, 0, 0, 0)
    assert machine.run(TAPEGEN_CACHE="0") == (RIGHT, 1, 1, 0)
    for path in machine.cache.iterdir():  # I 116
        path.write_bytes(path.read_bytes()[:-1])
    assert machine.run() == (RIGHT, 1, 1, 1)
    assert machine.run() == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
def test_what_the_function_depends_on(machine: Machine) -> None:
    """A callee, a global, a file of the same name elsewhere, an edited line."""
    machine.run()
    machine.write(KERNEL.replace("SCALE = 3.0", "SCALE = 5.0"))
    assert machine.run()[0] == [25.0, [10.0, 20.0]]
    machine.write(KERNEL.replace("x * x\n", "x * x * x\n"))
    assert machine.run()[0] == [27.0, [9.0, 36.0]]
    assert machine.run(prepare="kernel.SCALE = 1.0")[0] == [9.0, [3.0, 12.0]]
    machine.write("from other import helper\n" + KERNEL.replace("def helper", "def unused"))
    machine.write("def helper(x):\n    return 2.0 * x\n", "other.py")
    assert machine.run()[0] == [6.0, [2.0, 2.0]]
    machine.write("def helper(x):\n    return 4.0 * x\n", "other.py")
    assert machine.run()[0] == [12.0, [4.0, 4.0]]
    machine.write(KERNEL)
    assert machine.run() == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
def test_options_and_settings(machine: Machine) -> None:
    machine.run()
    for how in (
        {"options": "{'fastmath': True}"},
        {"dtype": "float32"},
        {"NUMBA_OPT": "1"},
        {"NUMBA_BOUNDSCHECK": "1"},
    ):
        first = machine.run(**how)  # type: ignore[arg-type]
        assert (first[0], first[2]) == (RIGHT, 1), how
        assert machine.run(**how) == (RIGHT, 0, 0, 0), how  # type: ignore[arg-type]


@pytest.mark.compiled
def test_another_cpu(machine: Machine) -> None:
    machine.run()
    assert machine.run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")[2] == 1
    assert machine.run() == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("module", ["numpy", "numba", "llvmlite", "scipy"])
def test_another_version(machine: Machine, module: str) -> None:
    machine.run()
    assert machine.run(prepare=f"import {module}; {module}.__version__ += '.1'")[2] == 1


def test_another_version_of_this_package(tmp_path: Path) -> None:
    """The key holds every file of the package."""
    copy = tmp_path / "tapegen"
    shutil.copytree(ROOT / "tapegen", copy, ignore=shutil.ignore_patterns("__pycache__"))
    print_base = "import tapegen.backend.cache.store as c; print(c.base().hex())"

    def base() -> str:
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.check_output([sys.executable, "-c", print_base], env=environment, cwd=tmp_path, text=True)

    old = time.time() - 1000
    first = base()
    assert base() == first
    file = copy / "transform" / "autodiff" / "zero_propagation.py"
    file.write_text(file.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    os.utime(file, (old, old))
    assert base() != first


@pytest.mark.compiled
def test_many_processes_at_once(machine: Machine) -> None:
    same = [machine.start() for _ in range(3)]
    other = [machine.start(dtype="float32"), machine.start(options="{'boundscheck': False}")]
    for process in [*same, *other]:
        found, _, compiled, said = machine.result(process)
        assert (found, said) == (RIGHT, 0)
        assert compiled <= 1
    assert machine.run() == (RIGHT, 0, 0, 0)
    assert machine.run(dtype="float32") == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
@pytest.mark.compiled
def test_loops_of_numpy_are_there_when_kept_code_comes(machine: Machine) -> None:
    machine.write(KERNEL.replace("    total", "    x = np.fft.irfft(np.fft.rfft(x), 2)\n    total", 1))
    assert machine.run() == (RIGHT, 1, 1, 0)
    assert machine.run() == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
def test_lapack_is_there_when_kept_code_comes(machine: Machine) -> None:
    solved = "linalg.solve_sylvester(np.eye(1), 0.0 * np.eye(2), x[None])[0]"
    text = KERNEL.replace("    total", f"    x = {solved}\n    total", 1)
    machine.write(f"from scipy import linalg\n{text}")
    assert machine.run() == (RIGHT, 1, 1, 0)
    assert machine.run() == (RIGHT, 0, 0, 0)


def test_killed_while_compiling(machine: Machine) -> None:
    for delay in (1.5, 2.0, 2.5, 3.0, 3.5):
        process = machine.start()
        time.sleep(delay)
        process.kill()
        process.communicate()
    found, _, _, said = machine.run()
    assert (found, said) == (RIGHT, 0)
    assert machine.run() == (RIGHT, 0, 0, 0)


PROGRAMS = """
import os, pickle, sys, warnings
from tests.test_programs import PROGRAMS
os.environ["TAPEGEN_CACHE"] = sys.argv[1]
warnings.simplefilter("ignore")
from tapegen.pipeline import compile as compiler
differentiate = compiler.derive_reverse
def counted(*args, **kwargs):
    print("derived", file=sys.stderr)
    return differentiate(*args, **kwargs)
compiler.derive_reverse = counted
for name in sys.argv[2:]:
    (program,) = [each for each in PROGRAMS if each.name == "language/" + name]
    function = program.decorated("numba")
    value, pullback = function.vjp(*program.args(), **program.kwargs())
    print(name, pickle.dumps((value, pullback(program.value_bar()))).hex())
    try:
        function(*[None for _ in program.args()])
    except Exception as error:
        print(type(error))
"""
KINDS = (
    "structures_in structures_out-in_for options assert_raise_print-at_top local_lists-in_for mutated_arguments-in_for "
    "np_products-in_branch float32-in_for numba_functions-in_for"
)


@pytest.mark.compiled
def test_programs_of_all_kinds_come_back_bit_for_bit(tmp_path: Path) -> None:
    def run(switch: str) -> tuple[str, str]:
        environment = {**os.environ, store.FOLDER: str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAMS, switch, *KINDS.split()],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr

    want, _ = run("0")
    assert run("1")[0] == want
    assert run("1") == (want, "")


def test_rules_of_users_are_not_kept(machine: Machine) -> None:
    """What is derived depends on them, and no key speaks of them."""
    machine.run()
    own = "exec(compile('def g(x):\\n    return x\\n', 'g', 'exec')); tg.partials(g)(lambda x: 1.0)"
    found = machine.run(prepare=own)
    assert found[:2] == (RIGHT, 1)
    assert machine.run() == (RIGHT, 0, 0, 0)


def test_whole_entries_of_another_kind_are_misses(machine: Machine) -> None:
    """Whatever an entry holds, only descriptions of types are made of it."""
    from tapegen.backend.cache.machine_code import _rebuilt

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(machine.folder / "evil"),)

    import pickle

    for data in (pickle.dumps(Evil()), b"", b"junk", pickle.dumps((1, 2, 3))):
        assert _rebuilt(data, KEY, None) is None
    assert not (machine.folder / "evil").exists()
