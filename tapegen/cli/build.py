"""`tapegen build`: derivatives as a shared library."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tapegen.cli.write import wanted
from tapegen.errors import BuildError, printable
from tapegen.export.library import build_library, default_modes, default_name
from tapegen.export.module import MODES
from tapegen.export.wheel import source_distribution, wheel

EXAMPLES = """\
examples:
  python -m tapegen build heat.py::march --args "f8[::1], f8, f8" --wrt u0,k -o build/
  python -m tapegen build heat.py -o build/            every function with @differentiable(signatures=[...])
  python -m tapegen build heat.py --cpu native --blas cblas:/usr/lib/libopenblas.so
  python -m tapegen build heat.py --pip                also a wheel and a source distribution, for pip
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "build",
        help="build a shared library with a C header and a Python module that needs NumPy alone",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="+", metavar="FILE[::FUNCTION]")
    parser.add_argument("--args", action="append", metavar="TYPES", help='argument types ("f8[::1], f8, n=3")')
    parser.add_argument("--wrt", help="arguments to differentiate with respect to (names or positions)")
    parser.add_argument("--mode", default="", help=f"some of {','.join(MODES)} (default: all that there are)")
    parser.add_argument("--name", help="name of the library (default: that of the file)")
    parser.add_argument("--cpu", default="x86-64-v2", help="x86-64-v2 (default), x86-64-v3 or native")
    parser.add_argument("--blas", default="builtin", help="products of matrices: builtin (default) or cblas:PATH")
    parser.add_argument("--pip", action="store_true", help="also make a wheel and a source distribution")
    parser.add_argument("-o", "--output", default="build", metavar="DIRECTORY", help="where the files go")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build the library, and report its contents."""
    everything = not options.mode
    options.mode = options.mode or "grad"
    found = list(wanted(options))
    if everything:
        found = [replace(each, modes=default_modes(each.function, each.args, each.kwargs)) for each in found]
    name = options.name or default_name(Path(options.targets[0].partition("::")[0]).stem)
    module = build_library(found, options.output, name, cpu=options.cpu, blas=options.blas)
    for file in (module, module.with_suffix(".h"), module.with_name(f"lib{name}.so"), module.with_suffix(".json")):
        print(file)
    if options.pip:
        try:
            print(wheel(module))
            print(source_distribution(module))
        except OSError as error:
            raise BuildError(
                f"{printable(options.output)} cannot be written: {printable(str(error))}.", "Give another directory."
            ) from None
    return 0
