"""Dicts, lists and objects made anew on the trips of inner loops, for names that outer loops carry too."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class State:
    p: float
    v: float
    t: float = 0.0

    def __add__(self, other):
        return State(self.p + other.p, self.v + other.v, self.t + other.t)

    def __rmul__(self, s):
        return State(s * self.p, s * self.v, s * self.t)


def f(x, y):
    s = State(x, y)
    for target in (0.5, -0.2):
        for _ in range(3):
            rate = State(s.v, target - s.p, 1.0)
            s = s + 0.1 * rate
            s = replace(s, v=0.9 * s.v)
    best = {"value": x, "trips": 0.0}
    pair = [x, y]
    k = 0
    while k < 3:
        k += 1
        for j in range(3):
            best = {"value": best["value"] * y + j, "trips": best["trips"] + 1.0}
            if best["value"] > 4.0:
                break
            pair = [pair[1] * x, pair[0]]
    nested = (x, {"items": [x, x * x]})
    for k in range(2):
        for j in range(3):
            if j % 2 == k % 2:
                nested = (1.1 * nested[0], {"items": [nested[1]["items"][1], nested[0] * y]})
    first, second = nested[1]["items"]
    return s.p * s.v + s.t + best["value"] * best["trips"] + pair[0] - 2.0 * pair[1] + first * second


ARGS = (0.7, 1.2)
WRT = ("x", "y")
