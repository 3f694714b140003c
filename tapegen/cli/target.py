"""Functions named on the command line: `FILE::FUNCTION`, or every function of a file that has signatures."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from tapegen.api import Differentiable, differentiable
from tapegen.cli.signature import Signature
from tapegen.errors import BadArgument, SourceUnavailable, printable
from tapegen.export.module import name_of


def load_functions(target: str, wrt: str | None = None) -> list[Differentiable]:
    """The functions that a target names; their module is imported from the file.

    Parameters
    ----------
    target : str
        `FILE::FUNCTION` (a dotted name for methods), or `FILE` for all decorated functions with signatures.
    wrt : str, optional
        Names and positions separated by commas, instead of those of a decorator.
    """
    path_text, separator, name = target.rpartition("::")
    path = Path(path_text if separator else target)
    if not is_file(path):
        _refuse_path(target, path_text if separator else target, separator)
    module = load_module(path)
    found = [_attribute(module, path, name)] if separator else _with_signatures(module, path)
    return [_differentiable(function, wrt) for function in found]


def _refuse_path(target: str, path: str, separator: str) -> NoReturn:
    """Refuse a target without a file."""
    if not path:
        raise BadArgument(f"'{printable(target)}' names no file.", f"Write FILE.py{printable(target)}.")
    if not separator and not path.endswith(".py"):
        raise BadArgument(
            f"'{printable(target)}' is no file; a function is named with its file.",
            f"Write FILE.py::{printable(target)}." if path.isidentifier() else "Write FILE.py::FUNCTION.",
        )
    raise BadArgument(
        f"there is no file '{printable(path)}' in {printable(str(Path.cwd()))}."
        if not Path(path).is_absolute()
        else f"there is no file '{printable(path)}'.",
        "Write FILE.py::FUNCTION with the path of a file.",
    )


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that is invalid for files denotes none."""
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def load_function(target: str, wrt: str | None = None) -> Differentiable:
    """The one function that `FILE::FUNCTION` names."""
    if "::" not in target:
        if not is_file(Path(target)):
            _refuse_path(target, target, "")
        raise BadArgument(
            f"'{printable(target)}' is a file, and which function of it is meant is missing.",
            f"Write {printable(target)}::FUNCTION.",
        )
    (function,) = load_functions(target, wrt)
    return function


def check_arguments(function: Differentiable, signature: Signature) -> None:
    """Raise BadArgument for a signature that does not fit the parameters of a function."""
    try:
        function._specializer.bind(signature.args, signature.kwargs)
    except TypeError as error:
        params = ", ".join(function._specializer.free_names())
        raise BadArgument(
            f"({printable(signature.text)}) does not fit {printable(name_of(function))}({params}): {error}.",
            "Give one type for each parameter without a default.",
        ) from None


def load_module(path: Path) -> ModuleType:
    """Import a file under the name by which other modules import it, if there is one.

    Raises
    ------
    SourceUnavailable
        If the file cannot be run.
    """
    path = path.resolve()
    root, name = path.parent, path.stem
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        name, root = f"{root.name}.{name}", root.parent
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        if all(part.isidentifier() for part in name.split(".")):
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path:
                return importlib.import_module(name)
        # another module has this name, or the name is invalid: the file gets a name of its own
        name = f"tapegen_target_{''.join(c if c.isalnum() else '_' for c in path.stem)}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise BadArgument(f"'{printable(str(path))}' is not a Python file.", "Write FILE.py::FUNCTION.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    except (BadArgument, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever the file raises
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename == str(path)), 0
        )
        place = f"{path}:{line}" if line else str(path)
        reason = printable(f"importing {place} failed: {type(error).__name__}: {error}")
        raise SourceUnavailable(
            reason, "The file is run as a module when it is imported; make that work first."
        ) from None


def _attribute(module: ModuleType, path: Path, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise BadArgument(
            f"{printable(str(path))} has no function '{printable(name)}'.", "Give the name of a function of that file."
        )
    return found


def _with_signatures(module: ModuleType, path: Path) -> list[Any]:
    found = [f for f in vars(module).values() if isinstance(f, Differentiable) and f.options.signatures]
    found = [f for f in dict.fromkeys(found) if f.python.__module__ == module.__name__]
    if not found:
        raise BadArgument(
            f"{printable(str(path))} has no function with signatures.",
            'Write FILE.py::FUNCTION and --args, or @differentiable(signatures=["f8[:], f8"]).',
        )
    return sorted(found, key=lambda f: f.python.__code__.co_firstlineno)


def _differentiable(function: Any, wrt: str | None) -> Differentiable:
    if not isinstance(function, Differentiable):
        function = differentiable(function)
    return function if wrt is None else function.with_options(wrt=wrt_of(wrt))


def wrt_of(text: str) -> int | str | tuple[int | str, ...]:
    """`u0,k` or `0,1` as an option."""
    parts = [part.strip() for part in text.split(",")]
    chosen: Sequence[int | str] = [int(part) if re.fullmatch(r"-?[0-9]{1,9}", part) else part for part in parts]
    return chosen[0] if len(chosen) == 1 else tuple(chosen)
