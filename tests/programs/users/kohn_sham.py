"""1-D Kohn-Sham loop: eigh, density, softened Hartree, LDA exchange, linear mixing until it settles."""
import numpy as np

def hamiltonian(v, dx):
    n = v.size
    H = np.diag(v + 1 / dx**2)
    i = np.arange(n - 1)
    H[i, i + 1] = H[i + 1, i] = -0.5 / dx**2
    return H

def scf(vext, dx, soft, mixing=0.4, tol=1e-11, maxiter=120, electrons=2):
    n = len(vext)
    rho = np.full(n, electrons / (n * dx))
    grid = np.arange(n) * dx
    coulomb = 1 / np.sqrt((grid[:, None] - grid[None, :]) ** 2 + soft**2)
    energy = None
    for it in range(maxiter):
        vh = coulomb @ rho * dx
        vx = -np.cbrt(3 * rho / np.pi)
        eps, psi = np.linalg.eigh(hamiltonian(vext + vh + vx, dx))
        new = 2 * psi[:, :electrons // 2]**2 / dx
        new = new.sum(axis=-1)
        change = np.abs(new - rho).max()
        rho = (1 - mixing) * rho + mixing * new
        energy = 2 * eps[0] - 0.5 * dx * rho @ vh
        if change < tol:
            break
    else:
        raise RuntimeError(f"not settled after {maxiter}")
    return energy, rho

def f(depth, soft):
    dx = 0.5
    grid = (np.arange(15) - 7) * dx
    energy, rho = scf(0.5 * depth * grid**2, dx, soft)
    return energy + dx * np.sum(rho * grid**2)

ARGS = (0.8, 1.1)
