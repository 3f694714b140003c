"""Black-Litterman posterior returns and the weights of a portfolio on them, in a named tuple."""
from typing import NamedTuple
import numpy as np

class Portfolio(NamedTuple):
    weights: np.ndarray
    expected: float
    risk: float = 0.0

def posterior(sigma, market, views, picks, tau=0.05, delta=2.5):
    pi = delta * sigma @ market
    omega = np.diag(np.diag(tau * picks @ sigma @ picks.T))
    middle = np.linalg.inv(picks @ (tau * sigma) @ picks.T + omega)
    return pi + tau * sigma @ picks.T @ middle @ (views - picks @ pi)

def f(sigma, market, views):
    picks = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    mu = posterior(sigma, market, views, picks)
    raw = np.linalg.solve(2.5 * sigma, mu)
    weights = raw / np.sum(np.abs(raw))
    port = Portfolio(weights, weights @ mu)
    port = port._replace(risk=np.sqrt(port.weights @ sigma @ port.weights))
    return port

def ARGS():
    sigma = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, 0.02], [0.0, 0.02, 0.06]])
    return sigma, np.array([0.5, 0.3, 0.2]), np.array([0.02, 0.05])
