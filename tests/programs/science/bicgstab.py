"""BiCGSTAB with early exits, as a dictionary of results."""
import numpy as np

def solve(apply, rhs, maxiter=20, tol=1e-10):
    x = np.zeros_like(rhs)
    r = rhs - apply(x)
    shadow = r.copy()
    rho = alpha = omega = 1.0
    v = np.zeros_like(rhs)
    p = np.zeros_like(rhs)
    history = []
    for it in range(1, maxiter + 1):
        rho_new = shadow @ r
        if abs(rho_new) < 1e-30:
            return {"x": x, "iterations": it, "history": history}
        beta = (rho_new / rho) * (alpha / omega)
        rho = rho_new
        p = r + beta * (p - omega * v)
        v = apply(p)
        alpha = rho / (shadow @ v)
        s = r - alpha * v
        if np.linalg.norm(s) < tol:
            x += alpha * p
            break
        t = apply(s)
        omega = (t @ s) / (t @ t)
        x += alpha * p + omega * s
        r = s - omega * t
        history.append(np.linalg.norm(r))
        if history[-1] < tol:
            break
    return {"x": x, "iterations": it, "history": history}

def f(d, rhs):
    def tridiagonal(u):
        out = d * u
        out[1:] -= 0.4 * u[:-1]
        out[:-1] -= 0.3 * u[1:]
        return out
    result = solve(tridiagonal, rhs, maxiter=2)
    return np.sum(result["x"] ** 2) + 0.1 * result["history"][0] * result["iterations"]

ARGS = (np.array([2.0, 2.5, 1.8, 3.0]), np.array([1.0, -0.5, 0.7, 0.2]))
