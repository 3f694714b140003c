"""Lengths of geodesics on an ellipsoid by Vincenty's iteration, summed over a survey's closed polygon."""

import math


def reduced(lat, flat):
    return math.atan((1 - flat) * math.tan(lat))


def vincenty(p1, p2, a, flat, tol=1e-12):
    (lat1, lon1), (lat2, lon2) = p1, p2
    b = a * (1 - flat)
    u1, u2 = reduced(math.radians(lat1), flat), reduced(math.radians(lat2), flat)
    L = lam = math.radians(lon2 - lon1)
    su1, cu1, su2, cu2 = math.sin(u1), math.cos(u1), math.sin(u2), math.cos(u2)
    count = 0
    while True:
        sl, cl = math.sin(lam), math.cos(lam)
        ss = math.sqrt((cu2 * sl) ** 2 + (cu1 * su2 - su1 * cu2 * cl) ** 2)
        if ss == 0:
            return 0.0
        cs = su1 * su2 + cu1 * cu2 * cl
        sigma = math.atan2(ss, cs)
        sin_alpha = cu1 * cu2 * sl / ss
        cos2_alpha = 1 - sin_alpha**2
        c2sm = cs - 2 * su1 * su2 / cos2_alpha if cos2_alpha != 0 else 0.0
        C = flat / 16 * cos2_alpha * (4 + flat * (4 - 3 * cos2_alpha))
        previous, lam = lam, L + (1 - C) * flat * sin_alpha * (
            sigma + C * ss * (c2sm + C * cs * (-1 + 2 * c2sm**2))
        )
        count += 1
        if abs(lam - previous) < tol or count >= 100:
            break
    usq = cos2_alpha * (a**2 - b**2) / b**2
    A = 1 + usq / 16384 * (4096 + usq * (-768 + usq * (320 - 175 * usq)))
    B = usq / 1024 * (256 + usq * (-128 + usq * (74 - 47 * usq)))
    delta = B * ss * (c2sm + B / 4 * (cs * (-1 + 2 * c2sm**2) - B / 6 * c2sm * (-3 + 4 * ss**2) * (-3 + 4 * c2sm**2)))
    return b * A * (sigma - delta)


def f(points, flattening):
    legs = {}
    names = list("abcd")
    for i, name in enumerate(names):
        legs[name] = vincenty(points[i], points[(i + 1) % len(points)], 6378.137, flattening)
    longest = max(legs.values())
    return sum(legs.values()) / 1000 + longest / 500 + vincenty(points[0], points[0], 6378.137, flattening)


ARGS = ([(47.37, 8.54), (48.86, 2.35), (41.9, 12.5), (52.52, 13.4)], 1 / 298.257)
