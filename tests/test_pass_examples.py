"""The examples in the docstrings of passes are what the passes do: each pass has one.

A docstring shows a program under `Before::` and what the pass makes of it under `After::`.  Parameters have types as
the command line takes them (`x: "f8[:]"`).  Loop passes show both in the docstring of their module; under
`Before, in a backward sweep::` the loops are those of one, and under `The routine of the program::` stands a recursive
function.  Passes of derivation show them in their own docstrings, as the intermediate representation is printed; they
start with the program under `In the program::` after all earlier passes, or with the one under `Before::` itself.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tapegen as tg
from tapegen.backend.printer.module import emit
from tapegen.ir.nodes import Function
from tapegen.ir.passes import Pass, run_passes
from tapegen.ir.printer import function_text
from tapegen.loops.parallel.outlining import chunks_of
from tapegen.loops.pipeline import PASSES
from tapegen.pipeline.compile import FORWARD_PASSES, REVERSE_PASSES, routines
from tapegen.pipeline.passes.derivation import Derivation
from tapegen.pipeline.passes.preparation import PREPARATION
from tests.nests_reader import read
from tests.sources import define

_BLOCK = re.compile(
    r"^(The routine of the program|In the program|Before|After)([^\n:]*)::\n\n((?:    .*\n|\n)+)", re.MULTILINE
)
_SAMPLES: dict[str, Any] = {"f8": 1.5, "i8": 3, "f8[:]": np.ones(4), "f8[:, :]": np.ones((4, 4)), "i8[:]": np.arange(4)}


def blocks(doc: str | None) -> list[tuple[str, str, str]]:
    """The indented blocks of a docstring: the words above each, and its text."""
    found = _BLOCK.findall(inspect.cleandoc(doc or "") + "\n")
    return [(word, where, textwrap.dedent(text).strip("\n")) for word, where, text in found]


def samples_of(text: str) -> tuple[str, tuple[Any, ...]]:
    """The name of a function, and arguments of the types of its parameters."""
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    return definition.name, tuple(_SAMPLES[ast.literal_eval(each.annotation)] for each in definition.args.args)  # type: ignore[arg-type]


def specialization(text: str) -> Any:
    """The specialization of a function, to be differentiated with respect to all parameters but integers."""
    name, samples = samples_of(text)
    wrt = tuple(k for k, sample in enumerate(samples) if not isinstance(sample, int))
    made: Any = define("import numpy as np\n\n\n" + text, name)
    return tg.differentiable(made, wrt=wrt)._specialise(samples, {}).program


def program(text: str, where: str) -> Function:
    """The program of a text with types, as loop passes see it."""
    return replace(read(text, samples_of(text)[1]), backward="backward sweep" in where)


def printed(function: Function) -> str:
    """The text of a program, without the functions that it needs."""
    text = emit(function, routines=chunks_of(function)).text
    return text[text.index(f"def {function.name}") :].strip("\n")


# ---- loop passes -----------------------------------------------------------------------------------------------------


def examples(one: Pass[Any]) -> list[tuple[str, str, str]]:
    """Where a program stands, its text, and that of the program after the pass."""
    found = blocks(sys.modules[one.run.__module__].__doc__)
    if found and found[0][0] != "Before":
        found = found[1:]
    assert [word for word, _, _ in found] == ["Before", "After"] * (len(found) // 2)
    return [(where, before, after) for (_, where, before), (_, _, after) in zip(found[::2], found[1::2], strict=True)]


def run(one: Pass[Any], function: Function) -> Function:
    """What a pass makes of a program."""
    options = {
        "boundscheck": True,
        "wide": True,
        "bailouts": True,
        "messages": True,
        "speculative": False,
        "short_axes": ((1, 1, 3),),
        "verdicts": [],
    }
    changed: Function = one.run(function, **{name: options[name] for name in one.options})
    return changed


def test_every_loop_pass_shows_an_example() -> None:
    assert [one.name for one in PASSES if not examples(one)] == []


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in dict.fromkeys(PASSES)])
def test_an_example_is_what_the_loop_pass_does(one: Pass[Any]) -> None:
    word, _, text = blocks(sys.modules[one.run.__module__].__doc__)[0]
    if word == "The routine of the program":
        found = specialization(text)
        (routine,) = routines(found.lowered.function, found.user_names).values()
        ((_, before, after),) = examples(one)
        assert function_text(routine).strip("\n") == before
        assert function_text(run(one, routine)).strip("\n") == after
        return
    for where, before, after in examples(one):
        assert printed(run(one, program(before, where))) == after
        assert after not in before


# ---- passes of derivation --------------------------------------------------------------------------------------------


DERIVATION_PASSES = {one.name: (passes, one) for passes in (FORWARD_PASSES, REVERSE_PASSES) for one in passes}
"""The passes by name, each with a pipeline that it is part of."""


def derivation_of(text: str, where: str) -> Derivation:
    """The derivation of a program with respect to all parameters but integers."""
    found = specialization(text)
    cut = (0,) if "checkpointed" in where else ()
    return Derivation(found.lowered.function, found.wrt_vars(), (True,), found.user_names, checkpointed=cut)


def shown(derivation: Derivation) -> str:
    """The program of a derivation, without types."""
    return (function_text(derivation.program) if derivation.forward is None else derivation.text()).strip("\n")


def found_by(analyses: Derivation) -> str:
    """What the analyses found, which change nothing."""
    activity = analyses.facts.activity
    kinds = {"varied": activity.varied, "useful": activity.useful, "active": activity.active}
    return "\n".join(f"{kind}: {', '.join(sorted(var.name for var in kinds[kind]))}" for kind in kinds)


def steps(name: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The blocks of the example of a pass, and what is to be in each."""
    passes, one = DERIVATION_PASSES[name]
    found = blocks(one.run.__doc__)
    assert [word for word, _, _ in found] in (["Before", "After"], ["In the program", "Before", "After"])
    options = {"record_everything": False, "parallel": False}
    _, where, text = found[0]
    derivation = derivation_of(text, where)
    derivation = run_passes(passes[: passes.index(one)], derivation, **options)
    if len(found) == 3:
        yield found[1], shown(derivation)
    before = derivation.text()
    derivation = run_passes((one,), derivation, **options)
    changed = derivation.text() != before
    assert changed == (one is not PREPARATION[-1])
    yield found[-1], shown(derivation) if changed else found_by(derivation)


def test_every_pass_of_derivation_shows_an_example() -> None:
    assert [name for name, (_, one) in DERIVATION_PASSES.items() if not blocks(one.run.__doc__)] == []


@pytest.mark.parametrize("name", DERIVATION_PASSES)
def test_an_example_is_what_the_pass_of_derivation_does(name: str) -> None:
    for (_, _, text), is_there in steps(name):
        assert is_there == text
