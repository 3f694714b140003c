"""What is done differently for long functions in compiled code comes to the same as what numba does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core import analysis, codegen, compiler, config
from numba.core.runtime import _nrt_python

from tapegen import differentiable
from tapegen.backend.numba import patches, two_tier_optimization
from tapegen.backend.numba.liveness import fast_liveness, live_map
from tests.backend.test_register_promotion import living, steps


def searches(rows, wanted):
    """Names that are given on some paths only, read before they are given again, and left by several loops."""
    found = last = None
    for row in rows:
        for item in row:
            if item == wanted:
                found = item
                break
            last = item
        else:
            continue
        if last is not None:
            last = found
            break
    while found is not None and last != found:
        if last:
            found, last = last, found
            continue
        kept = last
        found = kept
    return found


@pytest.mark.parametrize("function", [searches, steps, lambda x: x])
def test_live_names_are_those_that_numba_finds(function: Callable[..., Any]) -> None:
    blocks = compiler.run_frontend(function).blocks
    cfg, names = analysis.compute_cfg_from_blocks(blocks), analysis.compute_use_defs(blocks)
    expected = analysis.compute_live_map(cfg, blocks, names.usemap, names.defmap)
    assert live_map(cfg, blocks, names.usemap, names.defmap) == expected


def test_numba_asks_its_own_function_again_afterwards() -> None:
    own = analysis.compute_live_map
    with pytest.raises(ZeroDivisionError), fast_liveness():
        assert 1 // (analysis.compute_live_map is not live_map)
    assert analysis.compute_live_map is own


@pytest.mark.compiled
def test_a_long_function_computes_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    args = np.linspace(0.5, 1.0, 5), 5, 2
    expected = differentiable(steps, backend="python").value_and_grad(*args)
    made = []
    optimised = two_tier_optimization._TwoTierLibrary._optimize_functions

    def counted(library: Any, module: Any) -> None:
        made.append(library.name)
        optimised(library, module)

    monkeypatch.setattr(two_tier_optimization._TwoTierLibrary, "_optimize_functions", counted)
    monkeypatch.setattr(two_tier_optimization, "_LONG", 0)
    function = differentiable(steps, backend="numba", cache=False)
    value, gradient = function.value_and_grad(*args)
    assert ("steps_value_and_grad" in "".join(made)) == patches.is_enabled("two_tier_optimization")
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
    _nrt_python.memsys_enable_stats()
    try:
        held = living()
        for n, skip in [(5, 2), (5, 9), (0, 0)]:
            function.value_and_grad(np.linspace(0.5, 1.0, 5), n, skip)
        assert living() == held
        for _ in range(2):
            held = living()
            with pytest.raises(IndexError):
                function.value_and_grad(np.linspace(0.5, 1.0, 3), 5, 1)
        assert living() - held <= 1  # the error itself
    finally:
        _nrt_python.memsys_disable_stats()


def test_linked_code_is_optimized_at_level_two_or_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int] = []
    made = codegen.JITCPUCodegen._module_pass_manager

    def noted(self: Any, **kwargs: Any) -> Any:
        levels.append(int(kwargs.get("opt", 3)))
        return made(self, **kwargs)

    monkeypatch.setattr(codegen.JITCPUCodegen, "_module_pass_manager", noted)
    programs: tuple[Callable[[Any], Any], ...] = (lambda x: x * x, lambda x: 0.5 * x * x * x)
    for program, asked, used in zip(programs, (3, 1), (2, 1), strict=True):
        monkeypatch.setattr(config, "OPT", config._OptLevel(asked))
        levels.clear()
        assert differentiable(program, backend="numba", cache=False).grad(2.0) in (4.0, 6.0)
        assert levels[-2:] == [0, used]
