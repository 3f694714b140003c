"""`alias.scope` and `noalias` metadata: the optimizer is told which arrays of compiled code do not alias.

numba emits none, so that LLVM reloads an element after every store into any other array, and compares the ends of all
arrays of a loop before it vectorizes - or does not vectorize, where there are more than a few.  In generated source
arrays come from four sources: arguments, which do not overlap where one of them is written; new arrays; views of
others; and items of containers.  So two variables share memory only if one is derived from the other, in any number of
steps.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite.ir import LoadInstr, Module, StoreInstr
from numba.core import ir, types

from tapegen.backend.numba.library.matrix_products import product, solve
from tapegen.ir.disjoint_sets import DisjointSets

_MOST = 64
"""Arrays that get metadata; each access names all others."""

_NEW = frozenset({product, solve, np.copy, np.empty_like, np.zeros_like, np.ones_like, np.full_like})
"""Functions whose result shares no memory with their arguments."""


def alias_groups(func_ir: Any, typemap: Mapping[str, Any]) -> dict[str, str]:
    """The variables of arrays that are indexed, each with the representative of its alias set.

    Parameters
    ----------
    func_ir : numba.core.ir.FunctionIR
        A function in numba's IR.
    typemap : mapping of str to numba type
        The types of its variables.
    """
    sets = DisjointSets[str]()

    def join(names: list[str]) -> None:
        for name in names[1:]:
            sets.join(names[0], name)

    def places(names: list[Any]) -> list[str]:
        return [var.name for var in names if not _is_plain(typemap[var.name])]

    leaving = _returned(func_ir)
    constants: list[str] = []
    indexed: dict[str, None] = {}
    for block in func_ir.blocks.values():
        for stmt in block.body:
            if isinstance(stmt, ir.Assign):
                if stmt.target.name in leaving and _is_moved(stmt.value):
                    continue  # nothing in the function unpacks the results again
                target = places([stmt.target])
                read = places(_read(stmt.value))
                if isinstance(stmt.value, ir.Expr) and stmt.value.op in ("getitem", "static_getitem"):
                    indexed[stmt.value.value.name] = None
                if isinstance(stmt.value, ir.Global | ir.FreeVar | ir.Const):
                    constants += target
                if target and not _makes_new(stmt.value, typemap):
                    join([*target, *read])
                elif any(not isinstance(typemap[name], types.Array | types.BoundFunction) for name in read):
                    join(read)  # a container may keep a reference to its items
            elif isinstance(stmt, ir.SetItem | ir.StaticSetItem) and _is_array(typemap[stmt.target.name]):
                indexed[stmt.target.name] = None
            else:
                join(places(stmt.list_vars()))
    join(constants)
    return {name: sets.find(name) for name in indexed if _is_array(typemap[name])}


def _returned(func_ir: Any) -> set[str]:
    """Variables that are returned, and have no other use."""
    readers: dict[str, list[Any]] = {}
    for block in func_ir.blocks.values():
        for stmt in block.body:
            if not isinstance(stmt, ir.Del):
                read = _read(stmt.value) if isinstance(stmt, ir.Assign) else stmt.list_vars()
                for var in read:
                    readers.setdefault(var.name, []).append(stmt)

    def leaves(name: str) -> bool:
        return all(
            isinstance(stmt, ir.Return)
            or (isinstance(stmt, ir.Assign) and getattr(stmt.value, "op", "") == "cast" and leaves(stmt.target.name))
            for stmt in readers.get(name, ())
        )

    return {name for name in readers if leaves(name)}


def _is_moved(value: Any) -> bool:
    return isinstance(value, ir.Var) or getattr(value, "op", "") in ("build_tuple", "cast")


def _read(value: Any) -> list[Any]:
    if isinstance(value, ir.Var):
        return [value]
    return value.list_vars() if isinstance(value, ir.Expr) else []


def _is_array(type_: Any) -> bool:
    return isinstance(type_, types.Array)


def _is_plain(type_: Any) -> bool:
    """Whether a value holds no memory that can be written elsewhere."""
    if isinstance(type_, types.BaseTuple):
        items: Any = type_
        return all(map(_is_plain, items))
    if isinstance(type_, types.Omitted | types.Optional):
        return isinstance(type_, types.Omitted) or _is_plain(type_.type)
    return isinstance(type_, _PLAIN)


_PLAIN = (
    *(types.Number, types.Boolean, types.NoneType, types.UnicodeType, types.Literal, types.SliceType),
    *(types.Function, types.Dispatcher, types.Module, types.DType, types.NumberClass, types.RangeType),
    *(types.RangeIteratorType, types.ExternalFunction, types.Phantom),
)


def _makes_new(value: Any, typemap: Mapping[str, Any]) -> bool:
    """Whether the value is an array that has no other reference."""
    if not isinstance(value, ir.Expr) or value.op != "call":
        return False
    func = typemap[value.func.name]
    if isinstance(func, types.BoundFunction):
        return bool(func.typing_key == "array.copy")
    return isinstance(func, types.Function) and func.typing_key in _NEW


class Scopes:
    """The metadata of the accesses of one function.

    Parameters
    ----------
    module : llvmlite.ir.Module
        The module of the function.
    name : str
        A unique name for the function.
    groups : mapping of str to str
        Arrays by alias sets that share no memory (`alias_groups`).
    """

    def __init__(self, module: Module, name: str, groups: Mapping[str, str]) -> None:
        self.groups = groups
        found = list(dict.fromkeys(groups.values()))
        self._metadata: dict[str, tuple[Any, Any]] = {}
        if not 1 < len(found) <= _MOST:
            return
        domain = module.add_metadata([f"arrays of {name}"])
        scopes = {group: module.add_metadata([f"{group} of {name}", domain]) for group in found}
        for group in found:
            others = [scope for other, scope in scopes.items() if other != group]
            self._metadata[group] = module.add_metadata([scopes[group]]), module.add_metadata(others)

    def mark(self, instruction: Any, array: str) -> None:
        """Attach metadata to an instruction that accesses an array."""
        if isinstance(instruction, LoadInstr | StoreInstr) and (found := self._metadata.get(self.groups[array])):
            own, others = found
            instruction.set_metadata("alias.scope", own)
            instruction.set_metadata("noalias", others)
