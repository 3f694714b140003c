"""Log likelihood of a bootstrap particle filter, given its random numbers; resampling picks ancestors."""
import numpy as np


def f(theta, sigma_x, sigma_y, observations, noise, uniforms):
    n = noise.shape[1]
    particles = sigma_x * noise[0]
    log_likelihood = 0.0
    for t, y in enumerate(observations):
        if t > 0:
            particles = theta * particles + sigma_x * noise[t]
        log_w = -0.5 * ((y - particles) / sigma_y) ** 2 - np.log(sigma_y)
        shift = log_w.max()
        w = np.exp(log_w - shift)
        log_likelihood += shift + np.log(w.mean())
        cumulative = np.cumsum(w / w.sum())
        positions = (np.arange(n) + uniforms[t]) / n
        ancestors = np.minimum(np.searchsorted(cumulative, positions), n - 1)
        particles = particles[ancestors]
    return log_likelihood


WRT = ("theta", "sigma_x", "sigma_y", "observations")


def ARGS():
    rng = np.random.default_rng(3)
    return 0.8, 0.5, 0.7, np.array([0.3, -0.4, 0.6, 0.9]), rng.normal(size=(4, 7)), rng.random(4)
