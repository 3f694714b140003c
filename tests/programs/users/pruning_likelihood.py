"""Felsenstein's pruning on a tree of nested tuples, Kimura's two rates, sites with ambiguous letters."""

import numpy as np

STATES = {"A": 0, "G": 1, "C": 2, "T": 3}


def transition(t, kappa):
    beta = 1.0 / (2 + 2 * kappa) * 2
    e1 = np.exp(-2 * beta * t)
    e2 = np.exp(-(1 + kappa) * beta * t)
    same = 0.25 + 0.25 * e1 + 0.5 * e2
    ts = 0.25 + 0.25 * e1 - 0.5 * e2
    tv = 0.25 - 0.25 * e1
    p = np.full((4, 4), tv)
    for i in range(4):
        p[i, i] = same
        p[i, i ^ 1] = ts
    return p


def tip(letter):
    v = np.zeros(4)
    if letter == "N":
        v[:] = 1.0
    elif letter == "R":
        v[:2] = 1.0
    else:
        v[STATES[letter]] = 1.0
    return v


def partial(node, site, lengths, kappa):
    if isinstance(node, str):
        return tip(site[node])
    (left, i), (right, j) = node
    a = transition(lengths[i], kappa) @ partial(left, site, lengths, kappa)
    b = transition(lengths[j], kappa) @ partial(right, site, lengths, kappa)
    return a * b


TREE = ((((("human", 0), ("chimp", 1))), 2), ("gorilla", 3))


def f(lengths, kappa):
    sites = [dict(human="A", chimp="A", gorilla="G"), dict(human="C", chimp="T", gorilla="C"), dict(human="R", chimp="N", gorilla="T")]
    ll = 0.0
    for site in sites:
        ll += np.log(0.25 * partial(TREE, site, lengths, kappa).sum())
    return -ll


ARGS = (np.array([0.1, 0.12, 0.05, 0.3]), 2.5)
