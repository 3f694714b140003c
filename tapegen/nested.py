"""Derivatives inside differentiated functions: derived programs as Python functions that are lowered again."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType

from tapegen import compiler
from tapegen.backend.build import build_python
from tapegen.backend.emit import emit
from tapegen.ir.nodes import Function, Var

__all__ = ["PIPELINE"]


class _Pipeline:
    """See `tapegen.ir.protocols.Pipeline`; one text for one program."""

    def __init__(self) -> None:
        self._texts: dict[object, FunctionType] = {}

    def reverse(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        return self._built(compiler.differentiate(function, wrt, active, frozenset()).joint, modules)

    def forward(
        self, function: Function, wrt: tuple[Var, ...], active: tuple[bool, ...], modules: Mapping[str, str]
    ) -> FunctionType:
        return self._built(compiler.push_forward(function, wrt, active, frozenset()), modules)

    def _built(self, function: Function, modules: Mapping[str, str]) -> FunctionType:
        source = emit(function, modules=modules, marks=True)
        key = (source.text, tuple((name, id(value)) for name, value in source.namespace.items()))
        if key not in self._texts:
            built = build_python(source)
            assert isinstance(built, FunctionType)
            self._texts[key] = built
        return self._texts[key]


PIPELINE = _Pipeline()
