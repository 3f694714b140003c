"""Random programs against dual numbers and a finite field; and the judges against one another.

`TAPEGEN_RANDOM_PROGRAMS` sets how many programs run in CPython (default 3000), `TAPEGEN_RANDOM_SEED` the first seed
(default 0).  `python -m tests.random_programs` runs millions.  `test_random_compiled.py` compiles some.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from tests.random_programs import corpus, standin
from tests.random_programs.campaign import Summary, campaign
from tests.random_programs.checks import check
from tests.random_programs.duals import FieldDual
from tests.random_programs.forward import (
    differentiate,
    inner,
    leaves,
    random_float,
    random_like,
    random_residue,
)
from tests.random_programs.generator import generate, profiles
from tests.random_programs.plain import run_plain
from tests.random_programs.program import HEADER, Program
from tests.random_programs.residues import PRIME, OutsideField, Residue
from tests.random_programs.shrink import shrink, size

PROGRAMS = int(os.environ.get("TAPEGEN_RANDOM_PROGRAMS", "3000"))
SEED = int(os.environ.get("TAPEGEN_RANDOM_SEED", "0"))
PARTS = 3  # of the programs of one profile, so that several processes share them


def told(summary: Summary) -> str:
    return "\n\n".join([*map(str, summary.found), str(summary)])


# ---- the compiler ----


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("profile", profiles())
def test_gradients_agree_with_the_oracles(profile: str, part: int) -> None:
    count = -(-PROGRAMS // (len(profiles()) * PARTS))
    summary = campaign(
        count, SEED + part * 10_000, [profile], shrinks=2, folder=None, enough=lambda so_far: len(so_far.found) == 2
    )
    assert not summary.buckets, told(summary)
    assert summary.passed["O3"] > count // 3
    assert summary.passed["O2"] > count // 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", sorted(corpus.FOLDER.glob("p*.py")), ids=lambda path: path.stem)
def test_programs_that_once_failed(path: Any) -> None:
    verdict = check(corpus.load(path), thorough=True)
    assert not verdict.failures, verdict.failures[0].detail


# ---- the judges ----


def sample(count: int) -> list[Program]:
    return [generate(seed, profile) for seed in range(90_000, 90_000 + count) for profile in profiles()]


def test_a_seed_always_gives_the_same_program() -> None:
    assert [generate(11, name) for name in profiles()] == [generate(11, name) for name in profiles()]
    assert len({generate(seed, "uniform").source for seed in range(50)}) == 50


def test_programs_run_unless_a_fault_was_planted() -> None:
    programs = [program for program in sample(30) if program.profile != "errors"]
    failed = [program for program in programs if run_plain(program).error is not None]
    assert len(failed) < 0.03 * len(programs)
    planted = [program for program in sample(30) if program.fault]
    assert any(run_plain(program).error is not None for program in planted)


def test_duals_compute_the_very_values_of_the_program() -> None:
    for program in sample(12):
        plain = run_plain(program)
        directions = [random_like(arg, random.Random(1), random_float) for arg in given(program)]
        if plain.error is not None:
            with pytest.raises(type(plain.error)):
                differentiate(program, directions)
            continue
        found = differentiate(program, directions)
        for expected, output in zip(leaves(plain.result), found.outputs, strict=True):
            assert type(expected) is type(output.v)
            assert np.array_equal(expected, output.v, equal_nan=True)


def test_duals_agree_with_differences() -> None:
    compared = 0
    for program in sample(12):
        directions = [random_like(arg, random.Random(2), random_float) for arg in given(program)]
        if run_plain(program).error is not None or "float32" in repr(program.args):
            continue
        found = differentiate(program, directions)
        if found.monitor.margin < 1e-3 or found.monitor.nonfinite:
            continue
        by_steps, doubt = difference(program, directions)
        exact = np.concatenate([np.ravel(output.t) for output in found.outputs] or [np.zeros(0)]).astype(float)
        scale = np.concatenate([np.ravel(output.s) for output in found.outputs] or [np.zeros(0)]).astype(float)
        assert np.all(np.abs(by_steps - exact) <= doubt + 1e-6 * (1.0 + scale)), program.source
        compared += 1
    assert compared > 40


def test_duals_over_residues_agree_with_a_tape_of_residues_exactly() -> None:
    compared = 0
    for program in sample(20):
        rng = random.Random(program.seed)
        directions = [random_like(arg, rng, random_residue) for arg in given(program)]
        try:
            found = differentiate(program, directions, FieldDual)
            weights = [random_residue(rng) for output in found.outputs for _ in range(np.size(output.v))]
            tied = found.monitor.tie
            gradients = standin.pullback(program, weights)
        except (OutsideField, ZeroDivisionError):
            continue
        except Exception:
            assert program.profile == "errors" or run_plain(program).error is not None
            continue
        if tied:
            continue
        flat = [t for output in found.outputs for t in np.ravel(np.asarray(output.t, dtype=object))]
        right = sum((inner(g, v) for g, v in zip(gradients, directions, strict=True)), Residue(0))
        assert inner(flat, weights) == right, program.source
        compared += 1
    assert compared > 100


def test_residues_form_a_field() -> None:
    rng = random.Random(5)
    for _ in range(200):
        a, b, c = (Residue(rng.randrange(1, PRIME)) for _ in range(3))
        assert (a + b) * c == a * c + b * c
        assert a / b * b == a
        assert 0.375 * a * 8 == 3 * a
        assert a.sin() ** 2 + a.cos() ** 2 == 1
        assert 1 - a.tanh() ** 2 == 1 / a.cosh() ** 2
        assert a**-3 * a**3 == 1
    with pytest.raises(OutsideField):
        Residue(3) ** 0.3


def test_a_wrong_gradient_is_seen() -> None:
    """The dot product is no formality: a swapped pair of partial derivatives fails it."""
    program = Program(HEADER + "\n\ndef f(x, y):\n    return x * x * y\n", ("1.5", "0.5"), (0, 1))
    found = differentiate(program, [1.0, 0.25])
    right, wrong = 2 * 1.5 * 0.5 * 1.0 + 1.5**2 * 0.25, 1.5**2 * 1.0 + 2 * 1.5 * 0.5 * 0.25
    assert abs(found.outputs[0].t - right) < 1e-15 * found.outputs[0].s
    assert abs(found.outputs[0].t - wrong) > 0.1


def test_shrinking_keeps_what_matters() -> None:
    def fails(program: Program) -> bool:
        plain = run_plain(program)
        return plain.error is None and "np.tanh" in program.source and "[::-1]" in program.source

    program = next(p for p in sample(60) if fails(p) and size(p)[0] > 150)
    small = shrink(program, fails, seconds=20.0)
    assert fails(small)
    assert size(small)[0] < 60


def test_the_corpus_gives_back_what_it_was_given(tmp_path: Any) -> None:
    program = next(p for p in sample(20) if any("frozen" in text for text in p.args))
    verdict = check(program)
    verdict.fail("O3", "joint", "made up for this test")
    loaded = corpus.load(corpus.save(program, verdict.failures[-1], tmp_path))
    assert (loaded.args, loaded.wrt) == (program.args, program.wrt)
    assert repr(run_plain(loaded).result) == repr(run_plain(program).result)


def given(program: Program) -> list[Any]:
    """The arguments to differentiate by."""
    args = program.arguments()
    return [args[k] for k in program.wrt]


def difference(program: Program, directions: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Extrapolated central differences, and a bound on their error."""

    def at(step: float) -> np.ndarray:
        args = list(program.arguments())
        for k, direction in zip(program.wrt, directions, strict=True):
            moved = np.asarray(direction, dtype=np.float64) * step
            if isinstance(args[k], np.ndarray):
                writable = args[k].flags.writeable
                args[k].setflags(write=True)
                args[k] += moved
                args[k].setflags(write=writable)
            else:
                args[k] = type(args[k])(args[k] + moved)
        with np.errstate(all="ignore"):
            result = program.load()(*args)
        return np.concatenate([np.ravel(leaf).astype(float) for leaf in leaves(result)] or [np.zeros(0)])

    wide, narrow = ((at(h) - at(-h)) / (2 * h) for h in (1e-5, 5e-6))
    return (4 * narrow - wide) / 3, np.abs(wide - narrow) + 1e-9 * np.abs(at(0.0))
