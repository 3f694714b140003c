"""Foreign arrays: arrays of other libraries among the arguments, as NumPy arrays, and gradients with labels.

An array of another library is what gives NumPy its elements (`__array__`) or its memory (`__dlpack__`) and has a shape.
pandas and xarray are known by name: their gradients are put back into containers with the labels of the argument.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tapegen.errors import BadArgument
from tapegen.frontend.values.pytree import DTYPE_NAMES, children_of, is_foreign, package_of, rebuild

_LABELLED = {"pandas": ("Series", "DataFrame"), "xarray": ("DataArray",)}
_CONTAINERS = (tuple, list, dict)


def as_numpy(value: Any, name: str) -> np.ndarray:
    """The NumPy array of a foreign array, which may share its memory.

    Raises
    ------
    BadArgument
        Where its elements are not in this process and memory, not known yet, or of a dtype that NumPy does not have;
        or where another library records what is done with it.
    """
    kind, cls = described(value), type(value)
    if hasattr(cls, "requires_grad") and value.requires_grad:  # of the class: labels of pandas are attributes too
        raise BadArgument(f"'{name}' is {kind} that requires a gradient there.", f"Pass {_plain_text(value, name)}.")
    device = value.device if hasattr(cls, "device") else "cpu"
    if "cpu" not in str(device).lower():
        raise BadArgument(f"'{name}' is {kind} on the device {device}.", f"Pass {_plain_text(value, name)}.")
    try:
        found = np.asarray(value) if hasattr(cls, "__array__") else np.from_dlpack(value)
    except Exception as error:  # whatever the other library raises
        advice = f"Pass {_plain_text(value, name)}."
        if any(word in f"{cls.__name__} {error}".lower() for word in ("tracer", "symbolic")):
            advice = "Call the derivative outside of what traces it, with arrays of numbers."
        reason = f"'{name}' is {kind} without numbers that NumPy can read ({type(error).__name__})."
        raise BadArgument(reason, advice) from None
    if found.dtype not in DTYPE_NAMES:
        dtype = value.dtype if hasattr(cls, "dtype") else found.dtype
        raise BadArgument(
            f"'{name}' is {kind} of dtype {dtype}, for which there are no derivatives.",
            f"Pass {_plain_text(value, name, convert=True)}.",
        )
    return found


def described(value: Any) -> str:
    """The class of a value and its library: `a Tensor of torch`."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name} of {package_of(value)}"


def _plain_text(value: Any, name: str, *, convert: bool = False) -> str:
    """What to write for the NumPy array of a foreign array."""
    cls = type(value)
    if hasattr(cls, "detach"):  # as torch spells it
        moved = ".cpu()" if hasattr(cls, "device") and "cpu" not in str(value.device).lower() else ""
        return f"{name}.detach(){moved}{'.double()' if convert else ''}.numpy()"
    if hasattr(cls, "to_numpy"):
        return f"{name}.to_numpy({'float' if convert else ''})"
    if hasattr(cls, "__cuda_array_interface__") and hasattr(cls, "get"):  # as CuPy spells it
        return f"{name}.get()"
    return f"np.asarray({name}).astype(np.float64)" if convert else f"np.asarray({name})"


# ---- arguments -----------------------------------------------------------------------------------------------------


def with_numpy(value: Any, name: str) -> Any:
    """An argument with NumPy arrays for the foreign ones, in tuples, lists and dicts too; itself without any."""
    if is_foreign(value):
        return as_numpy(value, name)
    if type(value) not in _CONTAINERS or not holds_foreign(value):
        return value
    content = children_of(value)
    assert content is not None
    parts = [with_numpy(child, f"{name}[{key!r}]") for key, child in zip(content.keys, content.children, strict=True)]
    return rebuild(content, parts)


def holds_foreign(value: Any, around: tuple[int, ...] = ()) -> bool:
    """Whether a value is an array of another library, or a container of such."""
    if type(value) not in _CONTAINERS or id(value) in around:
        return is_foreign(value)
    around = (*around, id(value))
    return any(holds_foreign(part, around) for part in (value.values() if isinstance(value, dict) else value))


# ---- gradients -----------------------------------------------------------------------------------------------------


def is_labelled(value: Any) -> bool:
    """Whether an array has labels that its gradient gets as well."""
    return type(value).__name__ in _LABELLED.get(package_of(value), ())


def with_labels(given: Any, gradient: Any) -> Any:
    """A gradient in containers with the labels of the argument that it belongs to."""
    if is_labelled(given) and isinstance(gradient, np.ndarray):
        if package_of(given) == "xarray":
            return given.copy(data=gradient)
        pandas: Any = sys.modules["pandas"]
        if given.ndim == 1:
            return pandas.Series(gradient, index=given.index, name=given.name)
        return pandas.DataFrame(gradient, index=given.index, columns=given.columns)
    if type(given) not in _CONTAINERS or type(gradient) is not type(given):
        return gradient
    content, found = children_of(given), children_of(gradient)
    assert content is not None and found is not None
    return rebuild(found, [with_labels(*pair) for pair in zip(content.children, found.children, strict=True)])
