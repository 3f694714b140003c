"""`tf.Module`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tapegen import nn

Method = TypeVar("Method", bound=Callable[..., Any])


class Module(nn.Module):
    """A module whose variables come in the order of the names of the attributes, as TensorFlow's do."""

    def _attributes(self) -> dict[str, Any]:
        return dict(sorted(vars(self).items()))

    @classmethod
    def with_name_scope(cls, method: Method) -> Method:
        """Decorate a method: it stays as it is, since operations have no names here."""
        return method

    @property
    @contextlib.contextmanager
    def name_scope(self) -> Iterator[None]:
        """A block in which operations would be named."""
        yield
