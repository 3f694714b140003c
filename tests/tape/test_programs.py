"""Line 106: what the tape records of the test programs has the gradient of the same function decorated."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import tapegen as tg
from tests.oracle import floating, leaves, with_leaf
from tests.test_programs import ACCEPTED, Program

# Programs that write into arrays, and those that leave NumPy, are refused on a tape.
RECORDED = 200
# An augmented assignment makes a new tensor, as TensorFlow's do; these programs go on with the old name of it.
REBINDING = {"language/lists_of_arrays-in_branch", "language/view_store-in_branch", "language/same_array_twice"} | {
    f"language/mutating_callee-{place}" for place in ("at_top", "in_for", "in_branch")
}

# A tape adds to a cotangent call by call; a generated loop or routine first adds up what one iteration or one call
# contributes, moves out of loops what is the same on every iteration, and divides by sizes where the tape, which has
# met their values, multiplies.  Of `1.0 / x` it takes `-out / x` for the derivative, generated code `-out * out`.  BLAS
# may round a product with a view otherwise than one with its copy.  These programs round differently: by so many units
# in the last place of the largest component.
ROUNDED = {
    "textbook/hodgkin_huxley": 384,  # measured on two processors: 178, 272
    "textbook/quadrature_stack": 16,
    "textbook/continued_fraction_recursive": 16,  # measured: 8
} | dict.fromkeys(
    """textbook/ackermann textbook/bezier_arc_length textbook/holt_winters textbook/lotka_volterra
    textbook/monte_carlo_path textbook/particle_filter textbook/sir_model textbook/smooth_life
    language/closure_made_elsewhere language/complex_control language/derivatives_of_closures-in_branch
    language/nested_counters-in_branch language/nested_counters-in_while language/nonlocal_variables-in_while
    language/np_exponential-in_for language/np_exponential-in_while language/recursion-in_while
    language/recursive_closures-at_top language/recursive_closures-in_for language/walrus-in_while
    science/attention_heads science/barnes_hut_quadrants science/euler_maruyama_sde science/finite_volume_limiter
    science/hamiltonian_leapfrog science/hull_white_bond science/metropolis_chain science/spectral_subtraction
    language/np_products-at_top language/overwritten_in_loop language/if_elif_else-at_top science/decay_chain
    science/force_field science/horn_schunck science/lbfgs_two_loop science/tsne_affinity textbook/adagrad
    textbook/logistic_irls users/picture_registration users/quantal_response language/rebound_containers""".split(),
    4,
)


def recorded(program: Program) -> tuple[tg.GradientTape, dict[tuple, tg.Tensor], Any] | None:
    """The tape, the watched arguments and the result; None if the program is refused, as it must say."""
    args = program.args()
    sources: dict[tuple, tg.Tensor] = {}
    try:
        with np.errstate(all="ignore"), tg.GradientTape(persistent=True) as tape:
            for path in floating(args):
                if path[0] in program.positions():
                    leaf = tg.constant(dict(leaves(args))[path])
                    tape.watch(leaf)
                    sources[path] = leaf
                    args = with_leaf(args, path, leaf)
            value = program.function(*args, **program.kwargs())
    except (tg.NotDifferentiable, AttributeError, numba.core.errors.TypingError):
        return None  # methods of arrays and numba know nothing of tensors
    except tg.BadArgument as error:
        if "no tensors" in str(error):  # derivatives inside the program
            return None
        raise
    return tape, sources, value


def results(value: Any) -> dict[tuple, Any]:
    return {(): value} if isinstance(value, tg.Tensor) else dict(leaves(value))


def check(program: Program) -> bool:
    """Whether the program is recorded; then its gradient is that of the function decorated."""
    found = recorded(program)
    if found is None:
        return False
    tape, sources, value = found
    outs = results(value)
    want = floating(program.plain[0])
    for path, part in want.items():
        have = outs[path].numpy() if isinstance(outs[path], tg.Tensor) else outs[path]
        np.testing.assert_allclose(have, part, rtol=1e-12 if np.asarray(have).dtype == np.float64 else 1e-5)
    active = [path for path in want if isinstance(outs[path], tg.Tensor)]
    with np.errstate(all="ignore"):
        gradients = tape.gradient(
            [outs[path] for path in active],
            list(sources.values()),
            output_gradients=[np.asarray(program.weights[path], outs[path].dtype) for path in active],
            unconnected_gradients="zero",
        )
    _, pullback = program.decorated("python").vjp(*program.args(), **program.kwargs())
    expected = dict(zip(program.positions(), pullback(program.value_bar()), strict=True))
    for (position, *inner), got in zip(sources, gradients, strict=True):
        exact = np.asarray(dict(leaves(expected[position]))[tuple(inner)])
        assert got.dtype == exact.dtype
        assert got.shape == exact.shape
        if program.name in ROUNDED:
            unit = np.spacing(np.max(np.abs(exact), initial=0.0))
            assert np.max(np.abs(got.numpy() - exact), initial=0.0) <= ROUNDED[program.name] * unit
        else:
            np.testing.assert_array_equal(got.numpy(), exact)
    return True


PROGRAMS = [program for program in ACCEPTED if program.name not in REBINDING]


@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in PROGRAMS[::5]])
def test_line_106_gradients_of_programs(program: Program) -> None:
    check(program)


@pytest.mark.whole
@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in PROGRAMS])
def test_line_106_gradients_of_all_programs(program: Program) -> None:
    check(program)


def test_line_106_most_programs_are_recorded() -> None:
    assert sum(recorded(program) is not None for program in PROGRAMS) >= RECORDED
