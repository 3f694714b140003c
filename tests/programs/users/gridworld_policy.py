"""Expected return of a softmax policy in a grid world: states in a dict, policy evaluation until it settles."""

import numpy as np

ROWS = ["..#G", "..#.", "S...", "..P."]
MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def parse(rows):
    cells = {}
    for r, row in enumerate(rows):
        for c, kind in enumerate(row):
            if kind != "#":
                cells[(r, c)] = kind
    return cells


def step(cells, cell, move):
    dr, dc = MOVES[move]
    nxt = (cell[0] + dr, cell[1] + dc)
    return nxt if nxt in cells else cell


def softmax(z):
    e = np.exp(z - np.max(z))
    return e / e.sum()


def features(cell, move):
    dr, dc = MOVES[move]
    return np.array([dr, dc, dr * cell[0] / 4, dc * cell[1] / 4, 1.0 if move == "up" else 0.0])


def evaluate(theta, gamma, slip, tol=1e-6):
    cells = parse(ROWS)
    index = {cell: k for k, cell in enumerate(cells)}
    values = np.zeros(len(cells))
    entropy = 0.0
    policies = {}
    for cell in cells:
        policies[cell] = softmax(np.array([features(cell, m) @ theta for m in MOVES]))
        entropy -= np.sum(policies[cell] * np.log(policies[cell]))
    sweeps = 0
    while sweeps < 60:
        delta = 0.0
        for cell, kind in cells.items():
            k = index[cell]
            if kind == "G":
                continue
            reward = -1.0 if kind == "P" else -0.04
            new = reward
            for prob, move in zip(policies[cell], MOVES):
                landing = index[step(cells, cell, move)]
                bonus = 1.0 if cells[step(cells, cell, move)] == "G" else 0.0
                new += prob * ((1 - slip) * (bonus + gamma * values[landing]) + slip * gamma * values[k])
            delta = max(delta, abs(new - values[k]))
            values[k] = new
        sweeps += 1
        if delta < tol:
            break
    start = None
    for cell, kind in cells.items():
        if kind == "S":
            start = cell
    return values[index[start]], entropy / len(cells), sweeps


def f(theta, gamma, slip):
    value, entropy, sweeps = evaluate(theta, gamma, slip)
    return value + 0.01 * entropy if sweeps > 3 else 0.0


ARGS = (np.array([-0.4, 0.6, 0.3, -0.2, 0.1]), 0.9, 0.1)
