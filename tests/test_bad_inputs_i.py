"""Section I of the catalogue of bad inputs: the cache on disk.  Each test is named after its number."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tapegen.backend import cache
from tapegen.backend.cache import Store, key_of
from tapegen.cli import main
from tapegen.errors import CacheWarning

ROOT = Path(__file__).parent.parent
KEY = key_of("a test")
OTHER = key_of("another test")
MB = 2**20

# ---- the files themselves ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "tapegen"


@pytest.fixture
def kept(folder: Path) -> Store:
    return Store(folder, 64 * MB)


@contextlib.contextmanager
def one_warning(text: str) -> Iterator[None]:
    with pytest.warns(CacheWarning, match=text) as found:
        yield
    assert len(found) == 1


def test_entries_come_back(kept: Store, folder: Path) -> None:
    assert kept.load(KEY) is None
    kept.save(KEY, b"contents")
    kept.save(OTHER, b"")
    assert (kept.load(KEY), kept.load(OTHER)) == (b"contents", b"")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


CALLS = ("mkdir", "open", "write", "close", "rename", "unlink", "scandir")


def killed(store: Store, monkeypatch: pytest.MonkeyPatch, at: int, *, before: bool) -> bool:
    """Save in a process that dies at one of its calls of the system; whether there were so many."""
    child = os.fork()
    if child == 0:
        count = 0

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count == at and before:
                    os._exit(9)
                result = call(*args, **kwargs)
                if count == at:
                    os._exit(9)
                return result

            return run

        try:
            for name in CALLS:
                monkeypatch.setattr(os, name, dying(getattr(os, name)))
            store.save(KEY, b"x" * 5000)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_i115_killed_at_any_moment_of_a_write(kept: Store, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    at, seen = 1, set()
    while killed(kept, monkeypatch, at, before=before):
        found = Store(kept.folder, kept.limit).load(KEY)
        seen.add(found)
        assert found in (None, b"x" * 5000)
        fresh = Store(kept.folder, kept.limit)
        fresh.save(KEY, b"x" * 5000)
        assert fresh.load(KEY) == b"x" * 5000
        shutil.rmtree(kept.folder)
        at += 1
    assert at > 5
    assert None in seen


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_i115_what_a_killed_writer_leaves_is_deleted(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert killed(kept, monkeypatch, 4, before=True)
    (left,) = kept.folder.iterdir()
    assert left.name.startswith(".")
    assert kept.entries() == []
    os.utime(left, (0, 0))
    kept.save(OTHER, b"new")
    assert [path.name for path in kept.folder.iterdir()] == [OTHER]


def test_i113_two_writers_of_one_key(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second writer comes in between any two calls of the first."""
    for name in CALLS:
        call = getattr(os, name)
        second = Store(kept.folder, kept.limit)
        inside = []

        def meeting(
            *args: Any, call: Any = call, second: Store = second, inside: list[int] = inside, **kwargs: Any
        ) -> Any:
            if not inside:
                inside.append(1)
                second.save(KEY, b"same")
                assert second.load(KEY) == b"same"
            return call(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, meeting)
            kept.save(KEY, b"same")
        assert kept.load(KEY) == b"same"
        assert [path.name for path in kept.folder.iterdir()] == [KEY]


