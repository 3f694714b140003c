"""The text that is made for numba, run by CPython: what the loop passes do, without the seconds that numba takes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tapegen.backend.numba.build import build_python
from tapegen.backend.printer.source import PythonSource
from tapegen.pipeline.artifacts import executables

_IMPORT, _NOTHING = "from numba import njit", "njit = lambda **options: lambda function: function"


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Let CPython run what numba would compile."""

    def build(source: PythonSource, **_: object) -> Callable[..., Any]:
        return build_python(dataclasses.replace(source, text=source.text.replace(_IMPORT, _NOTHING)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(executables, "build_numba", build)
        yield
