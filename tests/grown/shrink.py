"""Make a failing program smaller: delete statements, and parts of its result, while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.grown.program import Program, Statement


def variants(program: Program) -> list[Program]:
    """Programs that are a little smaller, the smallest first."""
    found = []
    for number, block in enumerate(program.blocks()):
        for position in range(len(block)):
            smaller = program.copied()
            copy = list(smaller.blocks())[number]
            del copy[position]
            found.append(smaller)
            statement = block[position]
            if statement.body is not None and not statement.text.startswith(("def ", "@")):
                for k in range(1 + len(statement.more)):
                    smaller = program.copied()
                    copy = list(smaller.blocks())[number]
                    copy[position : position + 1] = list(copy[position].blocks())[k]
                    found.append(smaller)
                for k in range(len(statement.more)):
                    smaller = program.copied()
                    copy = list(smaller.blocks())[number]
                    del copy[position].more[k]
                    found.append(smaller)
    for k in range(len(program.results)):
        if len(program.results) > 1:
            smaller = program.copied()
            del smaller.results[k]
            found.append(smaller)
    if program.form != "number" and len(program.results) == 1:
        smaller = program.copied()
        smaller.form = "number"
        found.append(smaller)
    for k in range(len(program.parameters)):
        if len(program.parameters) > 1:
            smaller = program.copied()
            del smaller.parameters[k]
            found.append(smaller)
    return sorted(found, key=lambda each: len(each.text()))


def shrunk(program: Program, fails: Callable[[str], bool], seconds: float = 60.0) -> Program:
    """The smallest program found that fails.

    Parameters
    ----------
    program : Program
        One that fails.
    fails : callable
        Whether the text of a program fails in the same way.
    seconds : float
        When to stop looking.
    """
    end = time.monotonic() + seconds
    found = True
    while found:
        found = False
        for smaller in variants(program):
            if time.monotonic() > end:
                return program
            if fails(smaller.text()):
                program, found = smaller, True
                break
    return program


__all__ = ["Statement", "shrunk", "variants"]
