"""`python -m tests.random_programs.defects --programs 10000`: within how many programs each planted defect is found.

With `--tests`: which test of the ordinary suite finds each of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from tests.random_programs.corpus import load
from tests.random_programs.defects import DEFECTS, LAYERS, Defect
from tests.random_programs.defects.hunt import Hunted, finds, hunt, path_of, store
from tests.random_programs.defects.ordinary import (
    by_kept_programs,
    by_random_programs,
    by_tests,
    failing,
    is_there,
    likely_tests,
    table,
    write,
)
from tests.random_programs.generator import profiles


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.defects", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many programs at most (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--profile", choices=[*profiles(), "all"], default="all")
    parser.add_argument("--only", default="", metavar="TEXT", help="defects whose name contains this")
    parser.add_argument("--layer", default="", metavar="TEXT", help="defects of layers whose name contains this")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--store", action="store_true", help="keep the smallest program that finds each")
    parser.add_argument("--missing", action="store_true", help="only defects for which no program is kept")
    parser.add_argument("--tests", action="store_true", help="look for ordinary tests that find them, not for programs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    layers = [defects for name, defects in LAYERS.items() if options.layer in name]
    chosen = [defect for defects in layers for defect in defects if options.only in defect.name]
    if options.tests:
        return ordinary_tests(chosen, options.missing, options.minutes)
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


def ordinary_tests(chosen: list[Defect], missing: bool, minutes: float) -> int:
    """Look for a test that finds each defect, and keep what is found in the table."""
    names = {defect.name for defect in DEFECTS}
    known = {name: test for name, test in table().items() if name in names}
    if missing:
        chosen = [defect for defect in chosen if not known.get(defect.name)]
    found = {name: test for name, test in known.items() if name not in {defect.name for defect in chosen}}

    def report(defect: Defect, test: str) -> None:
        print(f"{defect.name}: {test}", flush=True)
        found[defect.name] = test
        write(found, DEFECTS)

    left = by_kept_programs(chosen, report)
    before = {d.name: [test] if (test := known.get(d.name)) and is_there(test) else [] for d in left}
    left = by_tests(left, before, report)
    left = by_tests(left, likely_tests(left), report)
    left = by_random_programs(left, report, minutes)
    for defect in left:
        found[defect.name] = ""
        print(f"NOT FOUND {defect.name}  {defect.unfound}")
    wrong = failing(test for defect in chosen if (test := found.get(defect.name)))
    for test in wrong:
        print(f"fails without a defect: {test}")
    write({name: test for name, test in found.items() if test not in wrong}, DEFECTS)
    print(f"{sum(map(bool, found.values()))} of {len(DEFECTS)} defects are found by ordinary tests")
    return 1 if wrong or any(not defect.unfound for defect in left) else 0


if __name__ == "__main__":
    sys.exit(main())
