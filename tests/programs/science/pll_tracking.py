"""A phase-locked loop with a limiter and a lock detector that ends the loop early."""
import math
import numpy as np

class Loop:
    def __init__(self, kp, ki, limit=0.5):
        self.kp = kp
        self.ki = ki
        self.limit = limit
        self.phase = 0.0
        self.integral = 0.0

    def update(self, sample_i, sample_q):
        error = math.atan2(sample_q * math.cos(self.phase) - sample_i * math.sin(self.phase),
                           sample_i * math.cos(self.phase) + sample_q * math.sin(self.phase))
        self.integral += self.ki * error
        if self.integral > self.limit:
            self.integral = self.limit
        elif self.integral < -self.limit:
            self.integral = -self.limit
        self.phase = (self.phase + self.kp * error + self.integral) % (2 * math.pi)
        return error

def f(i, q, kp, ki):
    loop = Loop(kp, ki)
    locked = 0
    errors = []
    for a, b in zip(i, q):
        e = loop.update(a, b)
        errors.append(e * e)
        locked = locked + 1 if abs(e) < 0.05 else 0
        if locked >= 3:
            break
    return sum(errors) / len(errors) + loop.phase

def ARGS():
    t = np.arange(8)
    return np.cos(0.3 * t + 0.8), np.sin(0.3 * t + 0.8), 0.4, 0.1
