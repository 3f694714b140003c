"""Loops that are unrolled, because their iterations differ in kind or an integer of them must be known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tapegen.errors import CompileLimit
from tapegen.frontend.expressions.comparisons import try_expression
from tapegen.frontend.lowering.branches import branches
from tapegen.frontend.lowering.control_flow import Region, run
from tapegen.frontend.lowering.run_time_loops import RunTimeLoop, changes_length, progress_step
from tapegen.frontend.lowering.statements import assign_target
from tapegen.frontend.values.context import Context, Unreachable
from tapegen.frontend.values.materialize import expr_of, not_
from tapegen.frontend.values.pytree import StaticValue, Struct
from tapegen.frontend.values.state import BREAK, CONTINUE, RETURN, TRUE, Series
from tapegen.ir import builders

MOST_ITERATIONS = 2000
"""Limit of unrolled iterations of one loop."""

MOST_EXITS = 95  # each nests the iterations behind it in one block more, and CPython takes no more levels


@dataclass(eq=False, slots=True)
class UnrolledLoop:
    """An unrolled loop."""

    cx: Context
    loop: RunTimeLoop
    series: Series | None
    lengths: dict[int, Any] = field(default_factory=dict)  # the keys of the containers that the series iterates over
    exits: int = 0  # iterations that may be the last one

    def run(self) -> None:
        if self.series is not None:
            self.lengths = {cell: self._keys(cell) for cell in self.series.lists}
        self.cx.frame.loops.append((self.loop.head, self.loop.after))
        try:
            self._from(0)
        finally:
            self.cx.frame.loops.pop()
        left = self.cx.state.vars.pop(BREAK, None)
        if left is not None:
            self.loop.left = True if left == TRUE else expr_of(self.cx, left)

    def _keys(self, cell: int) -> Any:
        content = self.cx.state.cells[cell].content
        return content.keys if isinstance(content, Struct) else None

    def _goes_on(self, iteration: int) -> bool:
        """Whether there is another iteration; binds its target."""
        cx, stmt, series = self.cx, self.loop.stmt, self.series
        if iteration > MOST_ITERATIONS:
            raise CompileLimit(
                f"this loop would be unrolled more than {MOST_ITERATIONS} times.",
                "Stack the items into one array and loop over that.",
                cx.span(),
            )
        with cx.at(stmt, statement=True):
            if series is not None:
                if any(self._keys(cell) != keys for cell, keys in self.lengths.items()):
                    raise changes_length(cx)
                if iteration < series.length:
                    assign_target(cx, stmt.target, series.item(StaticValue(iteration)))
                return iteration < series.length
            test = try_expression(cx, stmt.test)
            if not isinstance(test, bool):
                assert self.loop.refusal is not None
                raise self.loop.refusal
            return test

    def _from(self, iteration: int) -> None:
        """Emit the iterations from number `iteration` on."""
        cx, stmt = self.cx, self.loop.stmt
        region = Region(self.loop.head | self.loop.after)
        while self._goes_on(iteration):
            iteration += 1
            run(cx, stmt.body, region)
            if cx.builder.dead:
                raise Unreachable
            cx.state.vars.pop(CONTINUE, None)
            cx.state.escape_live = None
            flags = [cx.state.vars[flag] for flag in (BREAK, RETURN) if flag in cx.state.vars]
            if TRUE in flags:
                return
            if flags:
                self._unless(flags, iteration)
                return
            self._step()

    def _step(self) -> None:
        if self.series is not None and self.series.bar:
            self.cx.emit(progress_step(self.cx))

    def _unless(self, flags: list[Any], iteration: int) -> None:
        """Emit the remaining iterations, guarded by the condition that no path has exited the loop."""
        cx = self.cx
        self.exits += 1
        if self.exits > MOST_EXITS:
            raise CompileLimit(
                f"this loop would be unrolled, with more than {MOST_EXITS} iterations that may be the last one.",
                "Stack the items into one array and loop over that.",
                cx.span(),
            )

        def others() -> None:
            for flag in (BREAK, RETURN):
                cx.state.vars.pop(flag, None)
            self._step()
            self._from(iteration)

        test = not_(builders.or_all([expr_of(cx, flag) for flag in flags]))
        assert not isinstance(test, bool)
        branches(cx, test, others, lambda: None, self.loop.head | self.loop.after)
