"""Random expressions of a wanted shape.  Every method named `array_*` is a production."""

from __future__ import annotations

from collections.abc import Callable

from tests.random_programs.grammar import MAX_SIZE, Shape, Var, broadcast, size
from tests.random_programs.scalars import FLAT, Scalars

ARRAY_LEAVES = ("array_variable", "array_make", "array_slice")


class Arrays(Scalars):
    """Writes array expressions."""

    def array(self, shape: Shape, depth: int | None = None) -> str:
        """An expression of exactly this shape."""
        if not shape:
            return self.scalar(depth)
        depth = self.rng.choice((1, 1, 2, 2)) if depth is None else depth
        return self.weighted(
            self.table("array") if depth > 0 else self.few_of(*ARRAY_LEAVES), shape, depth
        ) or self.array_make(shape, depth)

    def array_variable(self, shape: Shape, depth: int) -> str | None:
        pool = self.arrays(lambda v: v.shape == shape)
        return self.choice(pool).name if pool else None

    def array_make(self, shape: Shape, depth: int) -> str:
        like = [v.name for v in self.arrays(lambda v: v.shape == shape)]
        if like and self.chance(0.5):
            name = self.choice(like)
            return self.choice(
                (f"np.ones_like({name})", f"np.zeros_like({name})", f"np.full({name}.shape, 1.0 * {self.scalar(0)})")
            )
        if len(shape) == 1 and self.chance(0.3):
            return self.choice(
                (
                    f"np.linspace(0.0, 1.0, {shape[0]})" if shape[0] > 1 else f"np.ones({shape[0]})",
                    f"(0.5 * np.arange({shape[0]}))",
                )
            )
        return self.choice((f"np.full({shape}, 1.0 * {self.scalar(0)})", f"np.ones({shape})"))

    def array_display(self, shape: Shape, depth: int) -> str | None:
        if len(shape) != 1 or not 0 < shape[0] <= 4:
            return None
        return f"np.array([1.0 * {', '.join(self.scalar(depth - 1) for _ in range(shape[0]))}])"

    def array_binary(self, shape: Shape, depth: int) -> str:
        return f"({self.array(shape, depth - 1)} {self.choice('+-*')} {self.array(shape, depth - 1)})"

    def array_scalar(self, shape: Shape, depth: int) -> str:
        a, s = self.array(shape, depth - 1), self.scalar(depth - 1)
        return f"({a} {self.choice('+-*')} {s})" if self.chance(0.5) else f"({s} {self.choice('+-*')} {a})"

    def array_broadcast(self, shape: Shape, depth: int) -> str | None:
        """An operand of a smaller shape that broadcasting stretches."""
        pool = [
            v
            for v in self.arrays(lambda v: bool(v.shape))
            if v.shape != shape and broadcast(v.shape or (), shape) == shape
        ]
        if not pool:
            return None
        parts = [self.array(shape, depth - 1), self.choice(pool).name]
        self.rng.shuffle(parts)
        return f"({parts[0]} {self.choice('+-*')} {parts[1]})"

    def array_divide(self, shape: Shape, depth: int) -> str:
        top, bottom = self.array(shape, depth - 1), self.array(shape, depth - 1)
        if self.chance(self.profile.weight("raw")):
            return f"({top} / {bottom})"
        return f"({top} / {self.positive(bottom)})"

    def array_power(self, shape: Shape, depth: int) -> str:
        return self.power(self.array(shape, depth - 1), self.scalar(depth - 1))

    def array_modulo(self, shape: Shape, depth: int) -> str:
        return self.modulo(self.array(shape, depth - 1), self.choice((self.scalar(0), self.array(shape, 0))))

    def array_pole(self, shape: Shape, depth: int) -> str | None:
        """Infinite derivatives, masked: at the entries that are whole numbers."""
        pool = self.arrays(lambda v: v.shape == shape)
        if not pool:
            return None
        a = self.choice(pool).name
        return self.choice(
            (
                f"np.where({a} - np.rint({a}) != 0.0, np.sqrt(abs({a} - np.rint({a}))), 0.0)",
                f"np.where({a} - np.floor({a}) > 0.25, np.sqrt({a} - np.floor({a})), {a})",
                f"np.minimum(np.sqrt(abs({a} - np.rint({a}))), -1.0)",
            )
        )

    def array_negative(self, shape: Shape, depth: int) -> str:
        return f"(-{self.array(shape, depth - 1)})"

    def array_function(self, shape: Shape, depth: int) -> str:
        return self.function(self.array(shape, depth - 1), False)

    def array_flat(self, shape: Shape, depth: int) -> str:
        return f"(0.5 * {self.choice(FLAT).format(self.array(shape, depth - 1))})"

    def array_two(self, shape: Shape, depth: int) -> str:
        a, b = self.array(shape, depth - 1), self.array(shape, depth - 1)
        return self.choice(
            (
                f"np.maximum({a}, {b})",
                f"np.minimum({a}, {self.scalar(0)})",
                f"np.arctan2({a}, {self.positive(b)})",
                f"np.hypot({a}, {self.positive(b)})",
                f"np.clip({a}, -1.5, 1.5)",
                f"np.logaddexp({a}, {b})",
            )
        )

    def array_whole(self, shape: Shape, depth: int) -> str | None:
        """A product with an array of integers."""
        pool = [v.name for v in self.variables("int", lambda v: v.shape == shape)]
        whole = self.choice(pool) if pool else f"np.arange({shape[0]})" if len(shape) == 1 else None
        return f"({self.array(shape, depth - 1)} {self.choice('+-*')} {whole})" if whole else None

    def array_where(self, shape: Shape, depth: int) -> str:
        a = self.array(shape, depth - 1)
        b = self.array(shape, depth - 1) if self.chance(0.7) else self.scalar(0)
        return f"np.where({self.mask(shape)}, {a}, {b})"

    def mask(self, shape: Shape) -> str:
        pool = self.variables("bool", lambda v: v.shape == shape)
        if pool and self.chance(0.5):
            return self.choice(pool).name
        return f"({self.array(shape, 0)} {self.choice(('<', '>', '<=', '>='))} {self.scalar(0)})"

    def array_slice(self, shape: Shape, depth: int) -> str | None:
        """A part of a larger variable that has this shape."""
        options = []
        for v in self.arrays(lambda v: bool(v.shape)):
            assert v.shape
            if len(v.shape) == len(shape) + 1 and v.shape[1:] == shape and v.shape[0]:
                options.append(f"{v.name}[{self.index(v.shape[0])}]")
            if len(v.shape) == len(shape) + 1 and v.shape[:-1] == shape and v.shape[-1]:
                options.append(f"{v.name}[..., {self.index(v.shape[-1])}]")
            if len(v.shape) == 2 and len(shape) == 1 and v.shape[0] == shape[0] and v.shape[1]:
                options.append(f"{v.name}[:, {self.index(v.shape[1])}]")
            if len(v.shape) == len(shape):
                cuts = [self.cut(n) for n in v.shape]
                if tuple(n for _, n in cuts) == shape:
                    options.append(f"{v.name}[{', '.join(text for text, _ in cuts)}]")
                if len(shape) == 1 and v.shape[0] > shape[0]:
                    k = self.rng.randint(0, v.shape[0] - shape[0])
                    options.append(f"{v.name}[{k}:{k + shape[0]}]")
        return self.choice(options) if options else None

    def array_moved(self, shape: Shape, depth: int) -> str | None:
        """Transposes, reshapes, flips, rolls, repetitions."""
        options: list[Callable[[], str]] = [
            lambda: f"np.flip({self.array(shape, depth - 1)})",
            lambda: f"np.roll({self.array(shape, depth - 1)}, 1)",
            lambda: f"({self.array(shape, depth - 1)}).copy()",
        ]
        if len(shape) == 1:
            options += [
                lambda: f"np.cumsum({self.array(shape, depth - 1)})",
                lambda: f"{self.array((shape[0] + 1,), 0)}[1:]",
                lambda: f"np.diff({self.array((shape[0] + 1,), 0)})",
            ]
            options += [
                lambda v=v: self.choice((f"{v.name}.ravel()", f"{v.name}.reshape(-1)", f"{v.name}.flatten()"))
                for v in self._of_size(shape)
            ]
        if len(shape) == 2:
            options += [
                lambda: f"({self.array(shape[::-1], depth - 1)}).T",
                lambda: f"np.outer({self.array(shape[:1], depth - 1)}, {self.array(shape[1:], depth - 1)})",
                lambda: f"({self.array(shape[:1], depth - 1)})[:, None] * ({self.array(shape[1:], 0)})[None, :]",
                lambda: f"np.tril({self.array(shape, depth - 1)})",
                lambda: f"np.transpose({self.array(shape[::-1], depth - 1)})",
            ]
        options += [lambda v=v: f"{v.name}.reshape({shape})" for v in self._of_size(shape)]
        if shape[0] == 1:
            options.append(
                lambda: (
                    f"np.expand_dims({self.array(shape[1:], 0)}, 0)"
                    if len(shape) > 1
                    else f"np.array([1.0 * {self.scalar(0)}])"
                )
            )
        return self.choice(options)()

    def _of_size(self, shape: Shape) -> list[Var]:
        return self.arrays(
            lambda v: bool(v.shape) and v.shape != shape and size(v.shape or ()) == size(shape) and size(shape) > 0
        )

    def array_reduce(self, shape: Shape, depth: int) -> str | None:
        """A reduction over one axis of something larger."""
        axis = self.rng.randint(0, len(shape))
        n = self.choice(self.dims)
        larger = (*shape[:axis], n, *shape[axis:])
        if size(larger) > MAX_SIZE or not n:
            return None
        text = self.array(larger, depth - 1)
        name = self.choice(("sum", "mean", "max", "min", "prod", "sum", "var"))
        if self.chance(0.3):
            axis -= len(larger)
        if shape[axis if axis >= 0 else 0 :][:1] == (1,) and 0 <= axis < len(shape) and shape[axis] == 1:
            kept = (*shape[:axis], n, *shape[axis + 1 :])
            return f"np.{name}({self.array(kept, depth - 1)}, axis={axis}, keepdims=True)"
        return f"({text}).{name}(axis={axis})" if self.chance(0.3) else f"np.{name}({text}, axis={axis})"

    def array_matmul(self, shape: Shape, depth: int) -> str | None:
        n = self.choice(self.dims)
        if len(shape) == 1:
            if shape[0] * n > MAX_SIZE:
                return None
            if self.chance(0.5):
                return f"({self.array((shape[0], n), depth - 1)} @ {self.array((n,), depth - 1)})"
            return f"({self.array((n,), depth - 1)} @ {self.array((n, shape[0]), depth - 1)})"
        if len(shape) == 2 and max(shape) * n <= MAX_SIZE:
            return f"({self.array((shape[0], n), depth - 1)} @ {self.array((n, shape[1]), depth - 1)})"
        return None

    def array_join(self, shape: Shape, depth: int) -> str | None:
        n = shape[0]
        if n < 2:
            return None
        k = self.rng.randint(1, n - 1)
        if len(shape) == 1 and self.chance(0.3):
            return f"np.append({self.array((n - 1,), depth - 1)}, {self.scalar(depth - 1)})"
        if len(shape) > 1 and n == 2 and self.chance(0.5):
            return f"np.stack(({self.array(shape[1:], depth - 1)}, {self.array(shape[1:], depth - 1)}))"
        return (
            f"np.concatenate(({self.array((k, *shape[1:]), depth - 1)}, {self.array((n - k, *shape[1:]), depth - 1)}))"
        )

    def array_gather(self, shape: Shape, depth: int) -> str | None:
        """Entries picked by an integer array, repeated ones included."""
        if len(shape) != 1:
            return None
        pool = self.arrays(lambda v: v.shape is not None and len(v.shape) == 1 and v.shape[0] > 0)
        if not pool:
            return None
        array = self.choice(pool)
        n = (array.shape or ())[0]
        indices = self.variables("int", lambda v: v.shape == shape and v.high < n and v.low >= -n)
        if indices and self.chance(0.7):
            return f"{array.name}[{self.choice(indices).name}]"
        items = [self.rng.randrange(n) for _ in range(shape[0])]
        return f"{array.name}[np.array({items}, dtype=np.int64)]"

    def array_sorted(self, shape: Shape, depth: int) -> str | None:
        if len(shape) != 1:
            return None
        return f"np.sort({self.array(shape, depth - 1)})"

    def array_call(self, shape: Shape, depth: int) -> str | None:
        pool = [h for h in self.helpers if len(h.results) == 1 and h.results[0].shape == shape]
        return self.call(self.choice(pool), depth) if pool else None
