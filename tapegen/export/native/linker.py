"""Linking: C text and object files become a shared library, by the C compiler of the machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tapegen.errors import BuildError
from tapegen.export.native.object_code import NativeObject

_FLAGS = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-ident",
    "-Wl,-z,defs",
    "-Wl,--build-id=none",
)

_LAST_LINES = 8
"""Maximal length of the compiler's output in an error."""


def link(c_text: str, header: tuple[str, str], objects: Sequence[NativeObject], flags: Sequence[str] = ()) -> bytes:
    """A shared library.

    Parameters
    ----------
    c_text : str
        The C functions.
    header : (str, str)
        Name and text of the header that they include.
    objects : sequence of NativeObject
        The native functions.
    flags : sequence of str
        More arguments of the linker.

    Raises
    ------
    BuildError
        If there is no C compiler, or a function is missing in the library.
    """
    if not sys.platform.startswith("linux"):
        raise BuildError("libraries are built on Linux only.", "Use `tapegen write` and compile the module there.")
    try:
        command = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or ""]
    except ValueError as error:
        raise BuildError(f"CC is no command: {error}.", "Look at CC.") from None
    if not command[0]:
        raise BuildError("there is no C compiler.", "Install one (gcc, clang), or name it in the variable CC.")
    texts = {"interface.c": c_text.encode(), header[0]: header[1].encode()}
    names = [f"native_{k}.o" for k in range(len(objects))]
    texts |= {name: native.code for name, native in zip(names, objects, strict=True)}
    whole = [*command, *_FLAGS, "-s", "-o", "made.so", "interface.c", *names, *flags, "-lm"]
    try:
        with tempfile.TemporaryDirectory() as place:
            directory = Path(place)
            for name, data in texts.items():
                (directory / name).write_bytes(data)
            made = _run(whole, directory)
            if made.returncode:
                raise _failure(made, whole)
            if not (directory / "made.so").is_file():
                raise BuildError(f"the C compiler made no library: {shlex.join(whole)}.", "Look at CC.")
            return (directory / "made.so").read_bytes()
    except OSError as error:
        raise BuildError(f"there is no room for temporary files: {error}.", "Look at TMPDIR.") from None


def _run(command: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise BuildError(f"the C compiler '{command[0]}' does not run: {error}.", "Look at CC.") from None


def _failure(made: subprocess.CompletedProcess[str], command: Sequence[str]) -> BuildError:
    text = made.stderr
    missing = sorted(set(re.findall(r"undefined reference to [`'\"]([^'\"]+)", text)))
    if missing:
        return BuildError(
            f"the functions need code that a library cannot contain: {', '.join(missing)}.",
            "Such calls need Python; write the function without them.",
        )
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-_LAST_LINES:] or ["(no message)"]
    return BuildError(
        f"the C compiler failed with exit code {made.returncode}: {shlex.join(command)}",
        "\n".join([*(f"    {line}" for line in lines), "Look at CC, or whether the compiler is whole."]),
    )
