"""Arguments and results of tape methods: targets, sources, weights, and values for missing gradients."""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegen.tape.engine import pytree
from tapegen.tape.engine.state import is_tracked
from tapegen.tape.tensors.tensor import Tensor, Traced, fresh

_LOG = logging.getLogger("tapegen")
_WARNINGS = 5  # one warning of each kind per process
_counts: dict[str, int] = {}


class UnconnectedGradients(enum.Enum):
    """The result for the gradient of a target that does not depend on a source."""

    NONE = "none"
    ZERO = "zero"


def warn(text: str, times: int = _WARNINGS) -> None:
    """Log a warning, the first few times."""
    _counts[text] = _counts.get(text, 0) + 1
    if _counts[text] <= times:
        _LOG.warning(text)


def warn_not_floating(role: str, item: Traced) -> None:
    """Log that integers have no derivatives."""
    warn(f"The dtype of the {role} must be floating (e.g. float32), got {item.dtype.name}")


def is_zero_wanted(given: Any) -> bool:
    """Whether the result for unconnected sources is zeros."""
    try:
        return UnconnectedGradients(given) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {given!r}") from None


def operands(name: str, structure: Any) -> list[Traced]:
    """The leaves of an argument, each a tensor or a variable."""
    if structure is None and name == "target":
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
            "differentiated, but received None."
        )
    found = list(pytree.leaves(structure))
    for position, item in enumerate(found):
        if not isinstance(item, Traced):
            raise TypeError(
                f"Argument `{name}` should be a nested structure of tensors and variables, but item {position} is "
                f"{item!r} of type '{type(item).__name__}'."
            )
    return found


def seeds_of(target: Any, targets: list[Traced], given: Any) -> list[Any]:
    """Checked weights for every element of the targets."""
    if given is None:
        return [np.ones(item.shape, item.dtype) for item in targets]
    weights = pytree.aligned(target, given) if isinstance(target, list | tuple | dict) else [given]
    if len(weights) != len(targets):
        raise ValueError(f"Argument `output_gradients` has {len(weights)} entries for {len(targets)} targets.")
    return [_seed(k, item, weight) for k, (item, weight) in enumerate(zip(targets, weights, strict=True))]


def _seed(position: int, item: Traced, weight: Any) -> Any:
    if weight is None:
        return np.ones(item.shape, item.dtype)
    shaped = weight if isinstance(weight, Traced) else np.asarray(weight)
    if shaped.ndim and shaped.shape != item.shape:
        raise ValueError(
            f"Entry {position} of `output_gradients` has shape {shaped.shape}, its target {item.shape}: Incompatible "
            f"shapes: {list(shaped.shape)} vs. {list(item.shape)}"
        )
    if isinstance(weight, np.ndarray | np.generic | Traced) and shaped.dtype != item.dtype:
        raise TypeError(f"Entry {position} of `output_gradients` has dtype {shaped.dtype}, its target {item.dtype}.")
    if isinstance(weight, Traced):
        tensor = weight if isinstance(weight, Tensor) else weight.read_value()  # type: ignore[attr-defined]
        if not is_tracked(tensor._id):
            tensor = tensor._value
        return np.broadcast_to(tensor, item.shape) if shaped.shape != item.shape else tensor
    return np.broadcast_to(shaped.astype(item.dtype), item.shape).copy()


def connected(result: Any, source: Traced, zero: bool) -> Any:
    """The result for a source: its cotangent, zeros or None."""
    if result is None:
        return fresh(np.zeros(source.shape, source.dtype)) if zero else None
    return result if isinstance(result, Tensor) else fresh(result)


def units(value: Any) -> Iterator[np.ndarray]:
    """Weights that select one element after the other."""
    for place in np.ndindex(value.shape):
        unit = np.zeros(value.shape, value.dtype)
        unit[place] = 1.0
        yield unit


def stacked(rows: list[Any], shape: tuple[int, ...], source: Traced, unconnected: Any) -> Any:
    """The rows of a Jacobian as one tensor."""
    if rows and all(row is None for row in rows):
        return None if unconnected is None else fresh(unconnected)
    if not rows:
        return fresh(np.zeros(shape, source.dtype))
    filled = [np.zeros(source.shape, source.dtype) if row is None else row for row in rows]
    return reshaped(np.stack(filled), shape)


def reshaped(stacked: Any, shape: tuple[int, ...]) -> Tensor:
    """A tensor of another shape."""
    result = np.reshape(stacked, shape)
    return result if isinstance(result, Tensor) else fresh(result)
