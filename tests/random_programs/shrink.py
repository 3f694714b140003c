"""Make a failing program small: delta debugging on the syntax tree with the same oracle."""

from __future__ import annotations

import ast
import copy
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.random_programs.program import Program

BLOCKS = ("body", "orelse")
Path = tuple[tuple[str, int | None], ...]


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float = 25.0) -> Program:
    """The smallest program found for which `fails` still holds.

    `fails` must hold for `program`; it decides alone what counts as the same failure.  `seconds` are of the processor.
    """
    end = time.process_time() + seconds
    improved = True
    while improved and time.process_time() < end:
        improved = False
        for candidates in (fewer_statements, unwrapped, fewer_parameters, simpler_expressions, simpler_arguments):
            program, better = _descend(program, candidates, fails, end)
            improved |= better
    return program


def _descend(
    program: Program, candidates: Callable[[Program], Iterator[Program]], fails: Callable[[Program], bool], end: float
) -> tuple[Program, bool]:
    """Take the first smaller candidate that fails, from where the last one was found, until none does."""
    better, tried = False, 0
    while True:
        found = None
        for k, candidate in enumerate(candidates(program)):
            if k < tried or not _smaller(candidate, program):
                continue
            if time.process_time() > end:
                return program, better
            if _holds(fails, candidate):
                found, tried = candidate, k
                break
        if found is None:
            if tried == 0:
                return program, better
            tried = 0  # once more from the start
            continue
        program, better = found, True


def _holds(fails: Callable[[Program], bool], program: Program) -> bool:
    try:
        compile(program.source, "<candidate>", "exec")
        with deadline(1.0):
            return fails(program)
    except (Exception, OutOfTime):  # a candidate that cannot be judged is not the same failure
        return False
    finally:
        program.forget()


class OutOfTime(BaseException):
    """No Exception, so that no handler in the code under test takes it for one."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the block after so many seconds of its own: a loop may have lost its end."""

    def stop(*_: Any) -> None:
        raise OutOfTime(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, should the first one be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _smaller(candidate: Program, program: Program) -> bool:
    try:
        return size(candidate) < size(program)
    except SyntaxError:  # `v = ::2`
        return False


def size(program: Program) -> tuple[int, int]:
    """Nodes of the tree and characters of the text, arguments included."""
    trees = [ast.parse(program.source), *map(ast.parse, program.args)]
    nodes = sum(sum(1 for _ in ast.walk(tree)) for tree in trees)
    return nodes + len(program.wrt), len(program.source) + sum(map(len, program.args))


# ---- the tree by paths ----


def _sites(tree: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.AST]]:
    yield path, tree
    for name, value in ast.iter_fields(tree):
        if isinstance(value, ast.AST):
            yield from _sites(value, (*path, (name, None)))
        elif isinstance(value, list):
            for k, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _sites(item, (*path, (name, k)))


def _at(tree: ast.AST, path: Path) -> Any:
    for name, k in path:
        tree = getattr(tree, name) if k is None else getattr(tree, name)[k]
    return tree


def _with(tree: ast.AST, path: Path, new: Any) -> ast.AST:
    """A copy with one node replaced; a list of statements replaces one statement."""
    tree = copy.deepcopy(tree)
    parent, (name, k) = _at(tree, path[:-1]), path[-1]
    if k is None:
        setattr(parent, name, new)
    elif isinstance(new, list):
        items = getattr(parent, name)
        items[k : k + 1] = new
        if not items and name == "body":
            items.append(ast.Pass())
    else:
        getattr(parent, name)[k] = new
    return ast.fix_missing_locations(tree)


def _changed(program: Program, tree: ast.AST) -> Program:
    return replace(program, source=ast.unparse(tree) + "\n")


# ---- candidates ----


def fewer_statements(program: Program) -> Iterator[Program]:
    """Without a run of statements, longest runs first."""
    tree = ast.parse(program.source)
    blocks = [
        (path, name, len(getattr(node, name)))
        for path, node in _sites(tree)
        for name in BLOCKS
        if _is_block(node, name)
    ]
    for length in (8, 4, 2, 1):
        for path, name, count in blocks:
            for start in range(count - length, -1, -1):
                new = copy.deepcopy(tree)
                items = getattr(_at(new, path), name)
                if any(_is_needed(item) for item in items[start : start + length]):
                    continue
                del items[start : start + length]
                if not items and name == "body":
                    items.append(ast.Pass())
                yield _changed(program, new)


