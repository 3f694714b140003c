"""Libraries that pip installs: wheels, and source distributions that make the same wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tapegen.aot import build
from tapegen.export.wheel import source_distribution, wheel
from tests.libraries import load

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def squares(x):
    return np.sum(x * x)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word of C becomes a name with an underscore, with which no distribution may end."""
    return build(squares, np.ones(3), directory=tmp_path_factory.mktemp("library"), name="double_", modes=["grad"])


def test_a_wheel_can_be_installed(module: Path, tmp_path: Path) -> None:
    made = wheel(module, tmp_path)
    assert re.fullmatch(r"double-0\.\d+-py3-none-\w+\.whl", made.name)
    (tmp_path / "again").mkdir()
    assert made.read_bytes() == wheel(module, tmp_path / "again").read_bytes()
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
        assert archive.testzip() is None
    installed = load(tmp_path / "double_.py")
    assert installed.__all__ == ["squares_value_and_grad", "squares_grad"]
    assert installed.squares_grad(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_a_source_distribution_makes_the_same_wheel(module: Path, tmp_path: Path) -> None:
    """As pip does, with nothing but Python."""
    direct, source = wheel(module, tmp_path), source_distribution(module, tmp_path)
    filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, **filtered)
    root = tmp_path / source.name.removesuffix(".tar.gz")
    asked = tomllib.loads((root / "pyproject.toml").read_text())
    assert asked["build-system"]["requires"] == []
    backend = asked["build-system"]["build-backend"]
    text = f"import sys; sys.path.insert(0, '.'); import {backend} as b; print(b.build_wheel('.'), b.build_sdist('.'))"
    made = subprocess.check_output([sys.executable, "-I", "-S", "-c", text], cwd=root, text=True).split()
    assert made == [direct.name, source.name]
    assert (root / made[0]).read_bytes() == direct.read_bytes()
    assert (root / made[1]).read_bytes() == source.read_bytes()
