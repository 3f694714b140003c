"""The tape next to torch eager, HIPS autograd and TensorFlow eager, where installed: `python -m benchmarks.eager`.

Per recorded operation, forward and backward, on arrays of 10 elements; and a training step of a 784-256-10 network at
batch 64 on one core.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np

import tapegen as tg

ROUNDS = 50
OPERATIONS = 7 * ROUNDS + 1
START = np.linspace(0.5, 1.5, 10)


def chain(x: Any, sin: Callable[[Any], Any], total: Callable[[Any], Any]) -> Any:
    """Seven operations a round, and a sum."""
    y = x
    for _ in range(ROUNDS):
        y = y * x + 0.1
        y = sin(y)
        y = y - x / (1.0 + y * y)
    return total(y)


def least(functions: dict[str, Callable[[], Any]], rounds: int = 100) -> dict[str, float]:
    """Seconds of the processor in the quickest run of each; they take turns, so that all meet the same machine."""
    found = dict.fromkeys(functions, float("inf"))
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function()
            found[name] = min(found[name], time.process_time() - start)
    return found


def tape_chain() -> Any:
    x = tg.constant(START)
    with tg.GradientTape() as tape:
        tape.watch(x)
        y = chain(x, np.sin, np.sum)
    return tape.gradient(y, x).numpy()


def torch_chain() -> Any:
    import torch

    x = torch.tensor(START, requires_grad=True)
    chain(x, torch.sin, torch.sum).backward()
    return x.grad.numpy()


def autograd_chain() -> Any:
    import autograd
    import autograd.numpy as anp

    return autograd.grad(lambda x: chain(x, anp.sin, anp.sum))(START)


def tensorflow_chain() -> Any:
    import tensorflow as tf

    x = tf.constant(START)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = chain(x, tf.sin, tf.reduce_sum)
    return tape.gradient(y, x).numpy()


# ---- a network -------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(64, 784)).astype(np.float32)
DIGITS = RNG.integers(0, 10, 64)
SHAPES = [(784, 256), (256,), (256, 10), (10,)]
WEIGHTS = [(RNG.normal(size=shape) * 0.05).astype(np.float32) for shape in SHAPES]


def tape_step() -> Callable[[], Any]:
    variables = [tg.Variable(w) for w in WEIGHTS]
    rows = np.arange(64)

    def step() -> Any:
        with tg.GradientTape() as tape:
            w1, b1, w2, b2 = variables
            hidden = np.maximum(IMAGES @ w1 + b1, 0.0)
            logits = hidden @ w2 + b2
            shifted = logits - np.max(logits, axis=1, keepdims=True).numpy()
            scores = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
            loss = -np.mean(scores[rows, DIGITS])
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(np.float32(0.01) * gradient)
        return loss

    return step


def torch_step() -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    variables = [torch.tensor(w, requires_grad=True) for w in WEIGHTS]
    images, digits = torch.tensor(IMAGES), torch.tensor(DIGITS)

    def step() -> Any:
        w1, b1, w2, b2 = variables
        hidden = torch.relu(images @ w1 + b1)
        loss = torch.nn.functional.cross_entropy(hidden @ w2 + b2, digits)
        loss.backward()
        with torch.no_grad():
            for variable in variables:
                variable -= 0.01 * variable.grad
                variable.grad = None
        return loss

    return step


def tensorflow_step() -> Callable[[], Any]:
    import tensorflow as tf

    variables = [tf.Variable(w) for w in WEIGHTS]
    images, digits = tf.constant(IMAGES), tf.constant(DIGITS)

    def step() -> Any:
        with tf.GradientTape() as tape:
            w1, b1, w2, b2 = variables
            logits = tf.nn.relu(images @ w1 + b1) @ w2 + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(digits, logits))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    return step


def main() -> None:
    """Print the tables."""
    chains: dict[str, Callable[[], Any]] = {"tape": tape_chain}
    steps = {"tape": tape_step()}
    if importlib.util.find_spec("torch") is not None:
        chains["torch"] = torch_chain
        steps["torch"] = torch_step()
    if importlib.util.find_spec("autograd") is not None:
        chains["autograd"] = autograd_chain
    if importlib.util.find_spec("tensorflow") is not None:
        chains["tensorflow"] = tensorflow_chain
        steps["tensorflow"] = tensorflow_step()
    for run in chains.values():
        np.testing.assert_allclose(run(), tape_chain(), rtol=1e-12)
    chains["NumPy alone, forward"] = lambda: chain(START, np.sin, np.sum)
    print(f"{'per operation':<24}{'microseconds':>14}")
    for name, seconds in least(chains).items():
        print(f"{name:<24}{seconds / OPERATIONS * 1e6:>14.2f}")
    print(f"\n{'training step':<24}{'milliseconds':>14}")
    for name, seconds in least(steps, 300).items():
        print(f"{name:<24}{seconds * 1e3:>14.2f}")
    large = np.ones(100_000)
    tensor = tg.constant(large)
    found = least({"plain": lambda: np.sin(large) * 2.0, "wrapped": lambda: np.sin(tensor) * 2.0}, 300)
    print(f"\nwithout a tape, on 1e5 elements: {found['wrapped'] / found['plain']:.3f} of NumPy's time")


if __name__ == "__main__":
    main()
