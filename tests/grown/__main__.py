"""Grow programs and judge them: `python -m tests.grown --hours 8 --jobs 8`, or one seed: `--seed N --programs 1`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.grown.campaign import Campaign, Found, one, report, serve
from tests.grown.checks import FINE, PYTHON, STAGES
from tests.grown.grow import grown
from tests.grown.known import KNOWN

MANY = 10**9


def main(given: list[str] | None = None) -> int:
    """Run the command; 1 if something new was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.grown", description=__doc__)
    parser.add_argument("--hours", type=float, help="how long; without end of seeds")
    parser.add_argument("--programs", type=int, default=1000, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--compiled", action="store_true", help="also compiled code (seconds each)")
    parser.add_argument("--cache", action="store_true", help="also a second process (many seconds each)")
    parser.add_argument("--stages", help=f"oracles, of {','.join(STAGES)}")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds to make a finding smaller; 0: as grown")
    parser.add_argument("--report", type=Path, help="write the report into this file too")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    stages = list(PYTHON)
    stages += ["compiled"] * options.compiled + ["cache"] * options.cache
    if options.stages:
        stages = options.stages.split(",")
    if options.serve:
        first, _, last = options.serve.partition(":")
        serve(int(first), int(last), stages, options.shrink)
        return 0
    if options.programs == 1 and options.hours is None:
        print(grown(options.seed).text())
        found = one(options.seed, stages, options.shrink)
        print(found.verdict.kind, found.verdict.stage, found.verdict.detail)
        if found.text:
            print("\nSmaller:\n\n" + found.text)
        return int(found.verdict.kind not in FINE)
    began = time.monotonic()
    results: list[Found] = []
    campaign = Campaign(stages, options.jobs, options.shrink)
    count, seconds = (options.programs, float("inf")) if options.hours is None else (MANY, options.hours * 3600)
    for found in campaign.run(options.seed, count, seconds):
        results.append(found)
        if found.verdict.kind not in FINE:
            print(f"seed {found.seed}: {found.verdict.kind} {found.verdict.stage} {found.verdict.key()}", flush=True)
        if options.report and len(results) % 100 == 0:
            options.report.write_text(report(results, time.monotonic() - began), encoding="utf-8")
    text = report(results, time.monotonic() - began)
    print(text)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    return int(any(f.verdict.kind not in FINE and f.seed not in KNOWN for f in results))


if __name__ == "__main__":
    sys.exit(main())
