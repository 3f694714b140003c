"""The command line: `python -m tapegen show FILE::FUNCTION --args ...`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tapegen import api
from tapegen.cli.rules import table
from tapegen.cli.signature import example_arguments
from tapegen.errors import BadArgument, TapegenError

_STAGES = ("lower", "expand", "reverse", "record", "fuse")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 done, 1 refused, 2 usage)."""
    parser = argparse.ArgumentParser(prog="tapegen", description="Gradients of Python functions as readable Python.")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser(
        "show",
        help="print the generated forward and backward code",
        epilog='example: python -m tapegen show examples/heat.py::march --args "f8[:], f8, f8" --wrt u0,k',
    )
    show.add_argument("target", metavar="FILE::FUNCTION")
    show.add_argument("--args", default="", help='argument types, such as "f8[:], f8, n=3"')
    show.add_argument("--wrt", default="0", help="arguments to differentiate with respect to (names or positions)")
    show.add_argument("--form", choices=("pair", "joint", "compiled"), default="pair")
    show.add_argument("--stage", choices=_STAGES, help="print an intermediate program instead")
    commands.add_parser("rules", help="print the table of derivative rules")
    options = parser.parse_args(argv)
    try:
        print(table() if options.command == "rules" else _show(options))
    except TapegenError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _show(options: argparse.Namespace) -> str:
    function = load_target(options.target)
    args, kwargs = example_arguments(options.args)
    wrt = tuple(int(part) if part.lstrip("-").isdigit() else part for part in options.wrt.split(","))
    inspection = api.differentiable(function, wrt=wrt if len(wrt) > 1 else wrt[0]).inspect(*args, **kwargs)
    if options.stage:
        return str(inspection.stages[options.stage])
    if options.form == "pair":
        return f"{inspection.forward}\n\n{inspection.backward}"
    return str(getattr(inspection, options.form))


def load_target(target: str) -> Callable[..., Any]:
    """The function that `FILE::FUNCTION` names; its module is imported from the file."""
    path_text, separator, name = target.rpartition("::")
    path = Path(path_text)
    if not separator or not path.is_file():
        raise BadArgument(f"'{target}' does not name a function in a file", "write FILE.py::FUNCTION")
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise BadArgument(f"{path} has no function '{name}'", "give the name of a function of that file")
    return getattr(found, "python", found)
