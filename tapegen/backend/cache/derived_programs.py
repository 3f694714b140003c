"""Cache entries of derived programs: the source for numba, the map to the user's lines, and what callers must know.

A second process that lowers the same function for the same types need not derive it.  The key is the lowered program
itself, with everything else that deriving and printing read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapegen.backend.cache.store import key_of, store
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import Span
from tapegen.ir.fingerprint import NoDigest, Places, canonical_text, exception_named, import_path_of
from tapegen.ir.nodes import Function, Var
from tapegen.ir.types import STATIC, Array, ListOf, RandomGenerator, Scalar, Static, TupleOf, Type
from tapegen.rules.registry import all_rules


@dataclass(frozen=True)
class Derived:
    """One derived program as it is built.

    Attributes
    ----------
    source : PythonSource
        The source.
    seeds, kept : tuple of Var
        Cotangents among its parameters; the values that a forward sweep saves for its pullback.
    recorded_bytes : str
        The bytes that it records (`pipeline.passes.derivation.Stages`).
    """

    source: PythonSource
    seeds: tuple[Var, ...] = ()
    kept: tuple[Var, ...] = ()
    recorded_bytes: str = "0"


class Place:
    """The cache slot of one derived program.

    Parameters
    ----------
    lowered : Function
        The program that it is derived from.
    parts : sequence of str
        Everything else that the derived program depends on.
    """

    def __init__(self, lowered: Function, parts: Sequence[str]) -> None:
        self.places = Places(lowered.origin)
        self.key: str | None = None
        if store() is not None:
            with contextlib.suppress(NoDigest):
                self.key = key_of("program", canonical_text(lowered, self.places), *_rules(), *parts)
        self.files = len(self.places.files)

    def load(self) -> Derived | None:
        """The program, or None."""
        kept = store()
        data = kept.load(self.key) if kept is not None and self.key is not None else None
        if data is None:
            return None
        try:
            return self._decoded(json.loads(data))
        except (ValueError, LookupError, TypeError):  # an entry with the right key but other contents
            return None

    def save(self, derived: Derived) -> None:
        """Store the program, if possible."""
        kept = store()
        if kept is None or self.key is None:
            return
        try:
            content = self._encoded(derived)
        except NoDigest:
            return
        kept.save(self.key, json.dumps(content, separators=(",", ":")).encode())

    def _encoded(self, derived: Derived) -> dict[str, Any]:
        source = derived.source
        names = {}
        for name, value in source.namespace.items():
            home = import_path_of(value) if isinstance(value, type) else ("", "")
            if exception_named(*home) is not value:
                raise NoDigest
            names[name] = home
        spans: dict[Span, int] = {}
        lines = [None if span is None else spans.setdefault(span, len(spans)) for span in source.line_map]
        coded = [self.places.coded(span) for span in spans]
        if len(self.places.files) > self.files:  # a file that the key does not cover
            raise NoDigest
        return {
            "text": source.text,
            "entry": source.entry,
            "functions": source.functions,
            "decorator": source.decorator,
            "overlapping": source.overlapping,
            "only_reads": source.only_reads,
            "parallel": source.parallel,
            "names": names,
            "spans": coded,
            "lines": lines,
            "seeds": [(var.name, _type_out(var.type)) for var in derived.seeds],
            "kept": [(var.name, _type_out(var.type)) for var in derived.kept],
            "bytes": derived.recorded_bytes,
        }

    def _decoded(self, content: dict[str, Any]) -> Derived | None:
        spans = [self.places.span(coded) for coded in content["spans"]]
        namespace = {name: exception_named(*home) for name, home in content["names"].items()}
        if None in namespace.values():
            return None
        source = PythonSource(
            content["text"],
            content["entry"],
            tuple(content["functions"]),
            namespace,
            tuple(None if k is None else spans[k] for k in content["lines"]),
            content["decorator"],
            content["overlapping"],
            content["only_reads"],
            content["parallel"],
        )
        seeds, kept = (tuple(Var(name, _type_in(t)) for name, t in content[field]) for field in ("seeds", "kept"))
        return Derived(source, seeds, kept, content["bytes"])


def _rules() -> list[str]:
    """The loaded rules, by name; the result of deriving may depend on any of them.

    Raises
    ------
    NoDigest
        If users have registered rules.
    """
    found = []
    for rule in all_rules():
        home = str(getattr(rule.body or rule.pushforward, "__module__", "tapegen"))
        if home.partition(".")[0] != "tapegen":
            raise NoDigest
        if home != "tapegen.rules.scipy.special":  # they are loaded when SciPy is imported
            found.append(f"{getattr(rule.func, '__module__', '')}.{getattr(rule.func, '__name__', '')}:{rule.kind}")
    return sorted(found)


def _type_out(type_: Type) -> list[Any]:
    match type_:
        case Scalar(dtype, python):
            return ["scalar", dtype, python]
        case Array(dtype, rank, layout, unit):
            return ["array", dtype, rank, layout, unit]
        case ListOf(item):
            return ["list", _type_out(item)]
        case TupleOf(items):
            return ["tuple", *map(_type_out, items)]
        case RandomGenerator(kind):
            return ["generator", kind]
        case Static():
            return ["static"]


def _type_in(coded: list[Any]) -> Type:
    match coded:
        case ["scalar", dtype, python]:
            return Scalar(dtype, python)
        case ["array", dtype, rank, layout, unit]:
            return Array(dtype, rank, layout, tuple(unit))
        case ["list", item]:
            return ListOf(_type_in(item))
        case ["tuple", *items]:
            return TupleOf(tuple(map(_type_in, items)))
        case ["generator", kind]:
            return RandomGenerator(kind)
        case ["static"]:
            return STATIC
    raise ValueError(coded)


__all__ = ["Derived", "Place"]
