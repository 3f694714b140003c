"""Function synthesis: small functions made from text, so that they are lowered like user code."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Mapping
from types import FunctionType
from typing import Any


def function_from_text(text: str, namespace: Mapping[str, Any]) -> FunctionType:
    """A function made from the text of its definition; its source can be retrieved like that of any other.

    Parameters
    ----------
    text : str
        One `def`, with its line ends.
    namespace : mapping
        The globals that it uses.
    """
    name = text.partition("(")[0].removeprefix("def ")
    file = f"<tapegen {name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"__name__": __name__, **namespace}
    exec(compile(text, file, "exec"), names)
    made = names[name]
    assert isinstance(made, FunctionType)
    return made
