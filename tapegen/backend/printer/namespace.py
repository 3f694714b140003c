"""Namespace of generated source other than the program's variables: modules, builtins, functions, classes.

Objects are found by identity, never by spelling, and get a name that no variable of the program uses: if the program
has a local called `np` or `range`, the source contains `import numpy as np_1` or `range_1 = range`.
"""

from __future__ import annotations

import ast
import builtins
import logging
import re
import sys
from collections.abc import Hashable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tapegen.ir import intrinsics
from tapegen.rules.external_functions import matrices, numbers

_LIBRARIES = ("numpy", "math", "cmath", "scipy.special", "scipy")
_SPELLING: dict[Any, str] = {np.absolute: "abs", np.conjugate: "conj", np.remainder: "mod", np.bool_: "bool_"}
_KNOWN = frozenset({"builtins", "numpy", "scipy", "math", "cmath", "logging", "warnings"})
_THROUGH_NUMPY = (
    *("numpy.linalg", "numpy.fft", "numpy.random", "numpy.polynomial"),
    *("numpy.lib", "numpy.lib.stride_tricks"),
)


class Namespace:
    """Imports and other names that a source needs, collected while its functions are printed.

    Parameters
    ----------
    taken : iterable of str
        Names of the program: variables, functions.
    aliases : mapping of str to str
        The aliases of modules in the user's program (`{"numpy": "np"}`), through which their functions are spelled.
    given : iterable of (str, object)
        Names that the program provides, such as functions that are called as they are.
    """

    def __init__(
        self, taken: Iterable[str], aliases: Mapping[str, str], given: Iterable[tuple[str, object]] = ()
    ) -> None:
        self.taken = set(taken)
        self._pi = "math" if "math" in aliases and "numpy" not in aliases else "numpy"
        self.aliases = {"numpy": "np", **aliases}
        self.objects: dict[str, object] = {}  # name -> object that must be supplied to the source
        self._names: dict[int, tuple[str, object]] = {}  # id of such an object -> its name (and the object, kept alive)
        self._modules: dict[str, str] = {}
        self._imported: dict[tuple[str, str], str] = {}
        self._builtins: dict[str, str] = {}
        for name, value in given:
            if self._public(value) is None and id(value) not in self._names:
                self._give(name, value)

    def fresh(self, name: str) -> str:
        """`name`, or the first of `name_1`, `name_2`, ... that is free; taken from now on."""
        candidate, count = name, 0
        while candidate in self.taken:
            count += 1
            candidate = f"{name}_{count}"
        self.taken.add(candidate)
        return candidate

    # ---- references ----

    def numpy(self, name: str) -> ast.expr:
        """`np.name`."""
        return ast.Attribute(self.module("numpy"), name)

    def pi(self) -> ast.expr:
        """`np.pi`, or `math.pi` where that is the only numeric module of the user's program."""
        return ast.Attribute(self.module(self._pi), "pi")

    def builtin(self, name: str) -> ast.expr:
        """A builtin function or class."""
        if name not in self._builtins:
            self._builtins[name] = self.fresh(name)
        return ast.Name(self._builtins[name])

    def imported(self, module: str, name: str) -> ast.expr:
        """An object imported by name (`from numba import njit`)."""
        if (module, name) not in self._imported:
            self._imported[module, name] = self.fresh(name)
        return ast.Name(self._imported[module, name])

    def module(self, name: str) -> ast.expr:
        """A module, by its alias or as an attribute of NumPy."""
        if name in _THROUGH_NUMPY and name not in self.aliases:
            parent, _, last = name.rpartition(".")
            return ast.Attribute(self.module(parent), last)
        if name not in self._modules:
            self._modules[name] = self.fresh(self.aliases.get(name, name.rpartition(".")[2]))
        return ast.Name(self._modules[name])

    def reference(self, value: Any) -> ast.expr:
        """The spelling of a function, class or module in the source."""
        if id(value) in self._names:
            return ast.Name(self._names[id(value)][0])
        public = self._public(value)
        owner = getattr(value, "__self__", None)
        if isinstance(owner, logging.Logger) and logging.getLogger(owner.name) is owner:
            found = ast.Call(ast.Attribute(self.module("logging"), "getLogger"), [ast.Constant(owner.name)], [])
            return ast.Attribute(found, value.__name__)
        if public is None:
            return ast.Name(self._give(_identifier(getattr(value, "__name__", "")), value))
        module, *path = public
        node = self.builtin(path.pop(0)) if module == "builtins" else self.module(module)
        for name in path:
            node = ast.Attribute(node, name)
        return node

    def _public(self, value: Any) -> tuple[str, ...] | None:
        """Module and attributes by which anyone can import an object."""
        if isinstance(value, ModuleType):
            return (value.__name__,)
        name = str(getattr(value, "__name__", ""))
        if isinstance(value, Hashable):
            name = _SPELLING.get(value, name)
        owner = getattr(value, "__self__", None)
        if isinstance(owner, np.ufunc):  # np.add.at
            path = self._public(owner)
            return None if path is None else (*path, name)
        for module in _homes(value, tuple(self.aliases)) if name else ():
            if getattr(sys.modules.get(module), name, None) is value:
                return (module, name)
        return None

    def _give(self, name: str, value: object) -> str:
        if hasattr(builtins, name):  # a user's object called `sum` is not the builtin
            name += "_"
        name = self.fresh(name)
        self.objects[name] = value
        self._names[id(value)] = (name, value)
        return name

    # ---- the header ----

    def import_lines(self) -> list[str]:
        """Import statements in isort's order, then names for shadowed builtins."""
        groups: dict[bool, list[tuple[bool, str, str]]] = {False: [], True: []}  # third party? -> (from?, key, line)
        for module, alias in self._modules.items():
            package, _, last = module.rpartition(".")
            as_ = "" if alias == last else f" as {alias}"
            line = f"from {package} import {last}{as_}" if package else f"import {module}{as_}"
            groups[_is_third_party(module)].append((bool(package), f"{package or module} {last}", line))
        for (module, name), alias in self._imported.items():
            as_ = "" if alias == name else f" as {alias}"
            groups[_is_third_party(module)].append((True, f"{module} {name}", f"from {module} import {name}{as_}"))
        sections = [_joined(sorted(group)) for group in groups.values() if group]
        renamed = [f"{alias} = {name}" for name, alias in sorted(self._builtins.items()) if alias != name]
        if renamed:
            sections.append(renamed)
        lines: list[str] = []
        for section in sections:
            lines += ["", *section] if lines else section
        return lines


