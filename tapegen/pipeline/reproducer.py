"""Reproducers of internal errors: a Python file with the user's function, similar arguments, and the call."""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import sysconfig
import tempfile
import textwrap
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tapegen.errors import PACKAGE
from tapegen.frontend.source.callables import calls_instead
from tapegen.frontend.source.locate import locate
from tapegen.frontend.values.pytree import UNKNOWN, Leaf, StaticValue, Struct, children_of, rebuild
from tapegen.ir.protocols import is_opaque, mark_of
from tapegen.ir.types import Array, Scalar

_LARGEST = 64
"""Maximal size of an array that is printed in full; of others the shape is kept."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The request to tapegen.

    Attributes
    ----------
    function : function
        The user's function.
    signature : Signature
        Its parameters.
    arguments : mapping
        Their arguments: values, or the types that the compiler was given.
    options : mapping
        Keywords of `differentiable`.
    call : str
        The call that leads to the fault; `f` is the differentiable function, `args` and `kwargs` its arguments.
    """

    function: FunctionType
    signature: inspect.Signature
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]
    call: str = "f.inspect(*args, **kwargs)"


def written_reproducer(subject: Subject, stage: str, error: BaseException) -> str:
    """The name of a file that reproduces an error; empty where that cannot be written."""
    try:
        text = reproducer_text(subject, stage, error)
        compile(text, "reproducer.py", "exec")
        path = Path(tempfile.mkdtemp(prefix="tapegen-")) / "reproducer.py"
        path.write_text(text, encoding="utf-8")
    except Exception:  # the error itself is more useful than a failure here
        return ""
    return str(path)


def reproducer_text(subject: Subject, stage: str, error: BaseException) -> str:
    """The text of a module that reproduces an error."""
    writer = _Writer(calls_instead(subject.function) or subject.function)
    name = writer.function(subject.function)
    given = {key: concrete(value) for key, value in subject.arguments.items()}
    bound = inspect.BoundArguments(subject.signature, given)
    args = "".join(f"{writer.value(value)}, " for value in bound.args)
    kwargs = "".join(f"{key!r}: {writer.value(value)}, " for key, value in bound.kwargs.items())
    options = "".join(f", {key}={value!r}" for key, value in subject.options.items())
    head = [f"# tapegen failed while {stage} {name}: {type(error).__name__}: {_one_line(error)}", ""]
    imports = sorted({"import numpy as np", "import tapegen as tg", *writer.imports})
    calls = [
        f"f = tg.differentiable({name}{options})",
        f"args = ({args})",
        f"kwargs = {{{kwargs}}}",
        subject.call,
    ]
    trace = [f"# {line}" for line in "".join(traceback.format_exception(error)).splitlines()]
    parts = ["\n".join([*head, *imports]), *writer.definitions, "\n".join(calls), "\n".join(trace)]
    return "\n\n\n".join(parts) + "\n"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def concrete(value: Any) -> Any:
    """A value of the type of an abstract argument."""
    if isinstance(value, StaticValue):
        return value.value
    if isinstance(value, Struct):
        return rebuild(value, [concrete(child) for child in value.children])
    if not isinstance(value, Leaf):
        return value
    if isinstance(value.type, Array):
        shape = value.sample if isinstance(value.sample, tuple) else (2,) * value.type.rank
        return _numbers(shape, np.dtype(value.type.dtype))
    if not isinstance(value.type, Scalar):
        return value
    if value.sample is not UNKNOWN:
        return value.sample
    number = _numbers((), np.dtype(value.type.dtype))[()]
    return number.item() if value.type.python else number


