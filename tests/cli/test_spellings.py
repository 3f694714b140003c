"""The command line as people type it: versions, numba's names of types, sizes of arguments, targets without a file."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tapegen.cli import main
from tapegen.cli.axis_sizes import read_sizes
from tapegen.cli.signature import signature_of

KERNEL = """import numpy as np


def loss(x, params, k=2.0):
    total = 0.0
    for i in range(x.shape[0]):
        total = np.sin(total) + k * params["w"] @ x[i]
    return total
"""
TYPES = "float64[:,:], {'w': f8[:], 'b': f8[:,:]}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fit.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_version(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"tapegen {version('tapegen')} (Python 3.")
    assert f"numba {version('numba')}, numpy {np.__version__}" in said


@pytest.mark.parametrize(
    ("short", "long"),
    [
        *(("f8", "float64"), ("f4[:]", "float32[:]"), ("i8", "int64"), ("i8", "intp"), ("i4[::1]", "numba.int32[::1]")),
        *(("c16[:,::1]", "nb.complex128[:, ::1]"), ("b1", "boolean"), ("u1[:]", "types.uint8[:]"), ("f8", "double")),
    ],
)
def test_names_of_numba(short: str, long: str) -> None:
    (one,), (other,) = signature_of(short).args, signature_of(long).args
    assert type(one) is type(other)
    assert np.asarray(one).dtype == np.asarray(other).dtype
    assert np.shape(one) == np.shape(other)


def test_sizes_per_argument() -> None:
    sizes = read_sizes(["7", "x=4000,3", "params.w=3"], ["x", "params", "k"], 100)
    x, params = signature_of(TYPES, sizes=sizes).args
    assert (x.shape, params["w"].shape, params["b"].shape) == ((4000, 3), (3,), (7, 7))
    (x,) = signature_of("f8[1,:]", sizes=read_sizes(["x=5"], ["x"], 100)).args
    assert x.shape == (1, 5)
    named = signature_of("x=f8[:]", sizes=read_sizes(["x=6"], ["x"], 100)).kwargs
    assert named["x"].shape == (6,)


def test_explain_takes_sizes_per_argument(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["explain", "fit.py::loss", "--args", TYPES, "--size", "x=4000,3", "--size", "params.w=3"]) == 0
    assert "32,000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("y=3", "--size names 'y', which is no argument.\nThe arguments are x, params, k."),
        ("4000,3", "--size 4000,3 gives no sizes.\nWrite --size 100 for every axis, --size x=4000,3 for"),
        ("x=0,3", "gives no sizes"),
        ("x=a", "gives no sizes"),
        ("x=4,3,2", "--size gives 4, 3, 2 for an array [:, :].\nGive one size for each axis"),
    ],
)
def test_wrong_sizes(folder: Path, capsys: pytest.CaptureFixture, size: str, said: str) -> None:
    assert main(["explain", "fit.py::loss", "--args", TYPES, "--size", size]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("fit.py", "'fit.py' is a file, and which function of it is meant is missing.\nWrite fit.py::FUNCTION."),
        ("loss", "'loss' is no file; a function is named with its file.\nWrite FILE.py::loss."),
        ("::loss", "'::loss' names no file.\nWrite FILE.py::loss."),
        ("fitt.py::loss", "there is no file 'fitt.py' in "),
        ("/fitt.py", "there is no file '/fitt.py'.\n"),
    ],
)
def test_targets_without_a_file_or_a_function(
    folder: Path, capsys: pytest.CaptureFixture, target: str, said: str
) -> None:
    assert main(["explain", target, "--args", TYPES]) == 1
    assert said in capsys.readouterr().err


def test_what_was_written_where(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["write", "fit.py::loss", "--args", TYPES, "--mode", "grad,jvp", "-o", "out.py"]) == 0
    assert capsys.readouterr().out == f"out.py: grad, jvp of loss({TYPES})\n"
    assert main(["explain", "fit.py::loss", "--args", TYPES, "--html", "loss.html"]) == 0
    assert capsys.readouterr().out == "loss.html: what loss records, with both sweeps side by side\n"
