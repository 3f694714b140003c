"""Masked zeros of a cotangent, which come from a selection: there zero wins over an infinite partial derivative.

A tape knows the values: when the first NaN occurs in a product, it visits the records once more with what is *used*
in place of cotangents (docs/conventions.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tapegen.analysis.interval_arithmetic import DIVISIONS, EXPONENTIALS, POWERS, PRODUCTS
from tapegen.analysis.masked_values import CHOOSING
from tapegen.analysis.selection_frontiers import DENSE, MATRIX_PRODUCTS, SUMS
from tapegen.tape.tensors import compiled_calls
from tapegen.tape.tensors.accumulation import unbroadcast
from tapegen.tape.tensors.records import Input, Record, Used

_NOWHERE = np.zeros((), bool)


def set_infinity_aside(records: Sequence[Record]) -> bool:
    """Whether `np.where` chose, and something that is not finite was computed with, which it may have left."""
    return any(record.operation.func is np.where for record in records) and not all(
        np.isfinite(value).all()
        for record in records
        for value in (*record.args, record.out)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc"
    )


class Selected:
    """The uses of the results of the records of one sweep.

    Parameters
    ----------
    records : sequence of Record
        The records, in order.
    seeds : mapping
        The cotangents of the targets by their numbers.
    wild : bool
        Whether values may be infinite or NaN.
    """

    def __init__(self, records: Sequence[Record], seeds: Mapping[int, Any], wild: bool) -> None:
        self._records, self._wild = records, wild
        self._seeds = dict(seeds)
        self._plain: dict[int, Used] | None = None
        self._overflowing: dict[int, Used] = {}

    def of(self, record: Record) -> Used:
        """Where the result of a record is used, for the guard of its products."""
        if self._plain is None:
            self._follow()
        assert self._plain is not None
        func = record.operation.func
        found = self._overflowing if func in EXPONENTIALS or func in PRODUCTS else self._plain
        return found.get(record.out_ids[0])

    def _follow(self) -> None:
        # a single scalar is differentiated as it is; a caller who pulls back several may pass zeros
        alone = len(self._seeds) == 1
        self._plain = {
            number: np.ones((), bool) if alone and not seed.shape else _nonzero(seed)
            for number, seed in self._seeds.items()
        }
        self._overflowing = dict(self._plain)
        for record in reversed(self._records):
            plain = [self._plain.get(number, _NOWHERE) for number in record.out_ids]
            over = [self._overflowing.get(number, _NOWHERE) for number in record.out_ids]
            if all(used is _NOWHERE for used in plain):
                continue
            if len(plain) > 1 or record.plan is None:
                terms: list[tuple[Input, Used, Used]] = [(item, None, None) for item in record.inputs]
            elif record.plan.elementwise:
                terms = self._through_partials(record, plain[0], over[0])
            else:
                terms = self._through_rule(record, plain[0], over[0])
            for item, first, second in terms:
                _join(self._plain, item[3], first)
                _join(self._overflowing, item[3], second)

    def _through_partials(self, record: Record, plain: Used, over: Used) -> list[tuple[Input, Used, Used]]:
        func = record.operation.func
        parts, _ = record.local_derivatives(record.args, record.out, self._wild)
        found = []
        for item in record.inputs:
            part = parts[item[0]]
            if part is None:
                continue
            weight = _nonzero(1.0 / np.asarray(part) if record.plan.inverse[item[0]] else part)
            first = over if func in EXPONENTIALS else plain
            if func in CHOOSING or (func in PRODUCTS and len(record.inputs) == 1):
                first, second = _both(first, weight), _both(over, weight)
            elif func in EXPONENTIALS:
                second = _both(over, weight)
            elif _is_divisor(func, item[1], record.args):
                second = _both(plain, weight)  # a quotient that vanishes, as 1 / (1 + exp(x)) does
            else:
                second = over if func in SUMS or func in PRODUCTS or func in DIVISIONS or func in POWERS else plain
            found.append((item, _like(first, item[4]), _like(second, item[4])))
        return found

    def _through_rule(self, record: Record, plain: Used, over: Used) -> list[tuple[Input, Used, Used]]:
        func = record.operation.func
        dense = func in DENSE or (func in MATRIX_PRODUCTS and len(record.inputs) > 1)
        found: list[list[Used]] = []
        for used in (plain, over):
            if used is None:
                found.append([None for _ in record.inputs])
            elif dense and used.all():
                found.append([np.ones(item[4].shape, bool) for item in record.inputs])
            else:
                found.append(self._by_rule(record, used))
        return list(zip(record.inputs, *found, strict=True))

    def _by_rule(self, record: Record, used: np.ndarray) -> list[Used]:
        """The rule with scalars in place of cotangents that do not cancel each other."""
        plan = record.plan
        count = np.arange(used.size, dtype=float).reshape(used.shape)
        bar = np.where(used, 1.0 + np.mod(0.6180339887498949 * count, 1.0), 0.0)
        extra = {"out": record.out} if plan.takes_out else {}
        results = compiled_calls.run_body(
            plan.body, record._whole, record.args, {**record.kwargs, "out_bar": bar, **extra}
        )
        found: list[Used] = []
        for item in record.inputs:
            term = results[item[0]]
            for step in item[2]:
                term = term[step]
            found.append(np.zeros(item[4].shape, bool) if term is None else _nonzero(unbroadcast(term, item[4])))
        return found


def _is_divisor(func: Any, position: int, args: tuple[Any, ...]) -> bool:
    if func in POWERS:
        return position == 1 or not isinstance(args[1], int | float) or args[1] < 1
    return (func in DIVISIONS and position == 1) or func is np.reciprocal


def _nonzero(value: Any) -> np.ndarray:
    return np.asarray(getattr(value, "_value", value)) != 0


def _both(used: Used, weight: np.ndarray) -> Used:
    return None if used is None else used & weight


def _like(used: Used, like: Any) -> Used:
    """The same for an operand that was broadcast."""
    if used is None or used.shape == like.shape:
        return used
    return _nonzero(unbroadcast(used.astype(float), np.zeros(like.shape)))


def _join(held: dict[int, Used], number: int, used: Used) -> None:
    before = held.get(number, _NOWHERE)
    held[number] = used if before is _NOWHERE else None if before is None or used is None else before | used
