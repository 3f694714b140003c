"""`python -m tests.random_programs.defects --programs 10000`: within how many programs each planted defect is found."""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from tests.random_programs.corpus import load
from tests.random_programs.defects import DEFECTS
from tests.random_programs.defects.hunt import Hunted, finds, hunt, path_of, store
from tests.random_programs.generator import profiles


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.defects", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many programs at most (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--profile", choices=[*profiles(), "all"], default="all")
    parser.add_argument("--only", default="", metavar="TEXT", help="defects whose name contains this")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--store", action="store_true", help="keep the smallest program that finds each")
    parser.add_argument("--missing", action="store_true", help="only defects for which no program is kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [defect for defect in DEFECTS if options.only in defect.name]
    if options.missing:
        chosen = [d for d in chosen if not path_of(d).exists() or not finds(d, load(path_of(d)))]
    names = profiles() if options.profile == "all" else (options.profile,)
    start = time.monotonic()

    def progress(programs: int, left: int) -> None:
        if programs % 5 == 0:
            seconds = time.monotonic() - start
            print(f"\r{programs} programs, {left} defects left, {seconds:.0f} s", end="", file=sys.stderr)

    def report(one: Hunted) -> None:
        print(f"\r{one}", flush=True)
        if options.store:
            store(one)

    hunted = hunt(chosen, options.programs, options.seed, names, report, progress, options.minutes)
    missed = [one for one in hunted if one.finder is None]
    for one in missed:
        print(f"\r{one}")
    found = sorted(one.programs for one in hunted if one.finder is not None)
    within = ", ".join(f"{sum(n <= limit for n in found)} within {limit}" for limit in (10, 100, 1000, 10_000, 100_000))
    print(f"\r{len(found)} of {len(hunted)} found in {time.monotonic() - start:.0f} s: {within}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