def _numbers(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Different values between 0 and 1, or integers that are valid as indices."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind not in "fc":
        return np.zeros(shape, dtype)
    return ((np.arange(count) + 1.0) / (count + 1.0)).astype(dtype).reshape(shape)


class _Writer:
    """Collects the definitions that a function needs.

    Parameters
    ----------
    function : function
        Its module counts as the user's own, wherever it is installed.
    """

    def __init__(self, function: FunctionType) -> None:
        self.home = function.__module__
        self.imports: set[str] = set()
        self.definitions: list[str] = []
        self._done: dict[int, str] = {}
        self._kept: list[Any] = []

    def function(self, function: FunctionType) -> str:
        """Write the definition of a function, and what it refers to; return its name."""
        if id(function) in self._done:
            return self._done[id(function)]
        found = locate(function)
        node = found.node
        name = "function" if isinstance(node, ast.Lambda) else node.name
        self._note(function, name)
        if isinstance(node, ast.Lambda):
            text = f"{name} = {ast.unparse(node)}"
        else:
            assert node.end_lineno is not None
            text = textwrap.dedent(
                "\n".join(line.rstrip("\r\n") for line in found.lines[node.lineno - 1 : node.end_lineno])
            )
            if not _is_text_of(text, node):
                text = ast.unparse(ast.Module([_undecorated(node)], []))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closure = {key: cell.cell_contents for key, cell in cells if _is_filled(cell)}
        self._names(node, {**function.__globals__, **closure}, name)
        self.definitions.append(text)
        return name

    def value(self, value: Any) -> str:
        """An expression for a value."""
        plain = type(value)
        if isinstance(value, enum.Enum):
            return f"{self._class(plain)}.{value.name}"
        if value is None or value is Ellipsis or plain in (bool, int, str, bytes, complex, slice, range):
            return repr(value)
        if plain is float:
            return repr(value) if np.isfinite(value) else f"float({str(value)!r})"
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return f"np.{value.dtype.type.__name__}({self.value(value.item())})"
        if isinstance(value, np.dtype):
            return f"np.dtype({value.str!r})"
        if isinstance(value, np.random.Generator):
            return "np.random.default_rng(0)"
        if isinstance(value, (set, frozenset)):
            return f"{plain.__name__}([{', '.join(map(self.value, value))}])"
        if isinstance(value, ModuleType):
            self.imports.add(f"import {value.__name__}")
            return value.__name__
        if isinstance(value, MethodType):
            owner: Any = value.__self__
            if mark_of(value) is not None and value.__name__ in _DERIVATIVES:
                return f"tg.{value.__name__}({self.value(owner.python)}, {owner.options.wrt!r})"
            return f"{self.value(owner)}.{value.__name__}"
        written = getattr(value, "__tapegen_written__", None)
        if is_opaque(value) and written is not None:  # the text of an expression for it, and the parts that this needs
            text, parts = written()
            return str(text.format(*map(self.value, parts)))
        inner = getattr(value, "python", None)
        if is_opaque(value) and callable(inner) and hasattr(value, "options"):
            return f"tg.differentiable({self.value(inner)}, wrt={value.options.wrt!r})"
        if isinstance(value, FunctionType) and self._is_own(value.__module__):
            return self.function(value)
        if isinstance(value, type):
            return self._class(value)
        if callable(value) and hasattr(value, "__qualname__"):
            return self._imported(value.__module__, value.__qualname__)
        if isinstance(value, np.ufunc):
            return self._imported(_module_of(value), value.__name__)
        return self._structure(value)

    def _structure(self, value: Any) -> str:
        struct = children_of(value)
        if struct is None:
            raise ValueError(f"{value!r} cannot be written")
        parts = [self.value(child) for child in struct.children]
        if struct.cls is tuple:
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if struct.cls is list:
            return f"[{', '.join(parts)}]"
        if struct.cls is dict:
            return (
                f"{{{', '.join(f'{self.value(key)}: {part}' for key, part in zip(struct.keys, parts, strict=True))}}}"
            )
        kind = self._class(struct.cls)
        if struct.kind == "tuple":
            return f"{kind}({', '.join(parts)})" if hasattr(struct.cls, "_fields") else f"{kind}([{', '.join(parts)}])"
        if struct.kind == "list":
            return f"{kind}([{', '.join(parts)}])"
        if struct.kind == "dict":
            return f"{kind}([{', '.join(map(self.value, value.items()))}])"
        if not any("_made(" in text for text in self.definitions):
            self.definitions.append(_MADE)
        attributes = ", ".join(f"{key}={part}" for key, part in zip(struct.keys, parts, strict=True))
        return f"_made({kind}, {attributes})"

    def _array(self, value: np.ndarray) -> str:
        if value.size <= _LARGEST and value.dtype.kind in "fciub":
            items = np.array2string(value.ravel(), separator=", ", threshold=sys.maxsize, floatmode="unique")
            flat = f"np.array({' '.join(items.split())}, {value.dtype.str!r})".replace("nan", "np.nan").replace(
                "inf", "np.inf"
            )
            return flat if value.ndim == 1 else f"{flat}.reshape({value.shape!r})"
        return f"np.full({value.shape!r}, {0.5 if value.dtype.kind in 'fc' else 0}, {value.dtype.str!r})"

    def _class(self, cls: type) -> str:
        if not self._is_own(cls.__module__):
            return self._imported(cls.__module__, cls.__qualname__)
        if id(cls) not in self._done:
            self._note(cls, cls.__name__)
            text = textwrap.dedent(inspect.getsource(cls))
            self._names(ast.parse(text), vars(sys.modules[cls.__module__]), cls.__name__)
            self.definitions.append(text.rstrip())
        return self._done[id(cls)]

    def _names(self, node: ast.AST, known: Mapping[str, Any], own: str) -> None:
        """Define the free variables of a source."""
        read = {part.id: None for part in ast.walk(node) if isinstance(part, ast.Name)}
        for name in read:
            if name == own or name not in known:
                continue
            value = known[name]
            if isinstance(value, ModuleType):
                self.imports.add(f"import {value.__name__} as {name}" if value.__name__ != name else f"import {name}")
                continue
            key = f"{name} {id(value)}"
            if key in self._kept:
                continue
            self._kept.append(key)
            try:
                text = self.value(value)
            except Exception:  # the file is still useful if this value is not needed
                text = "None"
                self.definitions.append(f"# instead of a value of type {type(value).__name__}:")
            if text != name:
                self.definitions.append(f"{name} = {text}")

    def _imported(self, module: str, qualname: str) -> str:
        if module == "builtins":
            return qualname
        found: Any = sys.modules[module]
        for part in qualname.split("."):
            found = getattr(found, part)
        self.imports.add(f"import {module}")
        return f"{module}.{qualname}"

    def _is_own(self, module: str) -> bool:
        """Whether a module is the user's, so that its source is copied and not imported."""
        if module == self.home:
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is None if module not in sys.builtin_module_names else False or not is_installed(file or "")

    def _note(self, thing: Any, name: str) -> None:
        self._done[id(thing)] = name
        self._kept.append(thing)


_DERIVATIVES = ("grad", "value_and_grad", "jacobian")

_MADE = """\
def _made(cls, **attributes):
    made = object.__new__(cls)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made"""

_INSTALLED = tuple({sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to tapegen."""
    return file.startswith(("<frozen ", *_INSTALLED, PACKAGE))


def _module_of(ufunc: np.ufunc) -> str:
    return "numpy" if getattr(np, ufunc.__name__, None) is ufunc else "scipy.special"


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _undecorated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.FunctionDef | ast.AsyncFunctionDef:
    fields = {name: getattr(node, name) for name in node._fields}
    return type(node)(**{**fields, "decorator_list": []})


def _is_text_of(text: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a source is the definition without its decorators."""
    try:
        (found,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return ast.dump(found) == ast.dump(_undecorated(node))


__all__ = ["Subject", "concrete", "is_installed", "reproducer_text", "written_reproducer"]
