"""A language model of two LSTM layers with diagonal gates: transcendental functions in a recurrence."""

import numpy as np

FIRST, GOAL = 1.6, 1.0
WRT = (0, 1, 2)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def f(weights, biases, extra, state0, sequence):
    layers, _, width = weights.shape
    hidden = state0.copy()
    cell = state0.copy()
    loss = 0.0
    for t in range(sequence.shape[0] - 1):
        signal = sequence[t] * extra[0]
        for k in range(layers):
            forget = sigmoid(signal * weights[k, 0] + biases[k, 0])
            ingate = sigmoid(hidden[k] * weights[k, 1] + biases[k, 1])
            outgate = sigmoid(signal * weights[k, 2] + biases[k, 2])
            change = np.tanh(hidden[k] * weights[k, 3] + biases[k, 3])
            cell[k] = cell[k] * forget + ingate * change
            hidden[k] = outgate * np.tanh(cell[k])
            signal = hidden[k]
        predicted = signal * extra[1] + extra[2]
        norm = np.log(np.sum(np.exp(predicted)) + 2.0)
        for i in range(width):
            loss -= sequence[t + 1, i] * (predicted[i] - norm)
    return loss / sequence.shape[0]


def args(width=14, length=1000, layers=2):
    rng = np.random.default_rng(0)
    sequence = np.zeros((length, width))
    sequence[np.arange(length), rng.integers(0, width, length)] = 1.0
    return (
        rng.normal(size=(layers, 4, width)),
        0.5 * rng.normal(size=(layers, 4, width)),
        rng.normal(size=(3, width)),
        0.1 * rng.normal(size=(layers, width)),
        sequence,
    )


def small():
    return args(3, 4)
