"""A controller with limits and anti-windup that holds the level of a tank; objects that keep state."""

import math


class Controller:
    def __init__(self, kp, ki, kd, low=0.0, high=1.0):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.low, self.high = low, high
        self.integral = 0.0
        self.last = None

    def __call__(self, error, dt):
        slope = 0.0 if self.last is None else (error - self.last) / dt
        self.last = error
        wish = self.kp * error + self.integral + self.kd * slope
        out = min(max(wish, self.low), self.high)
        self.integral += dt * (self.ki * error + 0.5 * (out - wish))
        return out


class Tank:
    level = 0.2

    def __init__(self, area, leak):
        self.area = area
        self.leak = leak

    def fill(self, flow, dt):
        out = self.leak * math.sqrt(2.0 * 9.81 * self.level) if self.level > 0 else 0.0
        self.level += dt * (flow - out) / self.area
        return self.level


def f(gains, area, leak, setpoint=1.0, dt=0.2, steps=25):
    control = Controller(*gains)
    tank = Tank(area, leak)
    cost, flow = 0.0, 0.0
    for k in range(steps):
        target = setpoint if k < 15 else 0.6 * setpoint
        error = target - tank.level
        new = control(error, dt)
        cost += dt * (error**2 + 0.05 * (new - flow) ** 2)
        flow = new
        tank.fill(flow, dt)
    return cost


ARGS = ((1.5, 0.4, 0.1), 1.3, 0.08)
