"""Causal attention with several heads, projections from a dict, normalised rows."""

import math

import numpy as np

def softmax(x, axis=-1):
    z = x - x.max(axis=axis, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)

def f(P, x, heads=2, causal=True):
    B, T, D = x.shape
    dh = D // heads
    def split(y):
        return y.reshape(B, T, heads, dh).transpose(0, 2, 1, 3)
    q, k, v = (split(x @ P[name]) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)
    if causal:
        mask = np.triu(np.ones((T, T), dtype=bool), 1)
        scores = np.where(mask, -1e9, scores)
    w = softmax(scores)
    y = np.moveaxis(w @ v, 1, 2).reshape(B, T, D) @ P["o"]
    mu = y.mean(-1, keepdims=True)
    sd = y.std(-1, keepdims=True)
    y = (y - mu) / (sd + 1e-5) + x
    return np.tanh(y[..., ::2]).sum() / y.size

WRT = (0, 1)
TOL = 1e-6
RNG = np.random.default_rng(14)
ARGS = ({name: 0.5 * RNG.normal(size=(4, 4)) for name in ("q", "k", "v", "o")}, RNG.normal(size=(2, 3, 4)))
