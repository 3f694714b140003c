"""Tensor leaks: tensors that escape while they are recorded, and errors that libraries make of the refusal."""

from __future__ import annotations

from types import TracebackType

from tapegen.errors import NotDifferentiable, Span
from tapegen.tape.engine.stack_frames import lines_of_error, scipy_function, user_place
from tapegen.tape.engine.state import STATE


def refuse(form: str) -> NotDifferentiable:
    """The error for a conversion of a tensor that is being recorded; it is remembered for `reraise_refusal`."""
    function = scipy_function()
    converted = f"'{function}' of scipy converts" if function else "this converts"
    way = (
        "call it in a function decorated with @tg.differentiable, which is recorded as one operation"
        if function
        else "write it with NumPy functions of tensors (np.stack for arrays of tensors, x = np.where(...) or "
        "np.concatenate for assignments to elements)"
    )
    reason = f"{converted} a tensor that is being recorded to {form}, which leaves the tape: the gradient would "
    reason, advice = f"{reason}lack what follows.", f"Use .numpy() if no gradient shall pass here; else {way}."
    place = user_place()
    STATE.refused = (place, reason, advice)
    return NotDifferentiable(reason, advice, None if place is None else Span.of_line(*place))


def reraise_refusal(error: BaseException | None, trace: TracebackType | None) -> None:
    """Raise the refusal again that a library has replaced by another error.

    Compiled solvers of scipy do not pass errors of callbacks on; NumPy wraps what fails in `buffer[0] = t`.

    Raises
    ------
    NotDifferentiable
        If the error comes from the line where a tensor was refused last.
    """
    if STATE.refused is None:
        return
    (place, reason, advice), STATE.refused = STATE.refused, None
    if error is None or place is None or isinstance(error, NotDifferentiable):
        return
    calling_scipy, last = lines_of_error(trace)
    if place in calling_scipy or (place == last and isinstance(error.__cause__, NotDifferentiable)):
        raise NotDifferentiable(reason, advice, Span.of_line(*place)) from error
