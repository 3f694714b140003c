"""Details of tapes that other tests pass over: each of these finds a planted defect that they do not find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.rules import registry
from tapegen.tape import clipping
from tapegen.tape.engine.operations import operation_of


def gradient(function: Any, *values: Any, weights: Any = None, **options: Any) -> list[Any]:
    """The gradient of what a function gives for variables."""
    variables = [tg.Variable(value) for value in values]
    with tg.GradientTape(**options) as tape:
        result = function(*variables)
    return [None if part is None else part.numpy() for part in tape.gradient(result, variables, weights)]


def softplus(x: Any) -> Any:
    return np.log(1.0 + np.exp(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_zero_that_a_choice_leaves_wins_over_an_infinite_divisor() -> None:
    (found,) = gradient(lambda x: np.sum(np.where(x > 1.0, np.log(x), x)), np.array([0.0, 4.0]))
    assert found.tolist() == [1.0, 0.25]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_choices_select_where_an_exponential_overflows() -> None:
    at = np.array([1000.0, 1.0])
    (found,) = gradient(lambda x: np.sum(np.where(x < 0.0, softplus(x), x)), at)
    assert found.tolist() == [1.0, 1.0]
    (found,) = gradient(lambda x: np.sum(np.clip(softplus(x), 0.0, 5.0)), at)
    np.testing.assert_allclose(found, [0.0, 1.0 / (1.0 + np.exp(-1.0))])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_one_of_two_uses_selects_is_used() -> None:
    def both(x: Any) -> Any:
        grown = np.exp(x)
        return np.log(1.0 + grown) + np.where(x < 0.0, grown, 0.0)

    assert np.isnan(gradient(both, 1000.0)[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_several_numbers_some_may_have_no_weight() -> None:
    (found,) = gradient(lambda x: [softplus(x), 3.0 * x], 1000.0, weights=[tg.constant(0.0), tg.constant(2.0)])
    assert found == 6.0


@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
def test_real_tensors_have_real_gradients() -> None:
    (found,) = gradient(lambda x: np.abs(x * (1.0 + 2.0j)) ** 2, 3.0)
    assert found.dtype == float
    assert found == pytest.approx(30.0)


def test_conjugate_gradients_are_conjugate() -> None:
    def function(z: Any) -> Any:
        return np.real(z * z * z)

    (plain,) = gradient(function, 1.0 + 2.0j)
    (found,) = gradient(function, 1.0 + 2.0j, conjugate=True)
    assert plain.imag != 0.0
    assert found == np.conj(plain)


def test_constants_of_linear_functions_have_no_tangent() -> None:
    x = tg.constant([1.0, 2.0])
    with tg.ForwardAccumulator(x, tg.constant([1.0, 3.0])) as accumulator:
        y = np.pad(x, 1, constant_values=7.0)
    tangent = accumulator.jvp(y)
    assert tangent is not None
    assert tangent.numpy().tolist() == [0.0, 1.0, 3.0, 0.0]


def test_rows_of_batch_jacobians() -> None:
    matrix = np.array([[1.0, 2.0], [3.0, 5.0]])
    x = tg.Variable([[0.5, 1.5], [2.5, -0.5]])
    with tg.GradientTape() as tape:
        y = (x * x) @ matrix
    expected = 2.0 * x.numpy()[:, None, :] * matrix.T
    assert tape.batch_jacobian(y, x).numpy().tolist() == expected.tolist()


def test_rows_that_depend_on_other_rows_are_refused_on_demand() -> None:
    x = tg.Variable([[0.5, 1.5], [2.5, -0.5]])
    with tg.GradientTape() as tape:
        y = x - np.mean(x, axis=0)
    with pytest.raises(ValueError, match="depends on another row"):
        tape.batch_jacobian(y, x, check_rows=True)


def test_elements_are_added_to_what_the_variable_is_now() -> None:
    variable = tg.Variable([1.0, 2.0])
    part: Any = variable[0]
    variable.assign([5.0, 6.0])
    part.assign_add(1.0)
    assert variable.numpy().tolist() == [6.0, 6.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_norm_that_is_not_finite_shows() -> None:
    (clipped,), norm = clipping.clip_by_global_norm([np.array([np.inf, 1.0])], 1.0)
    assert norm.numpy() == np.inf
    assert np.isnan(clipped.numpy()).all()


def test_a_rule_that_is_registered_later(monkeypatch: pytest.MonkeyPatch) -> None:
    (before,) = gradient(lambda x: np.cbrt(x), 8.0)
    assert before == pytest.approx(1.0 / 12.0)
    monkeypatch.setitem(registry._RULES, np.cbrt, registry._RULES[np.square])
    (found,) = gradient(lambda x: np.cbrt(x), 8.0)
    assert found == 16.0


def test_linear_functions_keep_the_shapes_of_their_operands_alone() -> None:
    plan = operation_of(np.sum).flat_plan((True,))
    assert plan is not None
    assert plan.keep == (False,)
