"""A dataclass as an argument: attribute reads and methods; its gradient is a dataclass."""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Spring:
    stiffness: float
    rest: np.ndarray
    name: str = "spring"

    def force(self, x):
        return -self.stiffness * (x - self.rest)

    def energy(self, x):
        d = x - self.rest
        return 0.5 * self.stiffness * np.sum(d * d)


def at_top(spring, x):
    return spring.energy(x) + np.sum(spring.force(x) * x)


def in_for(spring, x):
    v = np.zeros(2)
    for _ in range(4):
        v = v + 0.1 * spring.force(x)
        x = x + 0.1 * v
    return spring.energy(x)


def in_while(spring, x):
    while spring.energy(x) > 0.2:
        x = x + 0.3 * spring.force(x)
    return np.sum(x) * spring.stiffness


def in_branch(spring, x):
    if spring.name == "spring" and spring.stiffness > 1.0:
        return spring.energy(x) * spring.stiffness
    return np.sum(x)


def ARGS():
    return Spring(1.4, np.array([0.2, 0.5])), np.array([1.1, 0.3])
