"""A docstring, annotations, pass, del, bare expressions, global constants spelled in caps."""
import numpy as np
from numpy import sin as s


def f(x: float, a: np.ndarray) -> float:
    """Docstring of the function."""
    total: float = 0.0
    count: int
    count = 0
    for v in a:
        if v < 0.0:
            pass
        else:
            total += s(v) * x
            count += 1
        ...
    "a bare string"
    scratch = total * 2.0
    del scratch
    return total / count


def ARGS():
    return 0.8, np.array([0.9, -1.4, 0.6])
