"""Wynn's epsilon algorithm: a slowly converging series sped up by two rows of a table, lists that change their names."""


def f(s):
    before = [0.0] * (len(s) + 1)
    now = [float(item) for item in s]
    best = now[-1]
    row = 1
    while len(now) > 1:
        after = []
        for i in range(len(now) - 1):
            gap = now[i + 1] - now[i]
            if abs(gap) < 1e-14:
                return now[i]
            after.append(before[i + 1] + 1.0 / gap)
        before, now = now, after
        if row % 2 == 0:
            best = now[-1]
        row += 1
    return best


ARGS = ([1.0, 0.66, 0.87, 0.72, 0.84, 0.74, 0.82],)
