"""Integers next to floats: floor division, remainder, powers, shifts, bit operations."""


def at_top(x, n):
    k = n // 2 + n % 3 + (n << 1) - (n >> 1) + (n & 3) + (n | 8) + (n ^ 5)
    return x * k + x**n + x ** (-n) + 2**n * x + (x * 3.0) % 0.7 + (x * 3.0) // 0.7 * x + 2**-1 * x


def in_for(x, n):
    s = 0.0
    for i in range(n):
        s += x ** (i // 2) / (i + 1) * (-1) ** i
    return s


def in_while(x, n):
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        x = x * 1.01 + n * 0.001 * x
    return x


def in_branch(x, n):
    if n % 2:
        x = x * n
    elif n & 2:
        x = x**n
    return x


ARGS = (1.23, 6)
