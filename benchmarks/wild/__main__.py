"""`python -m benchmarks.wild [package ...] [--backend auto] [--write]`: which functions of other packages work.

The packages are those of `pip install '.[wild]'`.  Each function is called as its package's documentation calls it,
unmodified; its gradient is compared with differences, forward mode with reverse mode.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from benchmarks.wild import earth, finance, geometry, optimization, science
from benchmarks.wild.calls import Call
from benchmarks.wild.judge import Verdict, judged, summary

SECONDS = 120  # for one function
REPORT = Path(__file__).parent.with_suffix(".md")


class _Late(BaseException):
    """No answer in time; nothing that catches exceptions may catch it."""


def _late(_signal: int, _frame: FrameType | None) -> None:
    raise _Late


def in_time(call: Call, backend: str) -> Verdict:
    """The verdict on `call`, or that there was none in time."""
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        return judged(call, backend)
    except _Late:
        return Verdict(call.function, "error", f"no answer in {SECONDS} s")
    finally:
        signal.alarm(0)


def main(arguments: Sequence[str]) -> int:
    """Judge the calls, print what came of them; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="packages or beginnings of dotted names; all by default")
    parser.add_argument("--backend", default="python", choices=("python", "auto"))
    parser.add_argument("--write", action="store_true", help=f"write the report to {REPORT.name}")
    given = parser.parse_args(arguments)
    every = [*earth.CALLS, *finance.CALLS, *geometry.CALLS, *optimization.CALLS, *science.CALLS]
    chosen = [call for call in every if not given.packages or call.function.startswith(tuple(given.packages))]
    verdicts = []
    for call in chosen:
        verdicts.append(in_time(call, given.backend))
        if verdicts[-1].kind != "right":
            print(f"{verdicts[-1].kind}: {call.function}: {verdicts[-1].reason}", flush=True)
    report = summary(verdicts)
    print(report)
    if given.write:
        REPORT.write_text("# Functions of other packages\n\n" + (__doc__ or "") + "\n" + report, encoding="utf-8")
    return int(any(verdict.kind == "wrong" for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
