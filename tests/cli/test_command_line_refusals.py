"""What the command line says to arguments that make no sense: one block, an exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tapegen.cli import main

KERNEL = """import numpy as np


def f(x, k=2.0):
    return k * np.sum(x * x)


class Named:
    def __call__(self, x):
        return x * x


nameless = Named()


class Spring:
    def __init__(self, k):
        self.k = k

    def energy(self, x, *, scale=0.5):
        return scale * self.k * np.sum(x * x)


pull = Spring(3.0).energy
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, with files that are and are not what the commands want."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "syntax.py").write_text("def f(x:\n    return x\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\ndef f(x):\n    return x\n")
    (tmp_path / "nul.py").write_bytes(b"def f(x):\n    return x\n\0")
    (tmp_path / "raises.py").write_text("raise RuntimeError('a\\nb\\x1b[31m')\n")
    (tmp_path / "base.py").write_text("class Base(BaseException):\n    pass\n\n\nraise Base('x')\n")
    (tmp_path / "interrupt.py").write_text("raise KeyboardInterrupt\n")
    (tmp_path / "deep.py").write_text("def f():\n    f()\n\n\nf()\n")
    (tmp_path / "signatures.py").write_text(
        "import tapegen as tg\n\n\n@tg.differentiable(signatures=['f8[:', 'zz'])\ndef f(x):\n    return x * x\n"
    )
    (tmp_path / "text.txt").write_text("hello\n")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture, *arguments: str, code: int = 1) -> str:
    """What a command says as it refuses."""
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.err.strip() or said.out.strip()
    assert "Traceback" not in said.err and "not meant to happen" not in said.err
    assert "\x1b" not in said.err
    return said.err


COMMANDS = ("show", "write", "build", "check", "explain")
TARGETS = [
    *("kernel.py::nope", "kernel.py::", "kernel.py::f::g", "kernel.py::f.__code__", "kernel.py::np.zeros", "kernel.py"),
    *("", "::", "::f", ".", "nofile.py::f", "folder.py::f", "loop.py::f", "text.txt::f", "/dev/null::f"),
    *("syntax.py::f", "latin.py::f", "nul.py::f", "raises.py::f", "base.py::f", "deep.py::f", "signatures.py"),
    *("a\0b.py::f", "\udcff.py::f", "x" * 5000 + ".py::f"),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda text: ascii(text)[:30])
@pytest.mark.parametrize("command", COMMANDS)
def test_targets(folder: Path, capsys: pytest.CaptureFixture, command: str, target: str) -> None:
    refused(capsys, command, target, *(() if target == "signatures.py" else ("--args", "f8[:]")))


@pytest.mark.parametrize(
    "types",
    [
        *("", "f8[", "zz", "f8[:], f8, f8", "x=f8[:], x=f8", "*f8", "**f8", "f8[:]; import os", "f8)\n(f8", "\0"),
        *("{x}", "{**x}", "lambda: 1", "__import__('os')", "\udcff", "(" * 300 + "f8" + ")" * 300, "f8[0]", "f2"),
        f"f8[{','.join(':' * 70)}]",
    ],
    ids=lambda text: ascii(text)[:30],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_types(folder: Path, capsys: pytest.CaptureFixture, command: str, types: str) -> None:
    refused(capsys, command, "kernel.py::f", "--args", types)


@pytest.mark.parametrize("wrt", ["", ",", "zz", "-7", "99", "²", "--5", "1.5", "x\nk", "9" * 50])
@pytest.mark.parametrize("command", ["show", "write", "build", "explain"])
def test_wrt(folder: Path, capsys: pytest.CaptureFixture, command: str, wrt: str) -> None:
    refused(capsys, command, "kernel.py::f", "--args", "f8[:], f8", f"--wrt={wrt}")


@pytest.mark.parametrize(
    "output", ["folder.py", "/dev/null/x", "/proc/nowhere", "kernel.py", "z" * 300, "a\0b"], ids=ascii
)
def test_places_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture, output: str) -> None:
    refused(capsys, "write", "kernel.py::f", "--args", "f8[:]", "-o", output)
    if output != "kernel.py":
        refused(capsys, "explain", "kernel.py::f", "--args", "f8[:]", "--html", output)
    if output != "folder.py":
        refused(capsys, "build", "kernel.py::f", "--args", "f8", "--mode", "value", "-o", output)
    assert (folder / "kernel.py").read_text() == KERNEL


