"""A game tree with a soft minimax over moves of a small board; strings for boards, a table that remembers values."""

import math

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def winner(board):
    for a, b, c in LINES:
        if board[a] != "." and board[a] == board[b] == board[c]:
            return board[a]
    return None


def heuristic(board, weights):
    score = 0.0
    for i, c in enumerate(board):
        kind = "centre" if i == 4 else "corner" if i in (0, 2, 6, 8) else "edge"
        score += weights[kind] * {"x": 1, "o": -1, ".": 0}[c]
    return math.tanh(score)


def value(board, player, depth, weights, temperature):
    w = winner(board)
    if w is not None:
        return 1.0 if w == "x" else -1.0
    if depth == 0 or "." not in board:
        return heuristic(board, weights)
    sign = 1.0 if player == "x" else -1.0
    other = "o" if player == "x" else "x"
    values = []
    for i in range(9):
        if board[i] == ".":
            values.append(sign * value(board[:i] + player + board[i + 1 :], other, depth - 1, weights, temperature))
    top = max(values)
    return sign * (top + temperature * math.log(sum(math.exp((v - top) / temperature) for v in values)))


def f(weights, temperature):
    return value("x.o.x.o..", "x", 2, weights, temperature) + 0.3 * value("xo.......", "x", 1, weights, temperature)


ARGS = ({"centre": 0.3, "corner": 0.2, "edge": 0.11}, 0.25)
