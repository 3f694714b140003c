"""Teach a small neural network, written in plain NumPy, to read handwritten digits.

The parameters are a dict of dicts of arrays, and so is the gradient; the update walks both.  The 1,797 scanned digits
of eight by eight pixels come with scikit-learn (E. Alpaydin and C. Kaynak, Bogazici University); a quarter of them is
kept for the test.

Run it: `python examples/digits.py`.  It saves `examples/output/digits.png`.
"""

from __future__ import annotations

import pathlib
import time

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

from tapegen import differentiable

EPOCHS = 40
BATCH = 32
RATE = 2e-3
OUTPUT = pathlib.Path(__file__).parent / "output" / "digits.png"


def scores(params, images):
    """One score for each image and digit: two hidden layers and a linear one."""
    x = images
    for name in ("first", "second"):
        x = np.maximum(x @ params[name]["w"] + params[name]["b"], 0.0)
    return x @ params["last"]["w"] + params["last"]["b"]


@differentiable
def loss(params, images, labels, decay):
    """Mean cross-entropy, plus a penalty on large weights."""
    z = scores(params, images)
    z = z - np.max(z, axis=1, keepdims=True)
    log_probability = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    penalty = sum(np.sum(layer["w"] ** 2) for layer in params.values())
    return decay * penalty - np.mean(log_probability[np.arange(len(labels)), labels])


def initial(sizes: tuple[int, ...], rng: np.random.Generator) -> dict:
    """Random weights, scaled so that signals keep their size, and zero biases."""
    layers = zip(("first", "second", "last"), sizes[:-1], sizes[1:])
    return {
        name: {"w": rng.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs), "b": np.zeros(outputs)}
        for name, inputs, outputs in layers
    }


class Adam:
    """Kingma and Ba's method (2015), on a dict of dicts of arrays."""

    def __init__(self, params: dict, rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.mean = {name: {key: np.zeros_like(a) for key, a in layer.items()} for name, layer in params.items()}
        self.square = {name: {key: np.zeros_like(a) for key, a in layer.items()} for name, layer in params.items()}

    def update(self, params: dict, gradient: dict) -> None:
        """Change the parameters in place."""
        self.steps += 1
        rate = self.rate * np.sqrt(1.0 - 0.999**self.steps) / (1.0 - 0.9**self.steps)
        for name, layer in gradient.items():
            for key, g in layer.items():
                mean, square = self.mean[name][key], self.square[name][key]
                mean += 0.1 * (g - mean)
                square += 0.001 * (g * g - square)
                params[name][key] -= rate * mean / (np.sqrt(square) + 1e-8)


def accuracy(params: dict, images: np.ndarray, labels: np.ndarray) -> float:
    """The part of the images that is read right, in percent."""
    return 100.0 * float(np.mean(np.argmax(scores(params, images), axis=1) == labels))


def plot(history: np.ndarray, params: dict, images: np.ndarray, labels: np.ndarray) -> None:
    """The course of the training, and the test images the network is least sure about or reads wrong."""
    figure = plt.figure(figsize=(12, 4.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
    axis = left.subplots()
    axis.plot(100.0 - history[:, 0], label="training images")
    axis.plot(100.0 - history[:, 1], label="test images")
    axis.set_yscale("symlog", linthresh=1.0)
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("passes over the training images")
    axis.set_ylabel("read wrong, %")
    axis.legend(frameon=False)
    z = scores(params, images)
    own = z[np.arange(len(labels)), labels]
    others = np.where(np.arange(10) == labels[:, None], -np.inf, z)
    hardest = np.argsort(own - np.max(others, axis=1))[:18]
    right.suptitle("the hardest test images, as the network reads them (red: wrong)")
    for place, k in zip(right.subplots(3, 6).ravel(), hardest):
        place.imshow(images[k].reshape(8, 8), cmap="gray_r")
        read = int(np.argmax(z[k]))
        place.set_title(str(read), color="C2" if read == labels[k] else "C3", fontsize=11)
        place.axis("off")
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=130)


def main() -> None:
    rng = np.random.default_rng(0)
    data = load_digits()
    order = rng.permutation(len(data.target))
    images, labels = data.data[order] / 16.0, data.target[order]
    cut = len(labels) * 3 // 4
    train, test = (images[:cut], labels[:cut]), (images[cut:], labels[cut:])
    params = initial((64, 64, 32, 10), rng)
    count = sum(a.size for layer in params.values() for a in layer.values())
    print(f"{cut} images to learn from, {len(labels) - cut} to be tested on, {count} parameters")

    begin = time.perf_counter()
    loss.precompile(params, train[0][:BATCH], train[1][:BATCH], 1e-4)
    print(f"compilation       {time.perf_counter() - begin:.1f} s")

    adam = Adam(params, RATE)
    history = []
    begin = time.perf_counter()
    with tqdm(range(EPOCHS), desc="training", unit="pass", mininterval=0.5) as bar:
        for _ in bar:
            for part in np.split(rng.permutation(cut), range(BATCH, cut, BATCH)):
                value, gradient = loss.value_and_grad(params, train[0][part], train[1][part], 1e-4)
                adam.update(params, gradient)
            history.append((accuracy(params, *train), accuracy(params, *test)))
            bar.set_postfix_str(f"loss {value:.4f}, test {history[-1][1]:.1f} %", refresh=False)
    steps = adam.steps
    print(f"{steps} steps        {1e3 * (time.perf_counter() - begin) / steps:.2f} ms each")
    print(f"read right        {history[-1][0]:.1f} % of the training images, {history[-1][1]:.1f} % of the test images")
    plot(np.array(history), params, *test)
    print(f"saved             {OUTPUT}")


if __name__ == "__main__":
    main()
