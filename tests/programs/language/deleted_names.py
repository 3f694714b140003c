"""del ends a name, not its value; the name may be bound again."""


def f(a, b):
    u, v = a * b, a + b
    w = u
    del u, (v)
    total = 0.0
    for k in range(4):
        t = a * k
        kept = t
        del t
        if k % 2:
            t = b * kept
            total += t
    return total * w


ARGS = (0.7, 1.3)
