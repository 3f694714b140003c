"""`python -m tests.random_programs --programs 100000 --seed 1 --profile alias`: long runs outside the test command."""

from __future__ import annotations

import argparse
import pathlib
import sys
import warnings

from tests.random_programs.campaign import Found, Summary, campaign
from tests.random_programs.corpus import FOLDER
from tests.random_programs.generator import generate, profiles


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--programs", type=int, default=3000, help="how many programs (default 3000)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--profile", choices=[*profiles(), "all"], default="all")
    parser.add_argument("--backend", choices=["python", "numba"], default="python")
    parser.add_argument("--longest", type=int, help="lines that a program may have (compiling is slow)")
    parser.add_argument("--shrinks", type=int, default=10, help="kinds of failure to make small (default 10)")
    parser.add_argument("--save", type=pathlib.Path, default=FOLDER, help="where small failures go")
    parser.add_argument("--show", action="store_true", help="print the programs instead of running them")
    options = parser.parse_args()
    names = profiles() if options.profile == "all" else (options.profile,)
    if options.show:
        for k in range(options.programs):
            program = generate(options.seed + k // len(names), names[k % len(names)])
            print(f"# profile {program.profile}, seed {program.seed}, wrt {program.wrt}")
            print(program.source)
            print("\n".join(f"# {text}" for text in program.args), end="\n\n")
        return 0
    warnings.simplefilter("ignore")
    summary = campaign(
        options.programs,
        options.seed,
        names,
        options.backend,
        longest=options.longest,
        shrinks=options.shrinks,
        folder=options.save,
        progress=_tell,
        report=_show,
    )
    print(end="\r", file=sys.stderr)
    print(summary)
    return 1 if summary.buckets else 0


def _show(found: Found) -> None:
    print(f"\r{found}", end="\n\n", flush=True)


def _tell(summary: Summary) -> None:
    if summary.programs % 20 == 0:
        print(f"\r{summary.programs} programs, {sum(summary.buckets.values())} failures", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
