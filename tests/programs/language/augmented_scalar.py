"""All the augmented assignments on scalars."""


def at_top(x, y):
    x += y
    x *= y
    x -= 2.0 * y
    x /= y + 3.0
    x **= 2
    x **= y
    return x


def in_for(x, y):
    for i in range(3):
        x *= y
        x += i
        y /= 1.1
        x -= y
    return x


def in_while(x, y):
    n = 9
    while n > 0:
        n //= 2
        x *= 1.0 + 0.1 * y
        y -= 0.1 * x
        n -= 1
    return x + y


def in_branch(x, y):
    if x > 0.0:
        x *= x
        y += x
    else:
        x /= y
    x *= y
    return x


ARGS = (1.9, 1.4)
