"""Accelerations of all pairs, and the sum of their squares: distances are computed again, a row of pairs at a time."""

import math

import numpy as np

from benchmarks.hand import by_hand


@by_hand
def hand(pos, mass, eps):
    n = mass.size
    acc = np.zeros((n, 3))
    cubes = np.empty(n)
    for i in range(n):
        x, y, z, m = pos[i, 0], pos[i, 1], pos[i, 2], mass[i]
        for j in range(i):
            dx, dy, dz = pos[j, 0] - x, pos[j, 1] - y, pos[j, 2] - z
            r2 = dx * dx + dy * dy + dz * dz + eps * eps
            cubes[j] = 1.0 / (r2 * math.sqrt(r2))
        ax, ay, az = 0.0, 0.0, 0.0
        for j in range(i):
            dx, dy, dz = pos[j, 0] - x, pos[j, 1] - y, pos[j, 2] - z
            w, v = mass[j] * cubes[j], m * cubes[j]
            ax += w * dx
            ay += w * dy
            az += w * dz
            acc[j, 0] -= v * dx
            acc[j, 1] -= v * dy
            acc[j, 2] -= v * dz
        acc[i, 0] += ax
        acc[i, 1] += ay
        acc[i, 2] += az
    total = 0.0
    for i in range(n):
        total += acc[i, 0] * acc[i, 0] + acc[i, 1] * acc[i, 1] + acc[i, 2] * acc[i, 2]
    pos_bar = np.zeros((n, 3))
    mass_bar = np.zeros(n)
    squares = np.empty(n)
    for i in range(n):
        x, y, z, m = pos[i, 0], pos[i, 1], pos[i, 2], mass[i]
        gx, gy, gz = 2.0 * acc[i, 0], 2.0 * acc[i, 1], 2.0 * acc[i, 2]
        for j in range(i):
            dx, dy, dz = pos[j, 0] - x, pos[j, 1] - y, pos[j, 2] - z
            squares[j] = 1.0 / (dx * dx + dy * dy + dz * dz + eps * eps)
            cubes[j] = squares[j] * math.sqrt(squares[j])
        bx, by, bz, m_bar = 0.0, 0.0, 0.0, 0.0
        for j in range(i):
            dx, dy, dz = pos[j, 0] - x, pos[j, 1] - y, pos[j, 2] - z
            hx, hy, hz = 2.0 * acc[j, 0], 2.0 * acc[j, 1], 2.0 * acc[j, 2]
            c = cubes[j]
            g_d = gx * dx + gy * dy + gz * dz
            h_d = hx * dx + hy * dy + hz * dz
            mass_bar[j] += c * g_d
            m_bar -= c * h_d
            c_bar = mass[j] * g_d - m * h_d
            r2_bar = -1.5 * c * squares[j] * c_bar
            w, v = mass[j] * c, m * c
            dx_bar = w * gx - v * hx + 2.0 * r2_bar * dx
            dy_bar = w * gy - v * hy + 2.0 * r2_bar * dy
            dz_bar = w * gz - v * hz + 2.0 * r2_bar * dz
            bx -= dx_bar
            by -= dy_bar
            bz -= dz_bar
            pos_bar[j, 0] += dx_bar
            pos_bar[j, 1] += dy_bar
            pos_bar[j, 2] += dz_bar
        pos_bar[i, 0] += bx
        pos_bar[i, 1] += by
        pos_bar[i, 2] += bz
        mass_bar[i] += m_bar
    return total, (pos_bar, mass_bar)
