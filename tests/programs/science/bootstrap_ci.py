"""Bootstrap means from given resamples; an interval by partition of the sorted means."""
import numpy as np

DRAWS = np.random.default_rng(2).integers(0, 6, (7, 6))

def f(sample, level=0.5):
    means = np.empty(len(DRAWS))
    for b, draw in enumerate(DRAWS):
        means[b] = sample[draw].mean()
    means.sort()
    tail = int((1 - level) / 2 * len(means))
    low, high = means[tail], means[-1 - tail]
    assert low <= high, f"{low} > {high}"
    return low, high, (high - low) ** 2

ARGS = (np.array([1.0, 2.5, 0.3, 4.1, 3.3, 2.2]),)
