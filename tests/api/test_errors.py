"""The text of errors, and that they behave as the builtin errors they stand for."""

from __future__ import annotations

import linecache
import pickle
import traceback
from pathlib import Path

import pytest

from tapegen import errors
from tapegen.errors import BadArgument, MissingRule, SourceUnavailable, Span, TapegenError, UnsupportedSyntax
from tests.sources import python

ALL = sorted(
    (
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, TapegenError) and cls is not errors.NoCompiledForm
    ),
    key=lambda cls: cls.__name__,
)
"""All but one that no user sees."""
LINES = ("    total = total + f(x,\n", "                      y)\n")
SPAN = Span("model.py", 7, 20, 8, 24, LINES)


def test_text_of_an_error() -> None:
    error = BadArgument("this is why.", "Write that.", Span("model.py", 7, 12, 7, 17, LINES[:1]))
    assert str(error) == (
        "model.py:7:13: this is why.\n"
        "    total = total + f(x,\n"
        "            ^^^^^\n"
        "Write that."
    )  # fmt: skip
    assert str(BadArgument("this is why.", "Write that.")) == "this is why.\nWrite that."
    assert str(BadArgument("this is why.")) == "this is why."
    assert str(BadArgument("why.", "", Span("nowhere.py", 3, 4, 3, 5))) == "nowhere.py:3:5: why."


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("span", [None, SPAN])
def test_errors_survive_pickling(cls: type[TapegenError], span: Span | None) -> None:
    error = cls("why.", "What instead.", span)
    error.add_note("a note")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert (copy.reason, copy.advice, copy.span, copy.__notes__) == ("why.", "What instead.", span, ["a note"])
    assert str(copy) == str(error)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("span", [None, SPAN])
def test_tracebacks_show_the_whole_text(cls: type[TapegenError], span: Span | None) -> None:
    shown = "".join(traceback.format_exception_only(cls("why.", "What instead.", span)))
    assert f"errors.{cls.__name__}: " in shown
    assert "why.\n" in shown
    assert "What instead.\n" in shown
    if span is not None:
        assert "model.py" in shown
        assert "\n    total = total + f(x,\n                    ^^^^\n" in shown


def test_errors_that_python_prints_itself() -> None:
    output = python(
        "-c",
        "from tapegen.errors import *\n"
        "raise UnsupportedSyntax('why.', 'Do.', Span('m.py', 3, 8, 3, 11, ('été = abc',)))",
    )
    place, line, carets, *text = output.splitlines()[-5:]
    assert (place, line) == ('  File "m.py", line 3', "    été = abc")
    assert carets.rstrip("^") == " " * 10  # how many carets differs between versions of Python
    assert text == ["tapegen.errors.UnsupportedSyntax: why.", "Do."]


@pytest.mark.parametrize(
    ("cls", "builtins"),
    [
        ("UnsupportedSyntax", (SyntaxError,)),
        ("SourceUnavailable", (OSError,)),
        ("NotDifferentiable", (TypeError,)),
        ("MissingRule", (LookupError, TypeError, errors.NotDifferentiable)),
        ("BadArgument", (ValueError, TypeError)),
        ("AliasError", (ValueError,)),
        ("TapeMemoryError", (MemoryError,)),
        ("NameConflict", (ValueError,)),
        ("CompileLimit", (RecursionError,)),
        ("BuildError", (RuntimeError,)),
        ("InternalError", (RuntimeError,)),
    ],
)
def test_errors_are_what_a_python_programmer_catches(cls: str, builtins: tuple[type, ...]) -> None:
    assert getattr(errors, cls).__mro__[1] is not object
    for builtin in builtins:
        assert issubclass(getattr(errors, cls), builtin)
    assert issubclass(getattr(errors, cls), TapegenError)


def test_warnings_are_never_errors() -> None:
    for warning in (errors.CacheWarning, errors.PerformanceWarning):
        assert issubclass(warning, UserWarning)
        assert not issubclass(warning, TapegenError)


def test_fields_of_the_builtin_errors_make_sense() -> None:
    error = UnsupportedSyntax("why.", "Do.", Span("m.py", 3, 5, 4, 2, ("\té = {\n", "\t}\n")))
    assert (error.filename, error.lineno, error.text) == ("m.py", 3, "\té = {\n")
    assert (error.offset, error.end_offset) == (5, 7)  # characters from 1, to the end of the first line
    missing = SourceUnavailable("why.", "Do.", SPAN)
    assert (missing.errno, missing.filename, missing.args) == (None, None, ("why.",))
    assert MissingRule("why.").args == ("why.",)


def test_carets_under_wide_characters_and_tabs() -> None:
    line = "\tg = \u8ddd\u96e2(\tx, e\u0301t) + y\n"
    start = line.encode().index(b"x")
    end = line.encode().index(b" + y")
    shown = Span("m.py", 1, start, 1, end, (line,)).caret().split("\n")
    assert shown[0] == "    " + line.strip()
    # the two ideographs take two columns each, the tab stays, the combining accent takes none
    assert shown[1] == "    " + " " * 4 + "  " * 2 + " " + "\t" + "^" * len("x, et)")


def test_text_of_a_place() -> None:
    assert SPAN.text() == "f(x, y)"
    assert SPAN.source_line() == "    total = total + f(x,"
    assert Span("m.py", 1, 2, 1, 6, ("\u03b1\u03b2 = \u03b1\n",)).text() == "\u03b2 ="
    assert Span("nowhere.py", 1, 0, 1, 3).text() == ""
    assert Span("nowhere.py", 1, 0, 1, 3).caret() == ""


def test_places_without_lines_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("x = 1\ny = (2 +\n     3)\n")
    span = Span(str(path), 2, 4, 3, 7)
    assert span.text() == "(2 + 3)"
    assert span.caret() == "    y = (2 +\n        ^^^^"
    assert Span.of_line(str(path), 3) == Span(str(path), 3, 5, 3, 7)
    assert Span.of_line(str(path), 9) == Span(str(path), 9, 0, 9, 0)
    linecache.checkcache(str(path))


def test_places_with_lines_do_not_change_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("something else\n" * 10)
    span = Span(str(path), 7, 20, 8, 24, LINES)
    assert span.text() == "f(x, y)"
    assert span == Span(str(path), 7, 20, 8, 24)
    assert "total" not in repr(span)
