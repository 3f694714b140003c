"""The passes of both pipelines: their stages can be looked at, and each optimization can be switched off."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from benchmarks.passes import fires_on
from tapegen.errors import BadArgument, NoCompiledForm
from tapegen.ir.nodes import Function
from tapegen.ir.passes import Pass, run_passes, stage_names
from tapegen.loops.pipeline import PASSES
from tapegen.pipeline.artifacts.generated_text import compiled_text
from tapegen.pipeline.compile import FORWARD_PASSES, REVERSE_PASSES
from tapegen.pipeline.debug_passes import OPTIMIZATIONS
from tapegen.pipeline.stages import STAGES
from tests import strict
from tests.test_programs import ACCEPTED, Program, assert_gradient, assert_same, each

PIPELINES = {"reverse": REVERSE_PASSES, "forward": FORWARD_PASSES, "loops": PASSES}


def accumulating(x: Any) -> Any:
    total = np.zeros(2)
    for i in range(x.shape[0]):
        old = total[i % 2]
        new = old + x[i] * x[i]
        total[i % 2] = new
    return total[0] * total[1]


def reassigned(x: Any) -> Any:
    for _ in range(2):
        y = x * 2.0
        x = np.sin(y) * y
    return np.sum(x)


def invariant(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        total += np.sum((x * 2.0) ** 2 * x[k])
    return total


def counting(x: Any) -> Any:
    total = 1.0
    k = 0
    while k < x.shape[0]:
        total *= x[k]
        k += 1
    return total


def filling(x: Any) -> Any:
    powers = [x[0]]
    for k in range(x.shape[0]):
        powers.append(powers[k] * x[k])
    return powers[-1]


def small_vectors(x: Any) -> Any:
    total = 0.0
    for k in range(x.shape[0]):
        d = np.zeros(2)
        d[0], d[1] = x[k], x[k] ** 2
        total += np.sum(d * d)
    return total


def other_pairs(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if i != j:
                total += x[i] * x[j] ** 2
    return total


def shares_of_rows(x: Any) -> Any:
    sines = np.sin(x[:, None] * x)
    return np.sum(sines / np.sum(sines, axis=1, keepdims=True) * x)


def columns(x: Any) -> Any:
    products = x[:, None] * x
    for j in range(x.shape[0]):
        for i in range(1, x.shape[0]):
            products[i, j] *= products[i - 1, j]
    return np.sum(products)


def stored_squares(x: Any) -> Any:
    y = np.empty(3)
    for i in range(3):
        y[i] = x[i] * x[i]
        y[i] += np.sin(y[i])
    return np.dot(x, y)


def residuals(x: Any) -> Any:
    y = x[:, None] * x
    total = 0.0
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[0] - 1):
            total += (y[i + 1, j] + y[i, j + 1] + y[i, j - 1] - 3.0 * y[i, j]) ** 2
    return total


FIRES: dict[str, Any] = {
    "count_loops": counting,
    "convert_lists": filling,
    "recognize_accumulations": accumulating,
    "eliminate_common_loads": "lorenz96",
    "hoist_invariants": invariant,
    "eliminate_common_subexpressions": "nbody",
    "eliminate_dead_stores": "syrk",
    "split_excluded_iterations": other_pairs,
    "unroll_short_loops": small_vectors,
    "split_live_ranges": reassigned,
    "reduce_recurrence_height": "newton",
    "separate_scatters": residuals,
    "reverse_loops": "lu",
    "distribute_loops": "seidel_2d",
    "hoist_checks": "jacobi_2d",
    "convert_scatter_to_gather": "jacobi_2d",
    "fuse_outer_loops": shares_of_rows,
    "contract_arrays": shares_of_rows,
    "fuse_loops": "lorenz96",
    "sink_zero_init": "lorenz96",
    "interchange_loops": columns,
    "interchange_imperfect_nests": "syrk",
    "outline_loops": "black_scholes",
    "forward_stores": stored_squares,
    "pack_columns": "gramschmidt",
    "split_index_sets": "lorenz96",
    "replace_scalars": "cholesky",
    "reduce_modulo": "lorenz96",
    "if_convert_division": "newton",
    "coalesce_checks": "trisolv",
    "strip_mine_reductions": "black_scholes",
    "vectorize_math": "elementwise_chain",
    "fuse_dot_products": "trisolv",
    "unroll_and_jam": "trisolv",
    "share_sizes": "lorenz96",
    "specialize_short_axes": "nbody",
}
"""For each optimization a kernel, or a function of `X`, whose compiled text is another one without it."""


def square_sum(x: Any) -> Any:
    y = x * x
    return np.sum(y * x)


def formatted(x: Any) -> Any:
    if x[0] > 5.0:
        warnings.warn("large", source=None)  # noqa: B028
    return np.sum(x * x)


X = np.array([1.0, 2.0, 3.0])

# ---- the lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pass_is_a_verb_with_an_object_and_a_purpose(name: str) -> None:
    for one in PIPELINES[name]:
        assert "_" in one.name or one.name == "scalarize"
        assert one.purpose
        assert one.run.__name__ == one.name
        assert one.run.__doc__


def test_stages_have_names_of_their_own() -> None:
    assert len(set(STAGES)) == len(STAGES)
    assert STAGES.index("eliminate_dead_stores") < STAGES.index("fuse_loops") < STAGES.index("eliminate_dead_stores_2")


def test_passes_run_in_order_and_are_watched() -> None:
    passes = (
        Pass[int]("add_one", lambda n: n + 1, "more"),
        Pass[int]("scale", lambda n, *, factor: n * factor, "much more", False, ("factor",)),
        Pass[int]("add_one", lambda n: n + 1, "one more"),
    )
    seen: list[tuple[str, int]] = []
    assert run_passes(passes, 1, lambda *stage: seen.append(stage), factor=5) == 11
    assert seen == [("add_one", 2), ("scale", 10), ("add_one_2", 11)]
    assert stage_names(passes) == ["add_one", "scale", "add_one_2"]


# ---- stages ----------------------------------------------------------------------------------------------------------


def test_every_stage_can_be_printed() -> None:
    inspection = tg.differentiable(square_sum).inspect(X)
    assert tuple(inspection.stages) == STAGES
    texts = dict(inspection.stages)
    assert all(texts.values())
    assert texts["lower"].startswith("def square_sum(x: float64[:]C):")
    assert texts["derive_sweeps"] != texts["plan_recording"]
    assert "for " not in texts["inline_templates"]
    assert texts["hoist_checks"].count("for ") > texts["fuse_loops"].count("for ")
    assert list(texts.values())[-1] == inspection.compiled


def test_stages_in_front_of_a_call_without_compiled_form_can_be_printed() -> None:
    stages = tg.differentiable(formatted, backend="numba").inspect(X).stages
    assert "warnings.warn(" in stages["inline_templates"]
    with pytest.raises(NoCompiledForm):
        stages["scalarize"]


# ---- switching off ---------------------------------------------------------------------------------------------------


def test_every_optimization_can_be_switched_off() -> None:
    assert set(FIRES) == set(OPTIMIZATIONS)


@pytest.mark.parametrize("name", FIRES)
def test_a_kernel_has_the_same_gradient_without_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strict.use(monkeypatch)
    fires = FIRES[name]
    kernel = importlib.import_module(f"benchmarks.kernels.{fires}") if isinstance(fires, str) else None
    args = (X,) if kernel is None else kernel.small()
    dots = tuple(arg * 0.5 if isinstance(arg, np.ndarray) and arg.dtype == float else None for arg in args)
    options: Any = {"cache": False, "parallel": name == "outline_loops"}
    function = tg.differentiable(wrt=(0,) if kernel is None else kernel.WRT, **options)(kernel.f if kernel else fires)

    def outcome() -> tuple[Any, ...]:
        program = function._specialise(args, {}).program
        functions = program.stages(scalar=True).joint, program.pushed
        texts = [compiled_text(program, each, short_axes=program.short_axes).text for each in functions]
        return texts, function.value_and_grad(*args), function.jvp(args, dots)

    usual = outcome()
    with tg.debug(disable=name):
        without = outcome()
    assert without[0] != usual[0]
    assert_same(without[1:], usual[1:], "value, gradient and tangent", rtol=1e-11)


def test_the_benchmark_of_passes_sees_which_fire() -> None:
    program = tg.differentiable(small_vectors)._specialise((X,), {}).program
    found = fires_on(program)
    assert "unroll_short_loops" in found
    assert "fuse_outer_loops" not in found


@each(ACCEPTED[11::80])
def test_sample_has_the_same_gradient_without_any(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(program, OPTIMIZATIONS, monkeypatch)


@pytest.mark.whole
@pytest.mark.parametrize("name", OPTIMIZATIONS)
@each(ACCEPTED)
def test_has_the_same_gradient_without_a_pass(program: Program, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(program, (name,), monkeypatch)


@pytest.mark.filterwarnings("ignore::tapegen.errors.PerformanceWarning")
def _check(program: Program, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    strict.use(monkeypatch)
    with tg.debug(disable=names):
        value, pullback = program.decorated("auto").vjp(*program.args(), **program.kwargs())
        assert_same(value, program.plain[0], "value", rtol=1e-12)
        assert_gradient(program, pullback(program.value_bar()))


def test_what_is_specialised_inside_is_not_used_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    strict.use(monkeypatch)
    function = tg.differentiable(square_sum, cache=False)
    for _ in range(3):  # the third call is answered by the inline cache
        function.grad(X)
    usual = function._specialise((X,), {}).program
    with tg.debug(disable="fuse_loops"):
        function.grad(X)
        other = function._specialise((X,), {}).program
        assert function._specialise((X,), {}).program is other
        kept = function.inspect(X)
        with tg.debug(disable=["sink_zero_init"]):
            assert function._specialise((X,), {}).program.disabled == {"fuse_loops", "sink_zero_init"}
    assert other is not usual
    assert other.disabled == {"fuse_loops"}
    assert function._specialise((X,), {}).program is usual
    function.grad(X)
    assert function._inline_cache.last is usual
    assert kept.compiled != function.inspect(X).compiled  # printed later, and still without the pass


def test_a_fault_is_reported_with_what_was_switched_off() -> None:
    with tg.debug(disable=("fuse_loops", "share_sizes")):
        program = tg.differentiable(square_sum)._specialise((X,), {}).program
    assert program.subject("f.grad(*args)").call == (
        "with tg.debug(disable=['fuse_loops', 'share_sizes']):\n    f.grad(*args)"
    )


def test_closures_share_nothing_with_those_of_other_passes() -> None:
    def made() -> Any:
        def scaled(x: Any) -> Any:
            y = x * x
            return np.sum(y * x)

        return tg.differentiable(scaled)

    usual = made().inspect(X).compiled
    with tg.debug(disable="fuse_loops"):
        assert made().inspect(X).compiled != usual
    assert made().inspect(X).compiled == usual


def test_programs_on_disk_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TAPEGEN_CACHE", str(tmp_path))
    function = tg.differentiable(square_sum)
    usual, _ = function._specialise((X,), {}).program.on_disk("joint", general=False)
    with tg.debug(disable="fuse_loops"):
        other, _ = function._specialise((X,), {}).program.on_disk("joint", general=False)
    assert usual is not None
    assert other is not None
    assert None is not usual.key != other.key is not None


def test_other_threads_keep_all_passes() -> None:
    found: list[Any] = []
    function = tg.differentiable(square_sum)
    with tg.debug(disable="fuse_loops"):
        thread = threading.Thread(target=lambda: found.append(function._specialise((X,), {}).program))
        thread.start()
        thread.join()
    assert found[0].disabled == frozenset()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("fuse", "'fuse' is no pass"), ("scalarize", "'scalarize' cannot be switched off: it is no optimization")],
)
def test_names_that_cannot_be_switched_off(name: str, reason: str) -> None:
    with pytest.raises(BadArgument, match=reason) as caught, tg.debug(disable=("fuse_loops", name)):
        pass
    assert all(optimization in str(caught.value) for optimization in OPTIMIZATIONS)


def test_a_pass_that_is_no_optimization_runs() -> None:
    function = Function("f", (), ())
    assert run_passes((Pass[Function]("keep_it", lambda f: f, "nothing", False),), function) is function


def merged(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
    a = a * 1.0
    b = b * 1.0
    t = b
    if x[0] > 0.0:
        t = a
    for i in range(len(x)):
        t[i] = x[i] * 2.0
    s = 0.0
    for i in range(len(x)):
        s += a[i + 1] * a[i] * x[i]
    return s + np.sum(b)


def test_a_pullback_knows_which_of_its_arguments_share_memory() -> None:
    """The cotangents of arrays with two names, made by the forward sweep, have two names, too."""
    arguments = np.arange(5.0), np.arange(5.0), np.array([1.0, 0.5, 2.0, 1.5])
    program = tg.differentiable(merged, wrt=(0, 1, 2))._specialise(arguments, {}).program
    forms: list[Callable[..., Any]] = []
    for form in ("record", "pullback"):
        text = compiled_text(program, program.function(form)).text
        names: dict[str, Any] = {"njit": lambda **options: lambda function: function}
        exec(text.replace("from numba import njit", ""), names)
        forms.append(names[f"merged_{form}"])
    record, pullback = forms
    _, *kept = record(*(array.copy() for array in arguments))
    expected = tg.grad(merged, wrt=(0, 1, 2), backend="python")(*arguments)
    for found, gradient in zip(pullback(*kept, 1.0), expected, strict=True):
        np.testing.assert_allclose(found, gradient)
