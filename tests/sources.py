"""Modules made from text, and processes that tests start."""

from __future__ import annotations

import importlib.util
import linecache
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


def load(path: Path, text: str | bytes) -> ModuleType:
    """Write a file and import it as a module of its own."""
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def define(text: str, name: str = "f") -> object:
    """What `name` is after running a text as one notebook cell does."""
    text = textwrap.dedent(text)
    file = f"<cell {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, object] = {"__name__": "cell"}
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return namespace[name]


def python(*arguments: str, stdin: str = "") -> str:
    """The output of a Python process that can import the package under test."""
    done = subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, text=True, cwd=ROOT, check=False, timeout=60
    )
    return done.stdout + done.stderr


def ruff(*args: str, text: str) -> str:
    """What ruff makes of a text, of which it must not complain."""
    command = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    assert command is not None
    done = subprocess.run([command, *args, "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
