"""`tapegen cache`: the disk cache."""

from __future__ import annotations

import argparse

from tapegen.backend.cache.store import FOLDER, LIMIT, SWITCH, Store, Unusable, cache_folder, size_limit, switched_off
from tapegen.errors import BadArgument, printable

EXAMPLES = f"""\
examples:
  python -m tapegen cache info
  python -m tapegen cache clear
  {FOLDER}=/scratch/me/tapegen python -m tapegen cache info

{FOLDER} names another directory, {LIMIT} the most megabytes (512), {SWITCH}=0 turns the cache off.
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "cache",
        help="show or delete compiled code on disk",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("info", "clear"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show or delete the entries."""
    folder = cache_folder()
    if folder is None:
        raise BadArgument("there is no home directory, so there is no cache.", f"Name a directory: {FOLDER}.")
    kept = Store(folder, size_limit())
    try:
        if options.action == "clear":
            print(f"{kept.clear()} entries deleted from {printable(str(folder))}")
            return 0
        entries = kept.checked_entries()
    except (OSError, Unusable) as error:
        raise BadArgument(f"{printable(str(folder))} is not used: {error}.", f"Name another: {FOLDER}.") from None
    total = sum(entry.size for entry in entries)
    state = f"off ({SWITCH})" if switched_off() else "on"
    rows = (
        ("directory", printable(str(folder))),
        ("cache", state),
        ("entries", str(len(entries))),
        ("size", f"{total / 2**20:.1f} MB of {size_limit() / 2**20:.0f} MB"),
    )
    for label, text in rows:
        print(f"{label:<10} {text}")
    return 0
