"""Triple exponential smoothing with an additive season: the squared error of one-step forecasts."""
import numpy as np


class HoltWinters:
    def __init__(self, alpha, beta, gamma, period):
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.period = period

    def start(self, y):
        p = self.period
        level = np.mean(y[:p])
        trend = (np.mean(y[p : 2 * p]) - level) / p
        season = [y[i] - level for i in range(p)]
        return level, trend, season

    def sse(self, y):
        level, trend, season = self.start(y)
        loss = 0.0
        for t in range(len(y)):
            s = season[t % self.period]
            forecast = level + trend + s
            loss += (y[t] - forecast) ** 2
            last = level
            level = self.alpha * (y[t] - s) + (1 - self.alpha) * (level + trend)
            trend = self.beta * (level - last) + (1 - self.beta) * trend
            season[t % self.period] = self.gamma * (y[t] - level) + (1 - self.gamma) * s
        return loss


def f(y, alpha, beta, gamma):
    return HoltWinters(alpha, beta, gamma, 3).sse(y)


def ARGS():
    return np.array([1.0, 2.1, 1.4, 1.6, 2.8, 1.9, 2.2, 3.1, 2.4, 2.9]), 0.3, 0.15, 0.4
