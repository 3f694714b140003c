"""LMS and normalised LMS filters chosen by a name, from a table of update functions."""
import numpy as np

def lms(w, x, e, mu):
    return w + mu * e * x

def nlms(w, x, e, mu):
    return w + mu * e * x / (1e-6 + x @ x)

def sign_lms(w, x, e, mu):
    return w + mu * np.sign(e) * x

UPDATES = {"lms": lms, "nlms": nlms, "sign": sign_lms}

def f(x, d, mu, order=2):
    out = []
    for name in ("lms", "nlms"):
        update = UPDATES[name]
        w = np.zeros(order)
        errors = np.zeros(len(x))
        for n in range(order - 1, len(x)):
            frame = x[n - order + 1 : n + 1][::-1]
            e = d[n] - w @ frame
            w = update(w, frame, e, mu)
            errors[n] = e
        out.append(np.sum(errors**2) + w[0] * w[1])
    return out[0] * out[1]

ARGS = (
    np.array([0.3, -0.5, 0.9, 0.2, -0.7, 0.4]),
    np.array([0.1, 0.4, -0.2, 0.6, 0.3, -0.1]),
    0.3,
)
