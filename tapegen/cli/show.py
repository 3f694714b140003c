"""`tapegen show`: the generated code of a function."""

from __future__ import annotations

import argparse

from tapegen.cli.signature import signature_of
from tapegen.cli.target import check_arguments, load_function
from tapegen.cli.terminal import print_source
from tapegen.pipeline.stages import STAGES

EXAMPLES = """\
examples:
  python -m tapegen show heat.py::march --args "f8[:], f8, f8" --wrt u0,k
  python -m tapegen show heat.py::march --args "f8[:], f8, f8" --form compiled
  python -m tapegen show heat.py::march --args "f8[:], f8, f8" --stage fuse_loops
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "show",
        help="print the generated forward and backward code",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="FILE::FUNCTION")
    parser.add_argument("--args", default="", help='argument types, such as "f8[:], f8, n=3"')
    parser.add_argument("--wrt", help="arguments to differentiate with respect to (names or positions)")
    parser.add_argument("--form", choices=("pair", "joint", "compiled", "primal", "tangent"), default="pair")
    parser.add_argument(
        "--stage",
        choices=STAGES,
        metavar="NAME",
        help=f"print the program after a pass instead: {', '.join(STAGES)}",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the code."""
    function = load_function(options.target, options.wrt)
    signature = signature_of(options.args)
    check_arguments(function, signature)
    inspection = function.inspect(*signature.args, **signature.kwargs)
    if options.stage:
        print_source(inspection.stages[options.stage])
    elif options.form == "pair":
        print_source(f"{inspection.forward}\n\n{inspection.backward}")
    else:
        print_source(getattr(inspection, options.form))
    return 0
