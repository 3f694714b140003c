"""The programs under `tests/programs` in batches: three instances each, beside a loop of single calls.

Some of them here, all of them with `python -m pytest -m whole tests/api/test_batches_of_programs.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import NotDifferentiable
from tests.oracle import children, leaves, with_leaf
from tests.program_files import Program, collect

SCALES = (1.0, 1.001, 0.9995)
SLOW = {"textbook/adaptive_quadrature", "textbook/adaptive_simpson", "users/schroeder_reverb"}  # as generated Python
REFUSED = {  # what is refused inside of other functions as well
    "language/flattened_columns-at_top",
    "language/flattened_columns-in_for",
    "language/generator_functions",
    "language/items_behind_a_loop",
    "language/list_concatenation-in_while",
    "language/ravel_copy",
    "language/transpose_reshape_views-in_branch",
    "language/view_or_copy-at_top",
    "language/view_or_copy-in_branch",
    "language/view_or_copy-in_for",
}


def is_float(leaf: Any) -> bool:
    return isinstance(leaf, float | complex) or getattr(getattr(leaf, "dtype", None), "kind", "") in ("f", "c")


def axes_of(node: Any) -> Any:
    """Axis 0 of everything with floats; the rest is shared."""
    parts = {} if isinstance(node, np.ndarray) else {key: axes_of(child) for key, child in children(node)}
    if not parts:
        return 0 if is_float(node) else None
    if all(part is None for part in parts.values()):
        return None
    return tuple(parts.values()) if isinstance(node, tuple | list) else parts


def batch_of(program: Program) -> tuple[Any, ...]:
    """The arguments of three instances whose floats differ a little."""
    args: Any = program.args()
    for path, leaf in list(leaves(args)):
        if is_float(leaf):
            scales = np.array(SCALES, np.asarray(leaf).dtype).reshape(-1, *[1] * np.ndim(leaf))
            args = with_leaf(args, path, scales * np.asarray(leaf))
    return args


def same(found: Any, wanted: Any) -> None:
    have, want = dict(leaves(found)), dict(leaves(wanted))
    assert have.keys() == want.keys()
    for path, leaf in want.items():
        if isinstance(leaf, np.ndarray):
            assert have[path].dtype == leaf.dtype
            np.testing.assert_allclose(have[path], leaf, rtol=1e-7, atol=1e-10, err_msg=str(path))


PROGRAMS = [
    program
    for program in collect()
    if not program.kwargs() and program.name not in SLOW and any(axes_of(arg) is not None for arg in program.args())
]
SOME = {"language/float32-in_branch", *(program.name for program in PROGRAMS[::36])}
EACH = [
    pytest.param(program, id=program.name, marks=[] if program.name in SOME else pytest.mark.whole)
    for program in PROGRAMS
]


@pytest.mark.parametrize("program", EACH)
def test_a_batch_is_a_loop(program: Program) -> None:
    batched = tg.batch(program.function, tuple(map(axes_of, program.args())), program.wrt, backend="python")
    for mode in ("__call__", "value_and_grad") if program.is_scalar else ("__call__",):
        loop = batched.of(mode)
        one, other = batch_of(program), batch_of(program)
        wanted = loop.run(*one)
        try:
            found = loop.compiled._specialise(other, {}).answer("primal")[0]
        except NotDifferentiable:
            assert program.name in REFUSED
            return
        same(found, wanted)
        same(other, one)  # what was stored into them
    assert program.name not in REFUSED
