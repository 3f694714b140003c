"""`tapegen write`: derivatives as a module to commit."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tapegen.api import Differentiable
from tapegen.backend.cache.atomic_files import publish
from tapegen.cli.signature import signature_of
from tapegen.cli.target import check_arguments, load_functions
from tapegen.errors import BadArgument, printable
from tapegen.export.module import GENERATED, MODES, ExportRequest, module_text, name_of

EXAMPLES = """\
examples:
  python -m tapegen write heat.py::march --args "f8[:], f8, f8" --wrt u0,k -o march_grad.py
  python -m tapegen write heat.py::march --args "f8[:], f8, f8" --mode grad,split,jvp,hvp --readable
  python -m tapegen write heat.py -o heat_grad.py           every function with @differentiable(signatures=[...])
  python -m tapegen write heat.py -o heat_grad.py --check   exit code 1 and a diff if heat.py has changed since
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "write",
        help="write derivatives as a module that does not need tapegen",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="+", metavar="FILE[::FUNCTION]")
    parser.add_argument(
        "--args",
        action="append",
        metavar="TYPES",
        help='argument types ("f8[:], f8, n=3"); repeat it for more versions of one function, or for more functions',
    )
    parser.add_argument("--wrt", help="arguments to differentiate with respect to (names or positions)")
    parser.add_argument("--mode", default="grad", help=f"some of {','.join(MODES)} (default: grad)")
    parser.add_argument("--readable", action="store_true", help="plain NumPy code instead of loops for numba")
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: print)")
    parser.add_argument("--check", action="store_true", help="write nothing; compare the file with what it should hold")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write, print or compare."""
    found = list(wanted(options))
    text = module_text(found, readable=options.readable)
    if options.output is None:
        if options.check:
            raise BadArgument("--check needs the file to compare.", "Name it: -o FILE.")
        sys.stdout.write(text)
        return 0
    path = Path(options.output)
    old = _old_text(path)
    if options.check:
        return _compare(path, old, text)
    if old is not None and not old.startswith(GENERATED):
        raise BadArgument(
            f"{printable(str(path))} exists, and tapegen did not write it.", "Give another file, or remove it first."
        )
    replace_file(path, text)
    for each in found:
        print(f"{printable(str(path))}: {', '.join(each.modes)} of {name_of(each.function)}({each.signature})")
    return 0


def wanted(options: argparse.Namespace) -> Iterator[ExportRequest]:
    """The functions and types that the arguments name."""
    modes = list(dict.fromkeys(mode.strip() for mode in options.mode.split(",")))
    given = options.args or []
    if len(options.targets) > 1 and given and len(given) != len(options.targets):
        raise BadArgument(
            f"there are {len(options.targets)} functions and {len(given)} signatures.", "Give --args for each function."
        )
    for k, target in enumerate(options.targets):
        own = given if len(options.targets) == 1 else given[k : k + 1]
        for function in load_functions(target, options.wrt):
            for text in own or function.options.signatures:
                yield _one(function, text, modes)
            if not own and not function.options.signatures:
                name = name_of(function)
                raise BadArgument(f"the argument types of {name} are not known.", 'Give --args "f8[:], f8".')


def _one(function: Differentiable, text: str, modes: list[str]) -> ExportRequest:
    signature = signature_of(text)
    check_arguments(function, signature)
    names = list(function._specializer.signature.parameters)[len(function._specializer.bound_args) :]
    types = " ".join(text.split())
    is_constant = partial(signature.is_constant, names)
    return ExportRequest(function, signature.args, signature.kwargs, tuple(modes), types, is_constant)


def _old_text(path: Path) -> str | None:
    """The contents of a file; None if there is none."""
    try:
        if path.exists() and not path.is_file():  # a device may have no end
            raise OSError("this is no file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise BadArgument(f"{printable(str(path))} cannot be read: {error}.", "Give another file.") from None


def _compare(path: Path, old: str | None, text: str) -> int:
    if old == text:
        return 0
    name = printable(str(path))
    before = [] if old is None else old.splitlines(keepends=True)
    sys.stdout.writelines(difflib.unified_diff(before, text.splitlines(keepends=True), name, f"{name} (now)"))
    print(f"{name} is {'missing' if old is None else 'stale'}: write it anew, without --check", file=sys.stderr)
    return 1


def replace_file(path: Path, text: str) -> None:
    """Write the file atomically: a reader sees the whole new text or the old one."""
    try:
        publish(path, text.encode())
    except (OSError, ValueError) as error:
        raise BadArgument(f"{printable(str(path))} cannot be written: {error}.", "Give another file.") from None
