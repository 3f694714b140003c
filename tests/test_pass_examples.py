"""The examples in the docstrings of the loop passes are what the passes do.

A docstring shows a program under `Before::` and what the pass makes of it under `After::`.  Parameters have types as
the command line takes them (`x: "f8[:]"`); under `Before, in a backward sweep::` the loops are those of one.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegen.backend.printer.module import emit
from tapegen.ir.nodes import Function
from tapegen.ir.passes import Pass
from tapegen.loops.parallel.outlining import chunks_of
from tapegen.loops.pipeline import PASSES
from tests.nests_reader import read

_BLOCK = re.compile(r"^(Before|After)([^\n:]*)::\n\n((?:    .*\n|\n)+)", re.MULTILINE)
_SAMPLES: dict[str, Any] = {"f8": 1.5, "i8": 3, "f8[:]": np.ones(4), "f8[:, :]": np.ones((4, 4)), "i8[:]": np.arange(4)}


def examples(one: Pass[Any]) -> list[tuple[str, str, str]]:
    """Where a program stands, its text, and that of the program after the pass."""
    doc = inspect.cleandoc(sys.modules[one.run.__module__].__doc__ or "") + "\n"
    blocks = [(word, where, textwrap.dedent(text).strip("\n")) for word, where, text in _BLOCK.findall(doc)]
    assert [word for word, _, _ in blocks] == ["Before", "After"] * (len(blocks) // 2)
    return [(where, before, after) for (_, where, before), (_, _, after) in zip(blocks[::2], blocks[1::2], strict=True)]


def program(text: str, where: str) -> Function:
    """The program of a text with types."""
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    samples = tuple(_SAMPLES[ast.literal_eval(each.annotation)] for each in definition.args.args)  # type: ignore[arg-type]
    return replace(read(text, samples), backward="backward sweep" in where)


def printed(function: Function) -> str:
    """The text of a program, without the functions that it needs."""
    text = emit(function, routines=chunks_of(function)).text
    return text[text.index(f"def {function.name}") :].strip("\n")


def run(one: Pass[Any], function: Function) -> Function:
    """What a pass makes of a program."""
    options = {
        "boundscheck": True,
        "wide": True,
        "bailouts": True,
        "messages": True,
        "speculative": False,
        "verdicts": [],
    }
    changed: Function = one.run(function, **{name: options[name] for name in one.options})
    return changed


SHOWN = tuple(dict.fromkeys(one for one in PASSES if examples(one)))


def test_every_optimization_shows_an_example() -> None:
    assert {one.name for one in PASSES if one.optimization} <= {one.name for one in SHOWN}


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in SHOWN])
def test_an_example_is_what_the_pass_does(one: Pass[Any]) -> None:
    for where, before, after in examples(one):
        assert printed(run(one, program(before, where))) == after
        assert after not in before
