"""Lists that grow by +, +=, extend and copy, with lengths that only the run knows."""


def at_top(x, n):
    a = [x]
    for k in range(n):
        a.append(x * a[k])
    b = a.copy()
    b.extend(a)
    b.extend([x, 2.0])
    b[0] = 3.0 * x
    c = b + a
    return sum(c) + a[0] * len(c)


def in_for(x, n):
    a = [x]
    for k in range(n):
        a = a + [a[k] * x]
    a += a
    a[1] = 0.0
    return sum(a)


def in_while(x, n):
    a, b = [1.0], [x]
    while len(a) < 9:
        a, b = b, a + b
        a[0] *= x
    return a[-1] + sum(b)


def in_branch(x, n):
    a = [x, x * x]
    if n > 2:
        a += [a[0] * a[1]]
    b = [0.5] + a
    return sum(b) * b[-1]


ARGS = (0.7, 3)
