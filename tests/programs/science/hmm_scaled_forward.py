"""The forward algorithm of a hidden Markov model, scaled at each step; three softmaxes unpacked from a generator."""

import numpy as np

def softmax(x, axis=-1):
    z = x - x.max(axis=axis, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)

def f(logits_A, logits_B, logits_pi, obs):
    A, B, pi = (softmax(x) for x in (logits_A, logits_B, logits_pi))
    T = len(obs)
    alpha = np.empty((T, len(pi)))
    scale = np.zeros(T)
    alpha[0] = pi * B[:, obs[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, T):
        for j in range(alpha.shape[1]):
            alpha[t, j] = np.dot(alpha[t - 1], A[:, j]) * B[j, obs[t]]
        scale[t] = np.sum(alpha[t])
        alpha[t, :] /= scale[t]
    return np.log(scale).sum()

WRT = (0, 1, 2)
RNG = np.random.default_rng(2)
ARGS = (RNG.normal(size=(3, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=3), RNG.integers(0, 4, size=8))