@pytest.mark.parametrize("kind", ["pipe", "/dev/full", "/dev/null"])
def test_what_is_no_file_is_neither_read_nor_replaced(folder: Path, capsys: pytest.CaptureFixture, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(folder / kind)
    before = os.lstat(kind)
    for more in ((), ("--check",)):
        assert "cannot be read: this is no file." in refused(
            capsys, "write", "kernel.py::f", "--args", "f8[:]", "-o", kind, *more
        )
    assert "no file" in refused(capsys, "explain", "kernel.py::f", "--args", "f8[:]", "--html", kind)
    assert (os.lstat(kind).st_ino, os.lstat(kind).st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize(("output", "code", "said"), [("> /dev/full", 1, "OSError: [Errno 28]"), (">&-", 0, "")])
def test_where_standard_output_goes(folder: Path, output: str, code: int, said: str) -> None:
    command = f"'{sys.executable}' -m tapegen show kernel.py::f --args 'f8[:]' {output}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, code)
    assert done.stderr.startswith(said)


@pytest.mark.parametrize("signatures", ["[3]", "[None]", "['f8[:]', b'f8']", "'f8'"])
def test_signatures_of_the_decorator(folder: Path, capsys: pytest.CaptureFixture, signatures: str) -> None:
    name = f"signatures_{abs(hash(signatures))}.py"
    text = (
        f"import tapegen as tg\n\n\n@tg.differentiable(signatures={signatures})\ndef f(x):\n    return (x * x).sum()\n"
    )
    (folder / name).write_text(text)
    for command in ("write", "build", "check"):
        refused(capsys, command, name)


def test_sizes_that_do_not_fit_into_memory(folder: Path, capsys: pytest.CaptureFixture) -> None:
    said = refused(capsys, "explain", "kernel.py::f", "--args", "f8[:,:,:,:,:,:]")
    assert "Give a smaller --size." in said
    refused(capsys, "check", "kernel.py::f", "--args", "f8[:]", "--size", "99999999999")
    refused(capsys, "check", "kernel.py::f", "--args", "f8[:]", "--points", "0")
    refused(capsys, "check", "kernel.py::f", "--args", "f8[:]", "--seed", "-1")
    refused(capsys, "explain", "kernel.py::f", "--args", "f8[:]", "--size", "-5")


def test_nothing_to_check(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert "no argument of f holds floats" in refused(capsys, "check", "kernel.py::f", "--args", "i8[:], i8")


def test_modes(folder: Path, capsys: pytest.CaptureFixture) -> None:
    said = refused(capsys, "build", "kernel.py::f", "--args", "f8", "--mode", "all")
    assert "The modes are value, grad, split, jvp, hvp." in said
    assert main(["write", "kernel.py::f", "--args", "f8[:]", "--mode", "grad,grad", "-o", "twice.py"]) == 0
    assert (folder / "twice.py").read_text().count("def f_value_and_grad") == 1
    assert main(["build", "kernel.py::f", "--args", "f8", "--mode", "value,value", "-o", "out"]) == 0


def test_what_no_library_can_be_made_in(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ("build", "kernel.py::f", "--args", "f8", "--mode", "value", "-o", "out")
    assert "the name has 300 letters" in refused(capsys, *build, "--name", "x" * 300)
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder / "nowhere"))
        assert "Look at TMPDIR" in refused(capsys, *build)
    monkeypatch.setenv("CC", 'cc "unclosed')
    assert "CC is no command" in refused(capsys, *build)


def test_objects_that_can_be_called(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["check", "kernel.py::nameless", "--args", "f8"]) == 0
    assert "__call__  x" in capsys.readouterr().out
    assert main(["check", "kernel.py::pull", "--args", "f8[:]"]) == 0
    assert [row.split()[1] for row in capsys.readouterr().out.splitlines()] == [
        *("argument", "x", "x", "scale", "scale"),
    ]


def test_an_interrupted_command_says_so(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(capsys, "show", "interrupt.py::f", "--args", "f8", code=130) == "interrupted\n"


@pytest.mark.parametrize("blas", ["", "cblas", "cblas:", "cblas:/dev/null", "cblas:.", "cblas:" + "x" * 5000])
def test_libraries_of_products(folder: Path, capsys: pytest.CaptureFixture, blas: str) -> None:
    refused(capsys, "build", "kernel.py::f", "--args", "f8[:]", "--blas", blas)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "kernel.py").chmod(0)
    refused(capsys, "show", "kernel.py::f", "--args", "f8")
