"""and, or, not in conditions; the second operand must not run when the first decides."""


def at_top(x, n):
    if n > 0 and x / n > 0.5:
        x = x * x
    if n == 0 or x / n > 100.0:
        x = x + 1.0
    if not (x > 2.0 and x < 3.0):
        x = x * 1.5
    return x


def in_for(x, n):
    s = x
    for i in range(-2, 4):
        if i != 0 and 1.0 / i > 0.2 or not i > -2:
            s = s * x + i
    return s


def in_while(x, n):
    k = 0
    while k < 8 and not x > 10.0:
        x = x * 1.4
        k += 1
    return x * k


def in_branch(x, n):
    flag = x > 1.0
    other = n > 100
    if flag and not other:
        done = flag or other
        if done:
            x = x * x * n
    return x


ARGS = (1.7, 2)
