"""What tells entries on disk apart: programs, what is wanted of them, texts, types and settings."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import types
from numba.core.registry import cpu_target

from tapegen.backend.cache import derived_programs, store
from tapegen.backend.cache.derived_programs import Derived, Place, _type_in, _type_out
from tapegen.backend.cache.machine_code import MachineCodeCache
from tapegen.backend.printer.source import PythonSource
from tapegen.errors import Span
from tapegen.ir.fingerprint import NoDigest, Places, canonical_text
from tapegen.ir.nodes import Call, Const, Function, Return, Routine, Var
from tapegen.ir.types import STATIC, Array, ListOf, Scalar, TupleOf

F64 = Scalar("float64", True)


def program(value: Any, origin: Span | None = None) -> Function:
    return Function("f", (), (Return((Const(value),), origin),), (), (), origin)


def text_of(value: Any) -> str:
    return canonical_text(program(value), Places(None))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.1, math.nextafter(0.1, 1.0)),
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (1.0 + 2.0j, 1.0 + 3.0j),
        (np.float32(1.0), np.float64(1.0)),
        (np.float64(0.1), np.float64(math.nextafter(0.1, 1.0))),
        (np.dtype("float32"), np.dtype("float64")),
        (slice(0, 4, 1), slice(0, 4, 2)),
        (math.sin, np.sin),
        (np.add.reduce, np.add.accumulate),
        (("a", "b"), ("ab",)),
        (frozenset({1}), frozenset({1, 2})),
    ],
)
def test_other_values_are_other_programs(one: Any, other: Any) -> None:
    assert text_of(one) != text_of(other)
    assert text_of(one) == text_of(one)


def test_other_types_are_other_programs() -> None:
    arrays = [Array("float64", 1, "C"), Array("float32", 1, "C"), Array("float64", 1, "A"), Array("float64", 2, "C")]
    texts = {canonical_text(Function("f", (x := Var("x", type_),), (Return((x,)),)), Places(None)) for type_ in arrays}
    assert len(texts) == len(arrays)


def test_sets_are_written_in_one_order() -> None:
    """Both of these have the same place in a table, so the one that comes first stands first."""
    one, other = frozenset([0, 64]), frozenset([64, 0])
    assert list(one) != list(other)
    assert text_of(one) == text_of(other)


def test_routines_are_told_apart_by_their_bodies() -> None:
    def calls(value: float, shares: tuple[frozenset[int], ...] = ()) -> str:
        routine = Routine("g", program(value), shares)
        return canonical_text(Function("f", (), (Return((Call(routine, (), (), F64),)),)), Places(None))

    assert calls(1.0) == calls(1.0)
    assert len({calls(1.0), calls(2.0), calls(1.0, (frozenset({0}),))}) == 3


def of_the_user(x: float) -> float:
    return x


def test_what_only_this_process_has_is_not_kept() -> None:
    imposter = type("sin", (), {"__module__": "math", "__qualname__": "sin"})
    for value in (of_the_user, lambda: 0.0, imposter, object()):
        with pytest.raises(NoDigest):
            text_of(value)


def test_places_are_counted_from_the_beginning_of_a_program() -> None:
    at, moved = Span("/a/m.py", 10, 0, 12, 4, ("x",)), Span("/b/m.py", 30, 0, 32, 4, ("x",))
    inside, inside_moved = Span("/a/m.py", 11, 4, 11, 9, ("y",)), Span("/b/m.py", 31, 4, 31, 9, ("y",))
    assert Places(at).coded(inside) == Places(moved).coded(inside_moved)
    assert Places(moved).span(Places(at).coded(inside)) == inside_moved
    assert Places(moved).span(Places(at).coded(inside)).lines == inside.lines


# ---- derived programs ------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(store.SWITCH, "1")
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


HERE = Span("m.py", 1, 0, 1, 4, ("pass",))
SOURCE = PythonSource("def f():\n    return 1.0\n", "f", ("f",), {}, (HERE, None))


@pytest.mark.usefixtures("folder")
def test_what_is_wanted_is_part_of_the_key() -> None:
    places = [Place(program(1.0, HERE), parts) for parts in (["joint"], ["record"], ["joint", "wide"])]
    assert None not in [place.key for place in places]
    assert len({place.key for place in places}) == len(places)


@pytest.mark.usefixtures("folder")
def test_programs_have_no_key_where_users_have_given_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Place(program(1.0), ["joint"]).key is not None
    rules = derived_programs.all_rules()
    own = dataclasses.replace(next(iter(rules)), body=of_the_user)
    monkeypatch.setattr(derived_programs, "all_rules", lambda: [*rules, own])
    assert Place(program(1.0), ["joint"]).key is None


def test_derived_programs_come_back(folder: Path) -> None:
    namespace = {"Wrong": ArithmeticError}
    kept = (Var("a", Array("float64", 2, "C", (True, False))), Var("b", TupleOf((F64, ListOf(STATIC)))))
    source = dataclasses.replace(SOURCE, namespace=namespace, overlapping=True, decorator="njit")
    place = Place(program(1.0, HERE), ["joint"])
    assert place.load() is None
    place.save(Derived(source, kept[:1], kept))
    found = Place(program(1.0, HERE), ["joint"]).load()
    assert found is not None and list(folder.iterdir())
    assert (found.seeds, found.kept) == (kept[:1], kept)
    for name in ("text", "entry", "functions", "namespace", "line_map", "decorator", "overlapping"):
        assert getattr(found.source, name) == getattr(source, name)


def test_what_cannot_come_back_is_not_kept(folder: Path) -> None:
    place = Place(program(1.0, HERE), ["joint"])
    elsewhere = Span("other.py", 1, 0, 1, 4)
    place.save(Derived(dataclasses.replace(SOURCE, line_map=(elsewhere, None))))
    place.save(Derived(dataclasses.replace(SOURCE, namespace={"g": of_the_user})))
    assert not folder.exists()


@pytest.mark.usefixtures("folder")
def test_an_exception_class_that_is_not_there_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(program(1.0, HERE), ["joint"])
    monkeypatch.setattr("tests.backend.test_cache_keys.Mine", Mine, raising=False)
    place.save(Derived(dataclasses.replace(SOURCE, namespace={"Mine": Mine})))
    assert place.load() is not None
    monkeypatch.delattr("tests.backend.test_cache_keys.Mine")
    assert place.load() is None


class Mine(Exception):
    """One of the user's."""