def _is_needed(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) or (isinstance(node, ast.FunctionDef) and node.name == "f")


def _is_block(node: ast.AST, name: str) -> bool:
    return isinstance(getattr(node, name, None), list)


def unwrapped(program: Program) -> Iterator[Program]:
    """A compound statement replaced by what it holds."""
    tree = ast.parse(program.source)
    for path, node in _sites(tree):
        if isinstance(node, ast.If | ast.For | ast.While):
            for name in BLOCKS:
                if getattr(node, name):
                    yield _changed(program, _with(tree, path, copy.deepcopy(getattr(node, name))))
                    if name == "orelse":
                        yield _changed(program, _with(tree, (*path, ("orelse", None)), []))
        if isinstance(node, ast.AugAssign):
            yield _changed(
                program, _with(tree, path, ast.Assign([copy.deepcopy(node.target)], copy.deepcopy(node.value)))
            )


def simpler_expressions(program: Program) -> Iterator[Program]:
    """An expression replaced by a constant or by one of its parts."""
    tree = ast.parse(program.source)
    for path, node in _sites(tree):
        if (
            not isinstance(node, ast.expr)
            or isinstance(node, ast.Slice)
            or isinstance(getattr(node, "ctx", None), ast.Store)
        ):
            continue
        parts = [
            part
            for part in ast.iter_child_nodes(node)
            if isinstance(part, ast.expr) and not isinstance(part, ast.Slice)
        ]
        if isinstance(node, ast.Call):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]  # not the function
        if isinstance(node, ast.Tuple):
            for k in range(len(node.elts)):
                if len(node.elts) > 1:
                    parts.append(ast.Tuple([item for j, item in enumerate(node.elts) if j != k], ast.Load()))
        constants = [] if isinstance(node, ast.Constant) else [ast.Constant(1.0), ast.Constant(0), ast.Constant(True)]
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, int | float)
            and node.value not in (0, 1, True, False)
        ):
            constants = [ast.Constant(type(node.value)(1)), ast.Constant(type(node.value)(2))]
        for new in [*constants, *parts]:
            yield _changed(program, _with(tree, path, copy.deepcopy(new)))


def fewer_parameters(program: Program) -> Iterator[Program]:
    """Without a parameter that the body does not need, or a position in `wrt`."""
    if len(program.wrt) > 1:
        for k in program.wrt:
            yield replace(program, wrt=tuple(w for w in program.wrt if w != k))
    tree = ast.parse(program.source)
    for k in range(len(program.args)):
        new = copy.deepcopy(tree)
        f = next(node for node in new.body if isinstance(node, ast.FunctionDef) and node.name == "f")
        del f.args.args[k]
        wrt = tuple(w - (w > k) for w in program.wrt if w != k)
        if wrt:
            yield replace(_changed(program, new), args=program.args[:k] + program.args[k + 1 :], wrt=wrt)


def simpler_arguments(program: Program) -> Iterator[Program]:
    """Arguments with rounder numbers, plainer layouts, fewer entries."""
    for k, text in enumerate(program.args):
        tree = ast.parse(text, mode="eval")
        for path, node in _sites(tree):
            for new in _simpler(node):
                changed = ast.unparse(_with(tree, path, new))
                yield replace(program, args=(*program.args[:k], changed, *program.args[k + 1 :]))


def _simpler(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        for value in (1.0, 2.0, round(node.value, 1)):
            if value != node.value and len(repr(value)) <= len(repr(node.value)):
                yield ast.Constant(value)
    elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.value, ast.Name):
        yield node.value
    elif isinstance(node, ast.Call) and node.args:
        if isinstance(node.func, ast.Name) or getattr(node.func, "attr", "") in ("asfortranarray", "float64"):
            yield node.args[0]
        if node.keywords:
            yield ast.Call(node.func, node.args, [])
    elif isinstance(node, ast.List) and len(node.elts) > 1:
        yield ast.List(node.elts[:-1], ast.Load())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
