"""A climate of three boxes: objects in an object, copied deeply and then changed step by step."""

import copy
import math
from dataclasses import dataclass, field

import numpy as np

@dataclass
class Box:
    area: float
    albedo: float
    T: float

@dataclass
class Climate:
    boxes: list
    D: float
    co2: float = 280.0
    log: list = field(default_factory=list)

    def albedo(self, b):
        if b.T < -10:
            return 0.6
        if b.T > 0:
            return b.albedo
        return b.albedo + (0.6 - b.albedo) * (b.T / -10) ** 2

    def step(self, dt, S=(300.0, 400.0, 250.0)):
        Ts = [b.T for b in self.boxes]
        mean = sum(b.area * b.T for b in self.boxes)
        for b, s in zip(self.boxes, S):
            olr = 203.3 + 2.09 * b.T - 5.35 * math.log(self.co2 / 280)
            b.T = b.T + dt * (s * (1 - self.albedo(b)) - olr + self.D * (mean - b.T))
        self.log.append(mean)

def f(model, n=4):
    model = copy.deepcopy(model)
    for _ in range(n):
        model.step(0.02)
    return model.log[-1] + 0.1 * np.ptp(np.array([b.T for b in model.boxes]))

WRT = (0,)
TOL = 1e-6
ARGS = (Climate([Box(0.25, 0.3, -5.0), Box(0.5, 0.25, 20.0), Box(0.25, 0.3, -12.0)], 3.0, 400.0),)
