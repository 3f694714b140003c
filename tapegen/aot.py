"""Ahead of time: `tapegen.aot.build` makes a shared library of derivatives, with a C header and a Python module."""

from tapegen.export.library import build

__all__ = ["build"]
