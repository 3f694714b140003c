"""What begins and ends a program that communicates: its results depend on all communication, this on its arguments.

Values are those of the first argument, and the order is 0.  No derivative passes; but to the analysis of activity one
may, so each message has its adjoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegen.ir.intrinsics import acts
from tapegen.ir.types import FLOAT, INT, Array, TupleOf
from tapegen.rules.implicit import primitive


def _own(x: Any) -> Any:
    return Array(x.dtype, x.rank, "C") if isinstance(x, Array) else x


@primitive(lambda order, x: FLOAT)
def begun(order: float, x: Any) -> float:
    """The order, as if it depended on an argument of the program."""
    return order


@primitive(lambda x, order: _own(x))
def ended(x: Any, order: float) -> Any:
    """A value, as if it depended on the order."""
    return np.array(x) if isinstance(x, np.ndarray) else x


@primitive(lambda bar, order: FLOAT)
def seeded(bar: Any, order: float) -> float:
    """The first cotangent of the order, which is 0."""
    return 0.0 * order


@acts
@primitive(lambda order: TupleOf((FLOAT, INT)))
def settled(order: float) -> tuple[float, int]:
    """Wait until all messages of the backward sweep have arrived."""
    from tapegen.rules.mpi import messages

    messages.wait_for_posts()
    return order, 0


@acts
@primitive(lambda order: TupleOf((FLOAT, INT)))
def finished(order: float) -> tuple[float, int]:
    """Check that every request was completed."""
    from tapegen.rules.mpi import messages

    messages.check_requests()
    return order, 0


__all__ = ["begun", "ended", "finished", "seeded", "settled"]
