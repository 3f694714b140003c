"""CORDIC rotation with a table of angles; the direction is decided at each step."""
import math

TABLE = [math.atan(2.0**-k) for k in range(10)]

def f(x, y, angle):
    gain = 1.0
    z = angle
    for k, step in enumerate(TABLE):
        gain *= math.sqrt(1.0 + 2.0 ** (-2 * k))
        factor = 2.0**-k
        if z >= 0:
            x, y, z = x - y * factor, y + x * factor, z - step
        else:
            x, y, z = x + y * factor, y - x * factor, z + step
    return x / gain + z * y, y / gain

ARGS = (0.8, -0.3, 0.6)
