"""Shared libraries as tests load, call and compare them, and functions that several are built of."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy


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


def openblas() -> str:
    """The library in the wheel of scipy, with CBLAS and LAPACK."""
    found = sorted(Path(scipy.__file__).parent.with_name("scipy.libs").glob("libscipy_openblas-*.so"))
    if not found:
        pytest.skip("links the OpenBLAS that wheels of scipy bring; this scipy was built against another library")
    return f"cblas:{found[0]}"


def tangent_of(value: Any, rng: np.random.Generator) -> Any:
    """Random numbers in the structure of an argument."""
    if isinstance(value, dict):
        return {key: tangent_of(part, rng) for key, part in value.items()}
    return rng.normal(size=np.shape(value)) if np.ndim(value) else float(rng.normal())


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


def network(params, x, *, mode="tanh", power=2):
    h = x @ params["w"] + params["b"]
    h = np.tanh(h) if mode == "tanh" else np.maximum(h, 0.0)
    return np.sum(h**power)


def weighted(a, w):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += w[j] * a[i, j] ** 2
    return total


def narrow(x):
    return np.sum(np.sin(x) * x)


def leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, tuple) else [value]
