"""A reverberator of comb and allpass filters with ring buffers, and the decay time of what comes out."""

import numpy as np


class Comb:
    def __init__(self, delay, feedback, damp):
        self.buffer = np.zeros(delay)
        self.pos = 0
        self.feedback = feedback
        self.damp = damp
        self.store = 0.0

    def process(self, x):
        out = self.buffer[self.pos]
        self.store = out * (1 - self.damp) + self.store * self.damp
        self.buffer[self.pos] = x + self.store * self.feedback
        self.pos += 1
        if self.pos == len(self.buffer):
            self.pos = 0
        return out


class Allpass:
    gain = 0.5

    def __init__(self, delay):
        self.buffer = [0.0] * delay
        self.pos = 0

    def process(self, x):
        delayed = self.buffer[self.pos]
        y = -x * self.gain + delayed
        self.buffer[self.pos] = x + delayed * self.gain
        self.pos = (self.pos + 1) % len(self.buffer)
        return y


def reverb(signal, feedback, damp, wet):
    combs = [Comb(d, feedback, damp) for d in (7, 9, 12)]
    allpasses = [Allpass(d) for d in (3, 5)]
    out = np.empty_like(signal)
    for n, x in enumerate(signal):
        y = sum(c.process(x) for c in combs) / len(combs)
        for a in allpasses:
            y = a.process(y)
        out[n] = (1 - wet) * x + wet * y
    return out


def f(signal, feedback, damp, wet):
    padded = np.zeros(60)
    padded[: len(signal)] = signal
    out = reverb(padded, feedback, damp, wet)
    tail = np.cumsum(out[::-1] ** 2)[::-1]
    level = 10 * np.log10(tail / tail[0] + 1e-12)
    audible = level > -30
    slope = np.polyfit(np.arange(60)[audible], level[audible], 1)[0]
    return -60 / slope / 100 + np.sqrt(np.mean(out**2))


ARGS = (np.array([1.0, 0.5, -0.3, 0.2, 0.1]), 0.7, 0.2, 0.4)
