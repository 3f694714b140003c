"""Gradients by tapes, from one number to Hessians: the story of TensorFlow's guides on NumPy arrays.

Each part prints what it shows.  Two pictures are saved to `examples/output/`: the sigmoid with its derivative, and a
function with an `if` in it with its gradient.

Run it: `python examples/tape_guide.py`.
"""

from __future__ import annotations

import pathlib

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import tapegen as tg
from tapegen import nn

OUTPUT = pathlib.Path(__file__).parent / "output"


def one_number() -> None:
    """A tape records what is done with variables, and plays it backwards."""
    x = tg.Variable(3.0)
    with tg.GradientTape() as tape:
        y = x**2
    print("d(x**2)/dx at 3:", tape.gradient(y, x))


def several_sources() -> None:
    """The gradient has the structure of the sources."""
    w = tg.Variable(np.random.default_rng(0).normal(size=(3, 2)), name="w")
    b = tg.Variable(np.zeros(2), name="b")
    x = np.array([[1.0, 2.0, 3.0]])
    with tg.GradientTape(persistent=True) as tape:
        y = x @ w + b
        loss = np.mean(y**2)
    gradient = tape.gradient(loss, {"w": w, "b": b})
    print("shapes of w and of its gradient:", w.shape, gradient["w"].shape)
    print("the same as code:")
    print(tape.source(loss, [w, b]))


def what_is_watched() -> None:
    """Trainable variables are watched, tensors when asked for."""
    x0 = tg.Variable(3.0, name="x0")
    x1 = tg.Variable(3.0, name="x1", trainable=False)
    x2 = tg.constant(3.0)
    with tg.GradientTape(persistent=True) as tape:
        y = x0**2 + x1**2 + x2**2
    print("gradients of a trainable, a fixed variable and a constant:", tape.gradient(y, [x0, x1, x2]))
    print("why None:", tape.explain(y, x1))


def branch(x, low, high):
    """A function with a decision in it: the tape records the way that was taken."""
    return low * x**2 + 3.0 if x < 0.0 else high * x**3


def control_flow() -> None:
    """Derivatives follow the branch; the picture shows the function and its gradient over a range."""
    low, high = tg.Variable(0.5), tg.Variable(0.1)
    points = np.linspace(-4.0, 4.0, 161)
    values, slopes = [], []
    for point in points:
        x = tg.constant(point)
        with tg.GradientTape() as tape:
            tape.watch(x)
            y = branch(x, low, high)
        values.append(y.numpy())
        slopes.append(tape.gradient(y, x).numpy())
    with tg.GradientTape() as tape:
        y = branch(tg.constant(2.0), low, high)
    print("gradients of the two branches at 2:", tape.gradient(y, [low, high]))
    picture("tape_branch.png", points, values, slopes, "a function with an if")


def sigmoid() -> None:
    """The gradient of a sum of independent terms has the derivative of each."""
    x = tg.constant(np.linspace(-10.0, 10.0, 201))
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = nn.sigmoid(x)
    picture("tape_sigmoid.png", x, y, tape.gradient(y, x), "sigmoid")


def custom_gradients() -> None:
    """A function may bring its own gradient: here one that does not overflow, and one that is clipped."""

    @tg.custom_gradient
    def log1pexp(x):
        power = np.exp(x)
        return np.log(1.0 + power), lambda upstream: upstream * (1.0 - 1.0 / (1.0 + power))

    x = tg.Variable(100.0)
    with tg.GradientTape() as tape:
        y = log1pexp(x)
    print("d log(1 + exp(x))/dx at 100:", tape.gradient(y, x))

    @tg.custom_gradient
    def clipped(x):
        return x, lambda upstream: tg.clip_by_norm(upstream, 0.5)

    v = tg.Variable(2.0)
    with tg.GradientTape() as tape:
        y = clipped(v * v)
    print("d(v * v)/dv at 2, with what arrives clipped to 0.5:", tape.gradient(y, v))


def higher_orders() -> None:
    """A gradient taken inside another tape is recorded itself."""
    x = tg.Variable(1.0)
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    print("first and second derivative of x**3 at 1:", first, outer.gradient(first, x))


def newton_step() -> None:
    """The Hessian of a layer's loss, and the step that it suggests."""
    nn.set_seed(1)
    x = np.random.default_rng(2).normal(size=(7, 5))
    first, second = nn.Dense(8, activation="relu"), nn.Dense(6, activation="relu")
    with tg.GradientTape() as outer:
        with tg.GradientTape() as inner:
            loss = np.mean(second(first(x)) ** 2)
        gradient = inner.gradient(loss, first.kernel)
    hessian = outer.jacobian(gradient, first.kernel)
    size = first.kernel.size
    matrix = hessian.numpy().reshape(size, size) + 1e-3 * np.eye(size)
    first.kernel.assign_sub(np.linalg.solve(matrix, gradient.numpy().ravel()).reshape(first.kernel.shape))
    after = np.mean(second(first(x)) ** 2)
    print(f"a Newton step with a Hessian of {hessian.shape}: loss {loss.numpy():.4f} -> {after.numpy():.4f}")


def picture(name, x, y, slope, title) -> None:
    """A function and its derivative."""
    figure, axes = plt.subplots(figsize=(5, 3.4))
    axes.plot(x, y, label="y")
    axes.plot(x, slope, label="dy/dx")
    axes.axhline(0.0, color="gray", linewidth=0.5)
    axes.set(title=title, xlabel="x")
    axes.legend()
    figure.tight_layout()
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / name, dpi=120)
    plt.close(figure)


def main() -> None:
    """All parts in their order."""
    for part in (
        one_number,
        several_sources,
        what_is_watched,
        control_flow,
        sigmoid,
        custom_gradients,
        higher_orders,
        newton_step,
    ):
        with np.errstate(over="ignore"):  # exp(100) in single steps of a derivation
            part()


if __name__ == "__main__":
    main()
