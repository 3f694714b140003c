"""Methods and attributes of arrays."""
import numpy as np


def f(m, x):
    s = m.sum() * x + m.mean() + m.T.max() + m.min() + m.prod() + m.dot(m.T).trace()
    s = s + m.flatten()[2] * m.size + m.shape[0] * m.ndim * x + m.copy().ravel()[0] + m.astype(np.float64).sum()
    s = s + m.cumsum()[-2] + m.transpose(1, 0)[2, 1] + m.swapaxes(0, 1)[0, 0] + m.squeeze().std() + m.repeat(2)[3]
    return s + m.clip(0.5, 1.0).sum() + m.item(0, 1) * x + m.diagonal().sum() + m.round(1).sum() * x + m.take([0, 4]).sum()


def ARGS():
    return np.array([[0.73, 1.22, 0.41], [1.14, 0.37, 0.96]]), 1.3
