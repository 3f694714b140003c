"""`tg.batch`: a function for each instance of a batch is what a Python loop over the instances computes."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tapegen as tg
from tapegen.errors import BadArgument, NotDifferentiable
from tapegen.pipeline.artifacts.execution import interpret
from tests.judged import both
from tests.oracle import leaves, numerical_gradient

COUNT = 4


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    b: Any
    name: str = "layer"


class Pair(NamedTuple):
    left: Any
    right: Any


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(0.3, 0.9, shape)


def halvings(x, k):
    """A `while` whose number of iterations depends on the instance."""
    total, left = 0.0, np.sum(x)
    while left > 0.1 * k:
        total = total + left * left * k
        left = 0.5 * left
    return total


def root(a, x):
    y = x
    while abs(y * y - a) > 1e-13:
        y = 0.5 * (y + a / y)
    return y


def of_dict(p, x):
    return np.sum(np.tanh(p["w"] @ x) * p["b"])


def of_layer(layer, x):
    return np.sum(np.sin(layer.w * x)) + np.sum(layer.b)


def of_pair(pair, x):
    return np.sum(pair.left * x) * np.sum(pair.right**2)


def stores(u, k):
    for i in range(1, u.shape[0]):
        u[i] = u[i] + k * u[i - 1] ** 2
    return np.sum(u)


# a function, its arguments, the axes of the instances, and which arguments are differentiated
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any, Any]] = {
    "rows": (halvings, (drawn(COUNT, 3), 0.7), (0, None), (0, 1)),
    "columns": (halvings, (drawn(3, COUNT), 0.7), (1, None), (0, 1)),
    "last axis": (halvings, (drawn(3, COUNT), 0.7), (-1, None), 0),
    "middle axis": (halvings, (drawn(2, COUNT, 3), drawn(COUNT)), (1, 0), (0, 1)),
    "all": (halvings, (drawn(COUNT, 3), drawn(COUNT)), 0, (0, 1)),
    "shared array": (halvings, (drawn(3), drawn(COUNT)), (None, 0), (0, 1)),
    "numbers": (root, (drawn(COUNT) * 9.0, 1.0), (0, None), 0),
    "one instance": (halvings, (drawn(1, 3), 0.7), (0, None), (0, 1)),
    "one element": (halvings, (drawn(COUNT, 1), 0.7), (0, None), (0, 1)),
    "dict": (of_dict, ({"w": drawn(COUNT, 2, 3), "b": drawn(COUNT, 2)}, drawn(COUNT, 3)), 0, (0, 1)),
    "shared dict": (of_dict, ({"w": drawn(2, 3), "b": drawn(2)}, drawn(COUNT, 3)), (None, 0), (0, 1)),
    "axes of a dict": (of_dict, ({"w": drawn(2, 3, COUNT), "b": 1.5}, drawn(3)), ({"w": 2, "b": None}, None), (0, 1)),
    "dataclass": (of_layer, (Layer(drawn(COUNT, 3), drawn(COUNT)), drawn(3)), (0, None), (0, 1)),
    "axes of a dataclass": (
        of_layer,
        (Layer(drawn(3, COUNT), 0.4), drawn(3)),
        ({"w": -1, "b": None, "name": None}, None),
        (0, 1),
    ),
    "named tuple": (of_pair, (Pair(drawn(COUNT, 3), drawn(COUNT, 2)), drawn(COUNT, 3)), 0, 0),
    "axes of a tuple": (of_pair, (Pair(drawn(3), drawn(2, COUNT)), drawn(COUNT, 3)), [[None, 1], 0], 0),
    "stores": (stores, (drawn(COUNT, 5), 0.2), (0, None), (0, 1)),
    "stores along columns": (stores, (drawn(5, COUNT), drawn(COUNT)), (1, 0), (0, 1)),
}


def part(value: Any, axes: Any, k: int) -> Any:
    """An argument of one instance, by code that shares nothing with the package."""
    if axes is None or isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return np.take(value, k, axis=axes).copy() if value.ndim > 1 else value[k]
    if isinstance(value, dict):
        return {key: part(child, axes[key] if isinstance(axes, dict) else axes, k) for key, child in value.items()}
    if isinstance(value, tuple):
        chosen = axes if isinstance(axes, tuple | list) else [axes] * len(value)
        return type(value)(*(part(child, each, k) for child, each in zip(value, chosen, strict=True)))
    names = [field.name for field in dataclasses.fields(value)]
    chosen = axes if isinstance(axes, dict) else dict.fromkeys(names, axes)
    return type(value)(**{name: part(getattr(value, name), chosen[name], k) for name in names})


def instances(args: tuple[Any, ...], in_axes: Any) -> list[tuple[Any, ...]]:
    axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
    count = 1 if any(isinstance(arg, np.ndarray) and arg.shape == (1, 3) for arg in args) else COUNT
    return [tuple(part(arg, each, k) for arg, each in zip(args, axes, strict=True)) for k in range(count)]


def fresh(args: Any) -> Any:
    return pickle.loads(pickle.dumps(args))


def same(found: Any, wanted: list[Any], rtol: float = 1e-7) -> None:
    """A batch of structures holds these structures, one after the other."""
    got = dict(leaves(found))
    for path, leaf in got.items():
        if leaf is None or isinstance(leaf, str):
            continue
        each = [dict(leaves(want))[path] for want in wanted]
        assert leaf.shape == (len(wanted), *np.shape(each[0])), path
        np.testing.assert_allclose(leaf, each, rtol=rtol, atol=1e-9, err_msg=str(path))
    assert got.keys() == dict(leaves(wanted[0])).keys()


@both
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_of_a_loop(case: str, backend: str) -> None:
    func, args, in_axes, wrt = CASES[case]
    batched = tg.batch(func, in_axes, wrt, backend=backend)
    alone = instances(args, in_axes)
    values = [func(*fresh(each)) for each in alone]
    np.testing.assert_allclose(batched(*fresh(args)), values, rtol=1e-12)
    given = fresh(args)
    found, gradients = batched.value_and_grad(*given)
    np.testing.assert_allclose(found, values, rtol=1e-12)
    by_python = fresh(args)  # what is stored into the arguments
    for k in range(len(alone)):
        axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
        if func is stores:
            stores(np.moveaxis(by_python[0], axes[0], 0)[k], part(args[1], axes[1], k))
    for (_, leaf), (path, want) in zip(leaves(given), leaves(by_python), strict=True):
        if not isinstance(leaf, str):
            np.testing.assert_allclose(leaf, want, err_msg=str(path))
    # by finite differences, and by single calls
    single = tg.grad(func, wrt, backend="python")
    same(gradients, [single(*fresh(each)) for each in alone], rtol=1e-9)
    same(batched.grad(*fresh(args)), [single(*fresh(each)) for each in alone], rtol=1e-9)
    chosen = (wrt,) if isinstance(wrt, int) else wrt
    for position in chosen:
        gradient = gradients if isinstance(wrt, int) else gradients[chosen.index(position)]
        got = dict(leaves(gradient))
        for k, each in enumerate(alone):
            estimate = numerical_gradient(func, each, paths=[(position,)])
            for path, want in estimate.value.items():
                error = np.max(estimate.error[path])
                np.testing.assert_allclose(got[path[1:]][k], want, rtol=1e-6, atol=1e-6 + 10.0 * error)


@both
@pytest.mark.parametrize("case", ["rows", "middle axis", "shared array", "numbers", "dict", "axes of a dataclass"])
def test_other_derivatives_are_those_of_a_loop(case: str, backend: str) -> None:
    func, args, in_axes, wrt = CASES[case]
    batched = tg.batch(func, in_axes, wrt, backend=backend)
    alone = instances(args, in_axes)
    direction = pickle.loads(pickle.dumps(args))
    axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
    dots = instances(direction, axes)
    own = {"backend": "python"}
    value, tangent = batched.jvp(args, direction)
    wanted = [tg.jvp(func, each, dot, **own) for each, dot in zip(alone, dots, strict=True)]
    np.testing.assert_allclose(value, [each[0] for each in wanted], rtol=1e-12)
    np.testing.assert_allclose(tangent, [each[1] for each in wanted], rtol=1e-9)
    products = [tg.hvp(func, each, dot, **own) for each, dot in zip(alone, dots, strict=True)]
    same(batched.hvp(args, direction), products, rtol=1e-9)
    same(batched.jacobian(*args), [tg.jacobian(func, wrt, **own)(*each) for each in alone], rtol=1e-9)
    value, pullback = batched.vjp(*args)
    np.testing.assert_allclose(value, [func(*each) for each in alone], rtol=1e-12)
    bars = 1.0 + np.arange(float(len(alone)))
    wanted = [tg.vjp(func, *each, wrt=wrt, **own)[1](float(bar)) for each, bar in zip(alone, bars, strict=True)]
    same(pullback(bars), wanted, rtol=1e-9)
    same(pullback(bars), wanted, rtol=1e-9)


def rates(x, k):
    return {"flux": k * x[1:] * x[:-1], "sum": np.sum(x * x), "kind": "rates", "none": None, "order": 2}


@both
def test_results_of_arrays_and_structures(backend: str) -> None:
    x = drawn(COUNT, 3)
    found = tg.batch(rates, (0, None), backend=backend)(x, 2.0)
    assert found["kind"] == "rates"
    assert found["none"] is None
    np.testing.assert_array_equal(found["order"], [2] * COUNT)
    np.testing.assert_allclose(found["flux"], 2.0 * x[:, 1:] * x[:, :-1])
    np.testing.assert_allclose(found["sum"], np.sum(x * x, axis=1))
    jacobian = tg.batch(lambda y: y[1:] * y[:-1], backend=backend).jacobian(x)
    wanted = [tg.jacobian(lambda y: y[1:] * y[:-1], backend="python")(each) for each in x]
    np.testing.assert_allclose(jacobian, wanted)


@both
def test_types_of_results(backend: str) -> None:
    def kinds(x, n, z):
        return x > 0.5, n + 1, x, z * z, 1.5

    x, n, z = drawn(COUNT).astype(np.float32), np.arange(COUNT), 1j * drawn(COUNT)
    found = tg.batch(kinds, backend=backend)(x, n, z)
    assert [part.dtype for part in found] == [np.bool_, np.int64, np.float32, np.complex128, np.float64]
    for part_, want in zip(found, (x > 0.5, n + 1, x, z * z, [1.5] * COUNT), strict=True):
        np.testing.assert_allclose(part_, want)


def energy(x):
    return np.sum(x**3), {"double": 2.0 * x, "name": "energy", "count": 7}


@both
def test_auxiliary_results(backend: str) -> None:
    x, v = drawn(COUNT, 3), drawn(COUNT, 3)[::-1]
    batched = tg.batch(energy, has_aux=True, backend=backend)
    (value, aux), gradient = batched.value_and_grad(x)
    np.testing.assert_allclose(value, np.sum(x**3, axis=1))
    np.testing.assert_allclose(gradient, 3.0 * x**2)
    product, after_product = batched.hvp((x,), (v,))
    np.testing.assert_allclose(product, 6.0 * x * v)
    _, pullback, after_pullback = batched.vjp(x)
    np.testing.assert_allclose(pullback(np.ones(COUNT)), 3.0 * x**2)
    found = [aux, after_product, after_pullback, batched.grad(x)[1], batched.jvp((x,), (v,))[2], batched.jacobian(x)[1]]
    for each in found:
        np.testing.assert_allclose(each["double"], 2.0 * x)
        np.testing.assert_array_equal(each["count"], [7] * COUNT)
        assert each["name"] == "energy"


def scaled(x, k=2.0, *rest, m=3.0):
    return np.sum(x) * k * m * (rest[0] if rest else 1.0)


def test_what_is_not_passed_has_no_instances() -> None:
    x, ks = drawn(COUNT, 3), drawn(COUNT)
    total = np.sum(x, axis=1)
    every, first = (tg.batch(scaled, axes, backend="python") for axes in (0, (0, None)))
    by_position = tg.batch(scaled, (0, 0, None), backend="python")
    by_name = tg.batch(scaled, {"x": 0, "k": None, "m": 0}, backend="python")
    for compiled in (False, True):

        def value(batched: Any, *args: Any, compiled: bool = compiled, **kwargs: Any) -> Any:
            """As plain Python, and as the program that is compiled."""
            if not compiled:
                return batched(*args, **kwargs)
            call = batched.of("__call__").compiled._specialise(args, kwargs)
            return call._result(interpret(call.program, call.program.function("primal"), call.leaves()), "primal")

        np.testing.assert_allclose(value(every, x), total * 6.0)
        np.testing.assert_allclose(value(every, x, m=ks), total * 2.0 * ks)
        np.testing.assert_allclose(value(every, x, ks, ks), total * ks * ks * 3.0)
        np.testing.assert_allclose(value(first, x, 5.0), total * 15.0)
        np.testing.assert_allclose(value(first, x, k=5.0, m=1.0), total * 5.0)
        np.testing.assert_allclose(value(by_position, x, ks, 4.0), total * ks * 12.0)
        np.testing.assert_allclose(value(by_name, x, m=ks), total * 2.0 * ks)
        np.testing.assert_allclose(value(by_name, x, 5.0, m=ks), total * 5.0 * ks)
        with pytest.raises(BadArgument, match="in_axes has no entry for 'argument 2'"):
            value(by_name, x, 5.0, 1.0)
        with pytest.raises(BadArgument, match="in_axes has 2 entries, and the call 3 arguments"):
            value(first, x, 5.0, 4.0)


@both
def test_random_draws_follow_each_other(backend: str) -> None:
    def noisy(rng, x):
        return x * rng.standard_normal() + rng.uniform() ** 2 * x**2

    x, rng, own = drawn(COUNT), np.random.default_rng(3), np.random.default_rng(3)
    values = tg.batch(noisy, (None, 0), wrt=1, backend=backend).value_and_grad(rng, x)
    wanted = [tg.value_and_grad(noisy, 1, backend="python")(own, float(each)) for each in x]
    np.testing.assert_allclose(values, np.transpose(wanted))
    assert rng.bit_generator.state == own.bit_generator.state


@both
def test_directions_of_what_is_passed(backend: str) -> None:
    x, v, ks = drawn(COUNT, 3), drawn(COUNT, 3)[::-1], drawn(COUNT)
    total, along = np.sum(x, axis=1), np.sum(v, axis=1)
    for in_axes in (0, (0, 0), {"x": 0, "k": 0, "m": None}):
        batched = tg.batch(scaled, in_axes, backend=backend)
        value, tangent = batched.jvp((x,), (v,), k=ks)
        np.testing.assert_allclose(value, total * ks * 3.0)
        np.testing.assert_allclose(tangent, along * ks * 3.0)
        np.testing.assert_allclose(batched.jvp((x, ks), (v, None))[1], along * ks * 3.0)
    batched = tg.batch(lambda u: u * u, backend=backend)
    for wrong in (v[:, :1], v[:, :2]):
        with pytest.raises(BadArgument, match=r"the tangent of 'u' has shape"):
            batched.jvp((x,), (wrong,))
    with pytest.raises(BadArgument, match=r"'primals.0' has 4 instances along axis 0, 'tangents.0' has 3"):
        batched.jvp((x,), (v[:3],))
    for wrong in (np.ones((COUNT, 1)), np.ones((COUNT, 2))):
        with pytest.raises(BadArgument, match=r"the cotangent of result 0 has shape"):
            batched.vjp(x)[1](wrong)


# ---- empty batches ---------------------------------------------------------------------------------------------------


@both
def test_an_empty_batch_has_results_where_their_shapes_are_known(backend: str) -> None:
    batched = tg.batch(halvings, (0, None), (0, 1), backend=backend)
    value, (of_x, of_k) = batched.value_and_grad(np.zeros((0, 3)), 0.7)
    assert (value.shape, of_x.shape, of_k.shape) == ((0,), (0, 3), (0,))
    found = tg.batch(rates, (0, None), backend=backend)(np.zeros((0, 4)), 2.0)
    assert (found["flux"].shape, found["sum"].shape, found["order"].shape) == ((0, 3), (0,), (0,))
    assert found["order"].dtype == np.int64


@both
def test_an_empty_batch_is_refused_where_values_determine_the_shapes(backend: str) -> None:
    batched = tg.batch(lambda x: x[x > 0.5], backend=backend)
    np.testing.assert_array_equal(batched(np.ones((2, 3))), np.ones((2, 3)))
    with pytest.raises(BadArgument, match="the batch is empty, and the shapes of its results are not known"):
        batched(np.zeros((0, 3)))
    with pytest.raises(BadArgument, match="have results of different shapes"):
        batched(np.array([[0.1, 0.9, 0.9], [0.1, 0.1, 0.9]]))


# ---- errors ----------------------------------------------------------------------------------------------------------


@both
def test_sizes_that_disagree(backend: str) -> None:
    batched = tg.batch(of_dict, (0, 1), backend=backend)
    given = {"w": drawn(COUNT, 2, 3), "b": drawn(COUNT, 2)}, drawn(3, COUNT + 1)
    for call in (batched, batched.grad):
        with pytest.raises(BadArgument, match=r"'p.w' has 4 instances along axis 0, 'x' has 5 along axis 1"):
            call(*given)
    ignoring = tg.batch(lambda x, unused: np.sum(x), backend=backend)
    with pytest.raises(BadArgument, match=r"'x' has 4 instances along axis 0, 'unused' has 3 along axis 0"):
        ignoring(drawn(COUNT, 2), drawn(3))


@pytest.mark.parametrize("backend", ["python", "numba"])
@pytest.mark.parametrize(
    ("in_axes", "args", "reason"),
    [
        (0, (drawn(COUNT, 3), 0.7), "'k' is a number, which has no axis 0"),
        ((2, None), (drawn(COUNT, 3), 0.7), "'x' has 2 axes, and in_axes says that its instances lie along axis 2"),
        ((-3, None), (drawn(COUNT, 3), 0.7), "'x' has 2 axes, and in_axes says that its instances lie along axis -3"),
        ((None, None), (drawn(COUNT, 3), 0.7), "no argument has an axis of instances"),
        ((0,), (drawn(COUNT, 3), 0.7), "in_axes has 1 entries, and the call 2 arguments"),
        (({"w": 0}, None), ({"v": drawn(COUNT, 3)}, 0.7), "in_axes is {'w': 0} for 'x', whose parts are 'v'"),
        (((0, 0), None), (drawn(COUNT, 3), 0.7), r"in_axes is \(0, 0\) for 'x', which has no parts"),
        ((0, None), ([0.5, 0.6], 0.7), "'x.0' is a number, which has no axis 0"),
    ],
)
def test_axes_that_do_not_fit(in_axes: Any, args: tuple[Any, ...], reason: str, backend: str) -> None:
    with pytest.raises(BadArgument, match=reason):
        tg.batch(halvings, in_axes, backend=backend)(*args)


@pytest.mark.parametrize("in_axes", ["x", 1.0, True, (0, "k"), {0}])
def test_what_is_no_axis(in_axes: Any) -> None:
    with pytest.raises(BadArgument, match="which is no axis"):
        tg.batch(halvings, in_axes)


def checked(x, y):
    if x > 0.8:
        raise RuntimeError(f"{x} is too large")
    return 1.0 / (float(x) - y)


@both
def test_an_error_names_its_instance(backend: str) -> None:
    batched = tg.batch(checked, (0, None), backend=backend)
    for call in (batched, batched.value_and_grad):
        with pytest.raises(RuntimeError, match="is too large") as raised:
            call(np.array([0.1, 0.2, 0.9, 1.0]), 0.7)
        assert raised.value.args == ("0.9 is too large",)
        assert "in instance 2 of the batch" in raised.value.__notes__
        with pytest.raises(ZeroDivisionError) as divided:
            call(np.array([0.1, 0.25]), 0.25)
        assert "in instance 1 of the batch" in divided.value.__notes__
    assert batched(np.array([0.5]), 0.0) == [2.0]


@both
def test_an_error_leaves_the_arguments_as_python_does(backend: str) -> None:
    def fill(u, x):
        u[0] = x
        if x > 0.8:
            raise ValueError("too large")
        u[1] = 2.0 * x

    x, found, wanted = np.array([0.1, 0.9, 0.3]), np.zeros((3, 2)), np.zeros((3, 2))
    with pytest.raises(ValueError, match="too large"):
        tg.batch(fill, backend=backend)(found, x)
    fill(wanted[0], x[0])
    with pytest.raises(ValueError, match="too large"):
        fill(wanted[1], x[1])
    np.testing.assert_array_equal(found, wanted)


def test_functions_that_cannot_be_batched() -> None:
    seen: list[float] = []

    def counting(x):
        seen.append(1.0)
        return x

    with pytest.raises(BadArgument, match="does not return a float but an array"):
        tg.batch(lambda x: x * x, backend="python").grad(drawn(COUNT, 2))
    with pytest.raises(NotDifferentiable, match="changes a container that all instances share"):
        tg.batch(counting, backend="numba")(drawn(COUNT))
    with pytest.raises(NotDifferentiable, match="must be known"):
        tg.batch(lambda n, x: np.zeros((2,) * n) + x, backend="numba")(np.arange(COUNT), drawn(COUNT))


@pytest.mark.parametrize(
    "different",
    [
        lambda x: (2.0 * x, "above" if x > 0.0 else "below"),
        lambda x: None if x > 0.0 else x,
        lambda x: [x] if x > 0.0 else [x, x],
        lambda x: (x,) if x > 0.0 else [x],
        lambda x: {"a": x} if x > 0.0 else {"b": x},
    ],
)
def test_instances_that_return_different_things_are_refused(different: Any) -> None:
    with pytest.raises(BadArgument, match="return different things"):
        tg.batch(different, backend="python")(np.array([1.0, -2.0]))


def test_what_all_instances_return_alike() -> None:
    doubled, name, nothing = tg.batch(lambda x: (2.0 * x, "doubled", None), backend="python")(np.array([1.0, -2.0]))
    np.testing.assert_array_equal(doubled, [2.0, -4.0])
    assert (name, nothing) == ("doubled", None)
