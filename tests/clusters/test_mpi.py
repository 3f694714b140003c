"""Adjoints of communication: `mpi_program` under mpiexec, one test for each line that it prints."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.pages import DOCS, promised, python_of

pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install '.[test]'")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
pytestmark = pytest.mark.skipif(
    not MPIEXEC.exists(), reason=f"there is no {MPIEXEC}: pip install '.[test]' brings MPICH"
)

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("mpi_program.py")
CHECKS = (
    *("halo", "ring", "open_chain", "any_source", "crossed", "sums", "rooted", "gathers", "extremes", "until"),
    *(
        "passed_on",
        "all_to_all",
        "pipelined",
        "integers",
        "random",
        "communicator",
        "tie",
        "jacobian",
        "numba",
        "never_waited",
    ),
    *(
        "waited_on_one_path",
        "waited_twice",
        "of_another_size",
        "of_different_sizes",
        "request_of_any_source",
        "product",
    ),
    *("synchronous", "part_of_buffer", "with_status", "reserved_tag", "own_error", "inside", "recursive"),
)
SECONDS = 120


def run(ranks: int, *command: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a Python program on several ranks of this machine."""
    return subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, *command],
        cwd=ROOT,
        # ranks that wait leave the processors to the others: there may be fewer processors than ranks
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
        capture_output=True,
        text=True,
        timeout=seconds + 30.0,
        check=False,
    )


@functools.cache
def outcomes(ranks: int) -> dict[str, str]:
    done = run(ranks, str(PROGRAM), str(SECONDS))
    found = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert tuple(found) == CHECKS, done.stderr[-5000:]
    return found


@pytest.mark.parametrize(
    "ranks", [3, pytest.param(2, marks=pytest.mark.whole), pytest.param(4, marks=pytest.mark.whole)]
)
@pytest.mark.parametrize("check", CHECKS)
def test_ranks(check: str, ranks: int) -> None:
    assert outcomes(ranks)[check] == "passed"


FIRST = "import os, runpy, sys; from mpi4py import MPI; MPI.COMM_WORLD.rank and os.dup2(os.open(os.devnull, 1), 1); "
"""What makes rank 0 alone print."""


def test_the_page(tmp_path: Path) -> None:
    """`howto/mpi.md`."""
    (tmp_path / "page.py").write_text(python_of(DOCS / "howto/mpi.md"), encoding="utf-8")
    done = run(2, "-c", FIRST + f"runpy.run_path({str(tmp_path / 'page.py')!r})")
    assert done.stdout.splitlines() == promised(DOCS / "howto/mpi.md"), done.stderr


def test_the_example() -> None:
    """Any number of ranks finds the same."""
    start = "import heat_mpi; heat_mpi.ITERATIONS, heat_mpi.STEPS = 2, 4; result = heat_mpi.main(); "
    printed = []
    for ranks in (1, 3):
        done = run(ranks, "-c", FIRST + "sys.path.insert(0, 'examples'); " + start + "print(result)")
        assert done.returncode == 0, done.stderr
        printed.append(eval(done.stdout))
    serial, parallel = printed
    assert parallel["slope"] == pytest.approx(serial["slope"], rel=1e-13)
    assert parallel["misfit"] == pytest.approx(serial["misfit"], rel=1e-10)
    assert parallel["wrong"] == serial["wrong"]


@pytest.mark.compiled
def test_loops_are_compiled() -> None:
    done = run(2, str(PROGRAM.with_name("mpi_loops.py")))
    assert done.stdout.split() == ["passed", "passed"], done.stderr
