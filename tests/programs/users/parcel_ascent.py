"""Convective energy of a sounding: a parcel is lifted, first dry, then moist, through a table of levels."""

import numpy as np

RD, CP, G, LV, EPS = 287.05, 1005.0, 9.81, 2.5e6, 0.622


def saturation(temp, pressure):
    es = 6.112 * np.exp(17.67 * (temp - 273.15) / (temp - 29.65))
    return EPS * es / (pressure - es)


def moist_rate(temp, pressure):
    r = saturation(temp, pressure)
    top = RD * temp + LV * r
    bottom = CP + LV**2 * r * EPS / (RD * temp**2)
    return top / bottom / pressure


def lift(temp, mixing, p_from, p_to):
    """Temperature after lifting, in steps of at most 10 hPa; saturated or not."""
    p = p_from
    saturated = False
    while p > p_to + 1e-9:
        dp = min(10.0, p - p_to)
        if not saturated and saturation(temp, p) <= mixing:
            saturated = True
        if saturated:
            half = temp - 0.5 * dp * moist_rate(temp, p)
            temp = temp - dp * moist_rate(half, p - 0.5 * dp)
        else:
            temp = temp * ((p - dp) / p) ** (RD / CP)
        p -= dp
    return temp, saturated


def f(sounding, surface_temp, humidity):
    levels = np.array([1000.0, 950.0, 900.0, 850.0, 800.0, 700.0, 600.0, 500.0, 400.0])
    mixing = humidity * saturation(surface_temp, levels[0])
    parcel = np.empty_like(levels)
    parcel[0] = surface_temp
    cloud_base = None
    for k in range(1, len(levels)):
        parcel[k], wet = lift(surface_temp, mixing, levels[0], levels[k])
        if wet and cloud_base is None:
            cloud_base = k
    buoyancy = RD * (parcel - sounding)
    logs = np.log(levels)
    area = 0.5 * (buoyancy[1:] + buoyancy[:-1]) * -np.diff(logs)
    cape = area[area > 0].sum()
    cin = -area[:cloud_base][area[:cloud_base] < 0].sum() if cloud_base is not None else 0.0
    return 1e-3 * cape - 1e-2 * cin


ARGS = (np.array([300.5, 297.2, 293.8, 290.1, 286.9, 279.4, 271.3, 261.0, 247.5]), 300.0, 0.78)
