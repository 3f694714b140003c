"""Array methods of tensors: each is the NumPy function of the same name."""

from __future__ import annotations

from typing import Any

import numpy

np: Any = numpy  # its stubs support arrays only


class ArrayMethods:
    """Methods that call NumPy functions, which are recorded."""

    __slots__ = ()

    @property
    def T(self) -> Any:
        """Axes reversed."""
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """Real part."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """Imaginary part."""
        return np.imag(self)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """As `np.reshape`; the extents may be given one by one."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        """As `np.transpose`; the axes may be given one by one."""
        if not axes:
            return np.transpose(self)
        return np.transpose(self, axes[0] if len(axes) == 1 else axes)

    def flatten(self, order: str = "C") -> Any:
        """As `np.ravel`."""
        return np.ravel(self, order=order)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """As `np.astype`."""
        return np.astype(self, np.dtype(dtype))

    def dot(self, other: Any) -> Any:
        """As `np.dot`."""
        return np.dot(self, other)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """As `np.clip`."""
        return np.clip(self, min, max)

    def item(self, *place: Any) -> Any:
        """The only element, or one of them, as a Python scalar."""
        return self._leave("a Python number").item(*place)  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self._leave("a list").tolist()  # type: ignore[attr-defined]

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)


def _forwarding(name: str, func: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return func(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `np.{func.__name__}`."
    return method


for _name in (
    "all any argmax argmin argpartition argsort conj conjugate copy cumprod cumsum diagonal max "
    "mean min nonzero prod ptp ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
).split():
    setattr(ArrayMethods, _name, _forwarding(_name, getattr(np, _name)))
