"""Views of merges that get their next value while the view is alive, in a nested statement.

    w_2 = w_1[::-1]                     w_3 = w_1
    if w_2[0] > x:                      w_2 = w_3[::-1]
        w_1 = w_2              ->       if w_2[0] > x:
        ...                                 w_1 = w_2
                                            ...

The cotangent of a view is a view of that of its base.  Reversing the nested statement, the cotangent of the base is
at first that of the new value, so that of the old value, of which this is a view, needs a name of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Set
from dataclasses import replace

from tapegen.analysis.memory_access import viewed
from tapegen.ir import traversal
from tapegen.ir.names import NameSupply
from tapegen.ir.nodes import Assign, Block, Call, Function, Load, Stmt, Var


def name_viewed_merges(function: Function, merges: Set[Var], names: NameSupply) -> Function:
    """Give merges a second name where a view of them outlives their value; the same function where there is none.

    Parameters
    ----------
    function : Function
        The program that `reverse` will see.
    merges : set of Var
        Variables with several Assigns.
    names : NameSupply
        Supply of fresh names.
    """
    body = _block(function.body, merges, names)
    return function if body is function.body else replace(function, body=body)


def _block(block: Block, merges: Set[Var], names: NameSupply) -> Block:
    out: list[Stmt] = []
    later: frozenset[Var] = frozenset()  # what nested statements that follow assign
    for stmt in reversed(block):
        if stmt.blocks:
            later |= merges & traversal.assigns(stmt)
            inner = tuple(_block(part, merges, names) for part in stmt.blocks)
            if any(map(operator.is_not, inner, stmt.blocks)):
                stmt = traversal.with_blocks(stmt, inner)
        elif isinstance(stmt, Assign) and (base := viewed(stmt.value)) in later:
            assert base is not None
            name = Var(names.fresh(base.name), base.type)
            out.append(replace(stmt, value=_view_of(stmt.value, name)))
            stmt = Assign((name,), base, stmt.origin)
        out.append(stmt)
    out.reverse()
    return block if len(out) == len(block) and all(map(operator.is_, out, block)) else tuple(out)


def _view_of(value: object, base: Var) -> Load | Call:
    if isinstance(value, Load):
        return replace(value, array=base)
    assert isinstance(value, Call)
    return replace(value, args=(base, *value.args[1:]))
