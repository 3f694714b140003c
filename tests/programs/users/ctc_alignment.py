"""Connectionist temporal classification: log-probabilities of all alignments, and of the best one."""

import numpy as np

NEG = -np.inf


def log_add(xs):
    top = max(xs)
    if top == NEG:
        return NEG
    return top + np.log(sum(np.exp(x - top) for x in xs))


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def ctc(logp, labels, blank=0, combine=log_add):
    extended = [blank]
    for label in labels:
        extended += [label, blank]
    S, T = len(extended), len(logp)
    alpha = np.full((T, S), NEG)
    alpha[0, 0] = logp[0, blank]
    alpha[0, 1] = logp[0, extended[1]]
    for t in range(1, T):
        for s in range(S):
            paths = [alpha[t - 1, s]]
            if s > 0:
                paths.append(alpha[t - 1, s - 1])
            if s > 1 and extended[s] != blank and extended[s] != extended[s - 2]:
                paths.append(alpha[t - 1, s - 2])
            alpha[t, s] = combine(paths) + logp[t, extended[s]]
    return combine([alpha[-1, -1], alpha[-1, -2]])


def f(logits, temperature):
    logp = log_softmax(logits / temperature)
    words = {"aba": [1, 2, 1], "bb": [2, 2], "c": [3]}
    loss = 0.0
    for word, labels in words.items():
        weight = {1: 0.2, 2: 0.3}.get(len(labels), 0.5)
        loss -= weight * ctc(logp, labels)
    best = ctc(logp, words["aba"], combine=max)
    return loss - 0.1 * best


ARGS = (np.sin(np.arange(24.0)).reshape(6, 4) * 2, 1.3)
