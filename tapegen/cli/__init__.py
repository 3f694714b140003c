"""Command line: `python -m tapegen COMMAND ...`.

* `axis_sizes` - sizes of axes as text
* `signature` - argument types as text
* `target` - functions named on the command line
* `terminal` - color where a person reads
* `show` - print generated code
* `write` - write derivatives as a module
* `build` - build a shared library
* `check` - check derivatives numerically
* `explain` - what is active and recorded, and why
* `html_page` - function and backward sweep side by side
* `rules` - the table of derivative rules
* `cache` - the disk cache
* `completion` - shell completion
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

from tapegen.cli import build, cache, check, completion, explain, rules, show, write
from tapegen.errors import TapegenError, printable

_COMMANDS = (show, write, build, check, explain, rules, cache, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (0 done, 1 refused or found wrong, 2 usage, 130 interrupted)."""
    parser = argparse.ArgumentParser(prog="tapegen", description="Gradients of Python functions as readable Python.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version, and those it runs with")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    options = parser.parse_args(argv)
    try:
        done: int = options.run(options)
        if sys.stdout is not None:  # None where it is closed
            sys.stdout.flush()
    except TapegenError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `tapegen show ... | head`
        sys.stderr.close()
        return 0
    except OSError as error:  # a full disk behind standard output
        print(f"{type(error).__name__}: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # as shells count it
    except Exception as error:
        if os.environ.get("TAPEGEN_TRACEBACK"):
            raise
        print(f"{type(error).__name__}: {printable(str(error))}", file=sys.stderr)
        print(
            "This is not meant to happen; TAPEGEN_TRACEBACK=1 in the environment shows where it does.", file=sys.stderr
        )
        return 1
    return done


class _Version(argparse.Action):
    """Print the versions that a report of a fault needs."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parts = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "scipy"))
        print(f"tapegen {version('tapegen')} (Python {platform.python_version()}, {parts})")
        parser.exit()