def _homes(value: object, more: tuple[str, ...]) -> list[str]:
    """Modules that may export an object, the likeliest first."""
    home = str(getattr(value, "__module__", None) or "").partition("._")[0].removeprefix("_")
    known = home.partition(".")[0] in _KNOWN or home in more
    if isinstance(value, FunctionType) and (value in numbers() or value in matrices()):  # of tapegen itself
        known = True
    if value is intrinsics.tell or value is intrinsics.run_chunks:  # in compiled source
        known = True
    return [*([home] if known else []), "builtins", *_LIBRARIES, *more]


def _joined(entries: list[tuple[bool, str, str]]) -> list[str]:
    """Lines in order; plain names from one module share a line."""
    lines: list[str] = []
    for is_from, _, line in entries:
        head, _, name = line.partition(" import ")
        joins = is_from and lines and lines[-1].startswith(f"{head} import ")
        if joins and " as " not in lines[-1] and " as " not in line:
            lines[-1] += f", {name}"
        else:
            lines.append(line)
    return lines


def _is_third_party(module: str) -> bool:
    return module.partition(".")[0] not in sys.stdlib_module_names


def _identifier(name: str) -> str:
    """A name that can be written: lambdas and callable objects have none of their own."""
    name = re.sub(r"\W+", "_", name).strip("_") or "function"
    return f"f_{name}" if name[0].isdigit() else name
