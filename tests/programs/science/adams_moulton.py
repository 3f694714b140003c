"""Adams-Bashforth-Moulton predictor-corrector with a history list and a Runge-Kutta start."""
import numpy as np

AB = np.array([55.0, -59.0, 37.0, -9.0]) / 24.0
AM = np.array([9.0, 19.0, -5.0, 1.0]) / 24.0


def rk4(rhs, t, y, h):
    k1 = rhs(t, y)
    k2 = rhs(t + h / 2, y + h / 2 * k1)
    k3 = rhs(t + h / 2, y + h / 2 * k2)
    k4 = rhs(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def f(y0, mu, steps=20):
    def van_der_pol(t, y):
        return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0] + 0.1 * np.cos(t)])

    h, t, y = 0.05, 0.0, y0
    history = [van_der_pol(t, y)]
    worst = 0.0
    for _ in range(steps):
        if len(history) < 4:
            y = rk4(van_der_pol, t, y, h)
        else:
            guess = y + h * sum(w * g for w, g in zip(AB, history[::-1]))
            past = [van_der_pol(t + h, guess)] + history[:0:-1]
            new = y + h * sum(w * g for w, g in zip(AM, past))
            worst = max(worst, np.max(np.abs(new - guess)))
            y = new
        t += h
        history.append(van_der_pol(t, y))
        if len(history) > 4:
            history.pop(0)
    return y @ y + 1e3 * worst + 0.0


ARGS = (np.array([1.25, 0.32]), 1.15)
