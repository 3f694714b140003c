"""Mel-frequency cepstra of a tone: window, frames, power spectrum, triangular filters, cosine transform."""
import numpy as np


def mel(hz):
    return 2595.0 * np.log10(1.0 + hz / 700.0)


def hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


def filters(count, size, rate):
    edges = hz(np.linspace(mel(50.0), mel(rate / 2), count + 2))
    bins = np.floor((size + 1) * edges / rate).astype(int)
    bank = np.zeros((count, size // 2 + 1))
    for m in range(1, count + 1):
        a, b, c = bins[m - 1], bins[m], bins[m + 1]
        for k in range(a, b):
            bank[m - 1, k] = (k - a) / max(b - a, 1)
        for k in range(b, c):
            bank[m - 1, k] = (c - k) / max(c - b, 1)
    return bank


def f(signal, emphasis):
    x = np.append(signal[0], signal[1:] - emphasis * signal[:-1])
    size, hop, rate = 16, 8, 8000.0
    bank = filters(4, size, rate)
    window = np.hamming(size)
    features = []
    for start in range(0, len(x) - size + 1, hop):
        spectrum = np.abs(np.fft.rfft(x[start:start + size] * window)) ** 2 / size
        energy = np.log(bank @ spectrum + 1e-6)
        cepstrum = []
        for k in range(3):
            cepstrum.append(sum(e * np.cos(np.pi * k * (j + 0.5) / 4) for j, e in enumerate(energy)))
        features.append(cepstrum)
    features = np.array(features)
    delta = np.diff(features, axis=0)
    return features.mean() + (delta**2).sum() * 0.1


ARGS = (np.sin(np.arange(40) * 0.7) + 0.3 * np.cos(np.arange(40) * 1.9), 0.9)
