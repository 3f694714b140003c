"""Glicko-like ratings of players from a list of games; objects in a dict, updated as games are read."""
import math


class Player:
    def __init__(self, rating, deviation):
        self.rating = rating
        self.deviation = deviation
        self.games = 0

    @property
    def g(self):
        return 1.0 / math.sqrt(1.0 + 3.0 * (Q * self.deviation / math.pi) ** 2)

    def expected(self, other):
        return 1.0 / (1.0 + 10.0 ** (-other.g * (self.rating - other.rating) / 400.0))

    def update(self, other, score):
        e = self.expected(other)
        d2 = 1.0 / (Q**2 * other.g**2 * e * (1.0 - e))
        precision = 1.0 / self.deviation**2 + 1.0 / d2
        self.rating += Q / precision * other.g * (score - e)
        self.deviation = math.sqrt(1.0 / precision)
        self.games += 1


Q = math.log(10.0) / 400.0
GAMES = [("ann", "bob", 1.0), ("bob", "cy", 0.5), ("cy", "ann", 0.0), ("ann", "bob", 0.0), ("cy", "bob", 1.0)]


def f(start, spread, noise):
    players = {name: Player(r, spread) for name, r in zip(("ann", "bob", "cy"), start)}
    loss = 0.0
    for white, black, score in GAMES:
        p, q = players[white], players[black]
        e = p.expected(q)
        loss -= score * math.log(e) + (1.0 - score) * math.log(1.0 - e)
        before = Player(p.rating, p.deviation)
        p.update(q, score)
        q.update(before, 1.0 - score)
        for player in players.values():
            player.deviation = min(math.sqrt(player.deviation**2 + noise**2), 350.0)
    best = max(players.values(), key=lambda p: p.rating)
    return loss + 0.001 * best.rating + 0.01 * sum(p.deviation for p in players.values() if p.games > 3)


ARGS = ([1500.0, 1450.0, 1600.0], 120.0, 15.0)
