"""Programs that once failed, as files that the tests replay."""

from __future__ import annotations

import ast
import hashlib
import inspect
import pathlib

from tests.random_programs.checks import Failure
from tests.random_programs.generator import tidy
from tests.random_programs.program import Program, frozen

FOLDER = pathlib.Path(__file__).parent.parent / "programs" / "random"


def module_text(program: Program, failure: Failure) -> str:
    """A module with `f`, `ARGS` and `WRT`; its docstring tells which oracle failed and for which seed."""
    head, *rest = failure.detail.strip().splitlines() or [""]
    del rest
    note = f"{failure.oracle}, {failure.kind}: {head}"[:100].replace("\\", "/").replace('"', "'")
    body = tidy(program.source).split("import numpy as np\n", 1)[1].strip("\n")
    parts = [
        f'"""Random program of profile {program.profile}, seed {program.seed}.\n\n{note}\n"""',
        "import math\n\nimport numpy as np",
    ]
    args = ", ".join(program.args) + ("," if len(program.args) == 1 else "")
    if "frozen(" in args:
        parts.append("\n" + inspect.getsource(frozen).strip())
    parts.append("\n" + body)
    parts.append(f"\ndef ARGS():\n    return ({args})\n\n\nWRT = {program.wrt!r}\n")
    return "\n\n".join(parts)


def save(program: Program, failure: Failure, folder: pathlib.Path = FOLDER) -> pathlib.Path:
    """Write a program into the corpus; its name is a function of its text."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b((program.source + repr(program.args)).encode(), digest_size=6).hexdigest()
    path = folder / f"p{digest}.py"
    path.write_text(module_text(program, failure), encoding="utf-8")
    return path


def load(path: pathlib.Path) -> Program:
    """A program of the corpus, for the oracles of this folder."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    returned = named["ARGS"].body[-1]
    assert isinstance(returned, ast.Return)
    assert isinstance(returned.value, ast.Tuple)
    wrt: tuple[int, ...] = ()
    kept: list[ast.stmt] = []
    for node in tree.body[1:]:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "WRT":
            wrt = ast.literal_eval(node.value)
        elif not (isinstance(node, ast.FunctionDef) and node.name in ("ARGS", "frozen")):
            kept.append(node)
    source = ast.unparse(ast.Module(kept, [])) + "\n"
    return Program(source, tuple(ast.unparse(item) for item in returned.value.elts), wrt, "corpus")
