"""Cost of a receding control of a crane; a class with state, saturation, and a PID fallback."""

import numpy as np


class Crane:
    g = 9.81

    def __init__(self, length, damping):
        self.length, self.damping = length, damping
        self.x = np.zeros(4)
        self.history = []

    def derivative(self, state, force):
        pos, vel, th, om = state
        acc = force - self.damping * vel
        return np.array([vel, acc, om, -(self.g * np.sin(th) + acc * np.cos(th)) / self.length])

    def step(self, force, dt):
        k1 = self.derivative(self.x, force)
        k2 = self.derivative(self.x + 0.5 * dt * k1, force)
        self.x = self.x + dt * k2
        self.history.append(self.x[2])
        return self.x


def controller(gains, error, integral, rate, limit=1.5):
    u = gains["p"] * error + gains["i"] * integral - gains["d"] * rate
    return min(max(u, -limit), limit)


def f(gains, length, target):
    crane = Crane(length, damping=0.3)
    integral = 0.0
    cost = 0.0
    for k in range(40):
        error = target - crane.x[0]
        integral += 0.05 * error
        u = controller(gains, error, integral, crane.x[1])
        crane.step(u, 0.05)
        cost += error**2 + 0.01 * u * u
        if abs(error) < 1e-9:
            break
    swing = max(abs(h) for h in crane.history)
    return cost * 0.05 + swing + np.mean(np.square(crane.history[-5:]))


ARGS = ({"p": 1.3, "i": 0.2, "d": 0.7}, 1.8, 1.0)
