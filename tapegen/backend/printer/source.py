"""Generated source with all that is needed to run it, and its map to the user's lines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tapegen.errors import Span


@dataclass(frozen=True, slots=True, eq=False)
class PythonSource:
    """Python source of one or several functions.

    Attributes
    ----------
    text : str
        A complete module.
    entry : str
        Name of the function to call.
    functions : tuple of str
        Names of all functions that the source defines, each after those it calls.
    namespace : mapping of str to object
        Names that the source uses and neither defines nor imports: the user's own functions and exception classes.
    line_map : tuple of Span or None
        For each line of the source the location in the user's source that it comes from.
    decorator : str or None
        The text after the `@` of each function.
    overlapping : bool
        Whether arguments of which one is written may share memory.
    only_reads : bool
        Whether it certainly writes into no argument and returns no part of one: read-only arrays need no other code.
    parallel : bool
        Whether it calls `intrinsics.run_chunks`.
    """

    text: str
    entry: str
    functions: tuple[str, ...]
    namespace: Mapping[str, object] = field(default_factory=dict)
    line_map: tuple[Span | None, ...] = ()
    decorator: str | None = None
    overlapping: bool = False
    only_reads: bool = False
    parallel: bool = False

    @property
    def digest(self) -> str:
        """A hash of the source."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def file_name(self) -> str:
        """The file name under which debuggers and tracebacks show the source."""
        return f"<tapegen {self.entry} {self.digest}>"

    def origin(self, line: int) -> Span | None:
        """The user's location for a line of the source (counted from 1)."""
        return self.line_map[line - 1] if 0 < line <= len(self.line_map) else None

    def __str__(self) -> str:
        return self.text