def test_i116_damaged_files_are_misses(kept: Store) -> None:
    kept.save(KEY, bytes(range(256)) * 3)
    path = kept.folder / KEY
    whole = path.read_bytes()
    bad = [whole[:size] for size in (0, 1, 16, 79, 80, 81, len(whole) - 1)]
    bad += [whole + b"\0", b"something else", b"\0" * len(whole)]
    for position in range(0, len(whole), 7):
        bad.append(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    for data in bad:
        path.write_bytes(data)
        with one_warning("damaged"):
            fresh = Store(kept.folder, kept.limit)
            assert fresh.load(KEY) is None
            assert fresh.load(KEY) is None  # and says nothing more
    kept.save(KEY, b"anew")
    assert Store(kept.folder, kept.limit).load(KEY) == b"anew"


def test_i116_an_entry_under_the_key_of_another(kept: Store) -> None:
    kept.save(KEY, b"mine")
    shutil.copy(kept.folder / KEY, kept.folder / OTHER)
    with one_warning("damaged"):
        assert kept.load(OTHER) is None


def test_i116_what_is_no_file(kept: Store, tmp_path: Path) -> None:
    kept.save(OTHER, b"real")
    makers: list[Callable[[Path], Any]] = [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to(kept.folder / OTHER),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(tmp_path / "nowhere"),
    ]
    for make in makers:
        make(kept.folder / KEY)
        fresh = Store(kept.folder, kept.limit)
        with one_warning("the cache is not used"):
            assert fresh.load(KEY) is None
            with contextlib.suppress(OSError):
                fresh.save(KEY, b"new")
        path = kept.folder / KEY
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


class Failing:
    """Calls of the system that fail as they do on a bad disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, number: int) -> None:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("name", ["mkdir", "open", "write", "rename", "scandir"])
@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EIO"])
def test_i117_full_or_read_only(kept: Store, monkeypatch: pytest.MonkeyPatch, name: str, error: str) -> None:
    import errno

    with monkeypatch.context() as patch, one_warning("the cache is not used"):
        Failing(patch, name, getattr(errno, error))
        kept.save(KEY, b"contents")
        kept.save(OTHER, b"contents")
    monkeypatch.undo()
    left = list(kept.folder.iterdir()) if kept.folder.exists() else []
    assert [path for path in left if path.name.startswith(".")] == []
    fresh = Store(kept.folder, kept.limit)
    assert fresh.load(KEY) in (None, b"contents")


def test_i117_disk_full_halfway(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(handle: int, data: Any) -> int:
        if len(data) < 1000:
            raise OSError(28, "No space left on device")
        return write(handle, data[: len(data) // 2])

    with monkeypatch.context() as patch, one_warning("No space"):
        patch.setattr(os, "write", half)
        kept.save(KEY, b"x" * 5000)
    assert list(kept.folder.iterdir()) == []
    kept.save(KEY, b"x" * 5000)
    assert kept.load(KEY) == b"x" * 5000


def test_i117_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (cache.SWITCH, cache.FOLDER, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(cache, "_homeless", [])
    with one_warning("no home"):
        assert cache.store() is None
        assert cache.store() is None


def test_i117_home_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("", encoding="utf-8")
    with one_warning("the cache is not used"):
        store = Store(tmp_path / "home" / "tapegen", MB)
        store.save(KEY, b"x")
        store.save(KEY, b"x")
        assert store.load(KEY) is None


def test_i118_times_do_not_matter(kept: Store) -> None:
    kept.save(KEY, b"contents")
    for when in (0, 2**33):
        os.utime(kept.folder / KEY, (when, when))
        assert kept.load(KEY) == b"contents"


def test_i123_directory_deleted_while_running(kept: Store) -> None:
    kept.save(KEY, b"contents")
    shutil.rmtree(kept.folder.parent)
    assert kept.load(KEY) is None
    kept.save(KEY, b"contents")
    assert kept.load(KEY) == b"contents"


def test_i124_size_is_bounded_and_the_least_used_goes_first(folder: Path) -> None:
    kept = Store(folder, 1000 * 100)
    keys = [key_of(str(k)) for k in range(12)]
    for k, key in enumerate(keys):
        kept.save(key, b"x" * 10_000)
        with contextlib.suppress(FileNotFoundError):
            os.utime(folder / key, (k, k))
        kept.load(keys[0])  # in use all the time
    total = sum(path.stat().st_size for path in folder.iterdir())
    assert total <= 100_000
    assert kept.load(keys[0]) is not None
    assert kept.load(keys[-1]) is not None
    assert kept.load(keys[1]) is None


def test_i124_an_entry_larger_than_the_limit(folder: Path) -> None:
    kept = Store(folder, 10)
    kept.save(KEY, b"x" * 1000)
    assert kept.load(KEY) is not None
    kept.save(OTHER, b"x" * 1000)
    assert kept.load(KEY) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_i125_directory_that_others_can_write(kept: Store, mode: int) -> None:
    kept.save(KEY, b"contents")
    kept.folder.chmod(mode)
    with one_warning("others can write"):
        fresh = Store(kept.folder, kept.limit)
        assert fresh.load(KEY) is None
        fresh.save(OTHER, b"contents")
    assert not (kept.folder / OTHER).exists()


def test_i125_a_parent_that_others_can_write(tmp_path: Path) -> None:
    parent = tmp_path / "shared"
    parent.mkdir()
    parent.chmod(0o777)
    with one_warning("others can write into"):
        Store(parent / "tapegen", MB).save(KEY, b"contents")
    parent.chmod(0o1777)  # only owners rename here, as in /tmp
    Store(parent / "tapegen", MB).save(KEY, b"contents")


def test_i125_foreign_owners(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save(KEY, b"contents")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with one_warning("belongs to another user"):
        fresh = Store(kept.folder, kept.limit)
        assert fresh.load(KEY) is None
        fresh.save(OTHER, b"contents")


def test_i125_a_file_that_others_can_write(kept: Store) -> None:
    kept.save(KEY, b"contents")
    (kept.folder / KEY).chmod(0o666)
    with one_warning("others can write it"):
        assert kept.load(KEY) is None


def test_i125_the_directory_is_a_link(kept: Store, tmp_path: Path) -> None:
    kept.save(KEY, b"contents")
    (tmp_path / "link").symlink_to(kept.folder)
    with one_warning("no directory"):
        assert Store(tmp_path / "link", MB).load(KEY) is None


def test_the_command_shows_and_deletes(
    kept: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv(cache.FOLDER, str(kept.folder))
    assert main(["cache", "info"]) == 0
    assert "entries    0" in capsys.readouterr().out
    kept.save(KEY, b"x" * MB)
    (kept.folder / "not ours.txt").write_text("precious", encoding="utf-8")
    assert main(["cache", "info"]) == 0
    shown = capsys.readouterr().out
    assert "entries    1" in shown
    assert "1.0 MB of 512 MB" in shown
    assert main(["cache", "clear"]) == 0
    assert [path.name for path in kept.folder.iterdir()] == ["not ours.txt"]
    kept.folder.chmod(0o777)
    assert main(["cache", "clear"]) == 1
    assert "others can write into it" in capsys.readouterr().err


# ---- whole programs in processes of their own ----------------------------------------------------------------------

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
from tapegen import compiler
from numba.core.compiler import compile_extra
from tapegen.backend.located import LocatedCompiler

work = {"derived": 0, "compiled": 0}
differentiate, pipelines = compiler.differentiate, LocatedCompiler.define_pipelines

def counted(*args, **kwargs):
    work["derived"] += 1
    return differentiate(*args, **kwargs)

def compiled(self):
    work["compiled"] += 1
    return pipelines(self)

compiler.differentiate, LocatedCompiler.define_pipelines = counted, compiled
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
            cache.FOLDER: str(self.cache),
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
def test_i122_what_the_function_depends_on(machine: Machine) -> None:
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
def test_i121_options_and_settings(machine: Machine) -> None:
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
def test_i119_another_cpu(machine: Machine) -> None:
    machine.run()
    assert machine.run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")[2] == 1
    assert machine.run() == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("module", ["numpy", "numba", "llvmlite", "scipy"])
def test_i120_another_version(machine: Machine, module: str) -> None:
    machine.run()
    assert machine.run(prepare=f"import {module}; {module}.__version__ += '.1'")[2] == 1


def test_i120_another_version_of_this_package(tmp_path: Path) -> None:
    """The key holds every file of the package."""
    copy = tmp_path / "tapegen"
    shutil.copytree(ROOT / "tapegen", copy, ignore=shutil.ignore_patterns("__pycache__"))
    print_base = "import tapegen.backend.cache as c; print(c.base().hex())"

    def base() -> str:
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.check_output([sys.executable, "-c", print_base], env=environment, cwd=tmp_path, text=True)

    old = time.time() - 1000
    first = base()
    assert base() == first
    file = copy / "transform" / "zeros.py"
    file.write_text(file.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    os.utime(file, (old, old))
    assert base() != first


@pytest.mark.compiled
def test_i113_i114_many_processes_at_once(machine: Machine) -> None:
    same = [machine.start() for _ in range(3)]
    other = [machine.start(dtype="float32"), machine.start(options="{'boundscheck': False}")]
    for process in [*same, *other]:
        found, _, compiled, said = machine.result(process)
        assert (found, said) == (RIGHT, 0)
        assert compiled <= 1
    assert machine.run() == (RIGHT, 0, 0, 0)
    assert machine.run(dtype="float32") == (RIGHT, 0, 0, 0)


@pytest.mark.compiled
def test_i115_killed_while_compiling(machine: Machine) -> None:
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
from tapegen import compiler
differentiate = compiler.differentiate
def counted(*args, **kwargs):
    print("derived", file=sys.stderr)
    return differentiate(*args, **kwargs)
compiler.differentiate = counted
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
        environment = {**os.environ, cache.FOLDER: str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
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
    from tapegen.backend.machine import _rebuilt

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(machine.folder / "evil"),)

    import pickle

    for data in (pickle.dumps(Evil()), b"", b"junk", pickle.dumps((1, 2, 3))):
        assert _rebuilt(data, KEY, None) is None
    assert not (machine.folder / "evil").exists()


def test_warnings_name_the_line_of_the_user(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere" / "tapegen", MB)
    (tmp_path / "nowhere").write_text("", encoding="utf-8")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        store.save(KEY, b"")
    assert [each.filename for each in found] == [__file__]
