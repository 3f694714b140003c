"""Random programs, compiled, against dual numbers.

`TAPEGEN_RANDOM_COMPILED` sets how many programs are compiled (default 60), `TAPEGEN_RANDOM_SEED` the first seed
(default 0).  They are short, as compiling is slow; `python -m tests.random_programs --backend numba` takes longer ones.
"""

from __future__ import annotations

import os

import pytest

from tests.random_programs.campaign import campaign
from tests.random_programs.generator import profiles

COMPILED = int(os.environ.get("TAPEGEN_RANDOM_COMPILED", "60"))
SEED = int(os.environ.get("TAPEGEN_RANDOM_SEED", "0"))
CHUNKS = 4
LINES = 16


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compiled_gradients_agree_with_the_oracles(chunk: int) -> None:
    count = -(-COMPILED // CHUNKS)
    names = [name for name in profiles() if name != "errors"]
    turned = names[3 * chunk :] + names[: 3 * chunk]
    summary = campaign(count, SEED + 1000 * (chunk + 1), turned, "numba", longest=LINES, shrinks=1)
    assert not summary.buckets, "\n\n".join([*map(str, summary.found), str(summary)])
    assert summary.passed["O3"] > count // 3
