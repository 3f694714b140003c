"""else after for and while: runs only when the loop was not left by break."""


def at_top(x, limit):
    for i in range(5):
        x = x * 1.2
        if x > limit:
            break
    else:
        x = x * 10.0
    while x > 0.5:
        x = x / 2.0
    else:
        x = x + 1.0
    return x


def in_for(x, limit):
    s = 0.0
    for i in range(1, 5):
        for j in range(i):
            s += x * j
            if j == 2:
                break
        else:
            s = s * x
    return s


def in_while(x, limit):
    n = 0
    while n < 4:
        k = 0
        while k < n:
            if x > limit:
                break
            x = x * 1.5
            k += 1
        else:
            x = x - 0.25
        n += 1
    return x


def in_branch(x, limit):
    if x < limit:
        for i in range(3):
            if x > 100.0:
                break
            x = x * x
        else:
            x = x + limit
    return x


ARGS = (1.1, 2.9)
WRT = ("x",)