@pytest.mark.parametrize(
    "type_",
    [F64, Scalar("int64", False), Array("float32", 2, "F", (True, False)), ListOf(F64), TupleOf((F64,)), STATIC],
)
def test_types_come_back(type_: Any) -> None:
    assert _type_in(_type_out(type_)) == type_


# ---- machine code ----------------------------------------------------------------------------------------------------


def key(source: PythonSource = SOURCE, from_start: bool = False, *args: Any) -> str | None:
    return MachineCodeCache(source, from_start).key(args or (types.float64,), cpu_target.target_context)


def test_keys_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        key(),
        key(dataclasses.replace(SOURCE, text=SOURCE.text.replace("1.0", "2.0"))),
        key(dataclasses.replace(SOURCE, overlapping=True)),
        key(SOURCE, True),
        key(SOURCE, False, types.float32),
        key(SOURCE, False, types.Array(types.float64, 1, "C")),
        key(SOURCE, False, types.Array(types.float64, 1, "A")),
        key(SOURCE, False, types.Array(types.float64, 1, "C", readonly=True)),
        key(dataclasses.replace(SOURCE, namespace={"Wrong": ValueError})),
        key(dataclasses.replace(SOURCE, namespace={"Wrong": TypeError})),
    ]
    assert key() == keys[0]
    monkeypatch.setattr(numba.core.config, "BOUNDSCHECK", 1)
    keys.append(key())
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    keys.append(key())
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_code_that_calls_functions_of_the_user_has_no_key() -> None:
    assert key(dataclasses.replace(SOURCE, namespace={"g": of_the_user})) is None
