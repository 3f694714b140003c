"""`tapegen explain`: what is active, what is recorded, why, and how many bytes."""

from __future__ import annotations

import argparse
from pathlib import Path

from tapegen.cli.axis_sizes import read_sizes
from tapegen.cli.html_page import page
from tapegen.cli.signature import signature_of
from tapegen.cli.target import check_arguments, load_function
from tapegen.cli.terminal import print_report
from tapegen.cli.write import replace_file
from tapegen.errors import printable
from tapegen.export.module import name_of
from tapegen.runtime.bound_call import inspected

EXAMPLES = """\
examples:
  python -m tapegen explain heat.py::march --args "f8[:], f8, f8" --wrt u0,k
  python -m tapegen explain heat.py::march --args "f8[:], f8, f8" --size 1000000
  python -m tapegen explain fit.py::loss --args "f8[:,:], f8[:]" --size x=4000,3 --html loss.html
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "explain",
        help="say what is active, what is recorded, why, and how many bytes",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="FILE::FUNCTION")
    parser.add_argument("--args", default="", metavar="TYPES", help='argument types ("f8[:], f8, n=3")')
    parser.add_argument("--wrt", help="arguments to differentiate with respect to (names or positions)")
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="[ARGUMENT=]SIZES",
        help="the size of every axis, for bytes (default: 100); x=4000,3 for those of one argument; may be repeated",
    )
    parser.add_argument(
        "--memory", help='what a gradient may record ("200MB"): which loops are checkpointed, and at what cost'
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a page: bars of what is recorded, and both sweeps side by side"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report, or write the page."""
    function = load_function(options.target, options.wrt)
    if options.memory is not None:
        function = function.with_options(memory=options.memory)
    names = function._specializer.free_names()
    signature = signature_of(options.args, sizes=read_sizes(options.size, names, 100))
    check_arguments(function, signature)
    call = function._specialise(signature.args, signature.kwargs)
    inspection = inspected(call.program, call.leaves())
    if options.html is None:
        print_report(inspection.report)
    else:
        replace_file(Path(options.html), page(inspection))
        print(f"{printable(options.html)}: what {name_of(function)} records, with both sweeps side by side")
    return 0
