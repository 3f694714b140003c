"""Which arguments and results of a program are differentiated."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, Protocol

from tapegen.errors import BadArgument, Span
from tapegen.frontend.lowered import Lowered
from tapegen.frontend.source.parse import span_of_parameter
from tapegen.frontend.values.pytree import Abstract, Leaf, Slot, StaticValue, Struct, kind_of_result, leaves_of
from tapegen.ir.nodes import Return, Var
from tapegen.ir.types import Array, ListOf, Scalar, is_complex, is_floating
from tapegen.pipeline.options import Options


class Owner(Protocol):
    """The function that programs are derived from."""

    function: FunctionType
    signature: inspect.Signature
    uncompiled: set[tuple[str, Span | None]]
    carries: dict[tuple[Any, ...], str]

    def free_names(self) -> list[str]: ...

    def argument_paths(self, abstracts: dict[str, Abstract]) -> dict[str, str]: ...

    def of_the_call(self, positions: Iterable[int | str]) -> tuple[int | str, ...]: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The arguments and results that the options of a function select, for one specialization."""

    lowered: Lowered
    owner: Owner
    abstracts: dict[str, Abstract]
    options: Options

    def names(self) -> tuple[str, ...]:
        """The items of `wrt` as paths of arguments."""
        paths = self.owner.argument_paths(self.abstracts)
        names = list(paths)
        wrt = self.options.wrt
        chosen = (wrt,) if isinstance(wrt, int | str) else wrt
        if any(isinstance(item, int) and item >= len(names) for item in chosen):
            chosen = self.owner.of_the_call(chosen)  # only those of `*args` come after the parameters
        found = []
        for item in chosen:
            if isinstance(item, str):
                item = unicodedata.normalize("NFKC", item)  # names of arguments are normalized as by Python
            if isinstance(item, int):
                if not -len(names) <= item < len(names):
                    raise BadArgument(
                        f"wrt={item} is not the position of an argument of {self.owner.function.__name__}.",
                        f"The arguments are {', '.join(names)}; positions count from 0.",
                        self.lowered.function.origin,
                    )
                found.append(paths[names[item]])
            elif item in paths:
                found.append(paths[item])
            elif item.partition(".")[0] in self.abstracts:
                found.append(item)
            else:
                raise BadArgument(
                    f"wrt={item!r} is not an argument of {self.owner.function.__name__}.",
                    f"The arguments are {', '.join(names)}.",
                    self.lowered.function.origin,
                )
        return tuple(found)

    def template(self, name: str) -> Abstract:
        """The abstract value of one item of `wrt` (`"u0"`, `"self.k"`, `"args.0"`)."""
        head, *path = name.split(".")
        found = self.abstracts[head]
        for text in path:
            part = int(text) if text.isdecimal() else text
            if isinstance(found, Struct) and found.kind == "tuple" and part not in found.keys:
                raise BadArgument(f"wrt={name!r}: there are {len(found.keys)} of them.", "Count from 0.")
            if not isinstance(found, Struct) or part not in found.keys:
                raise BadArgument(
                    f"wrt={name!r}: there is no attribute '{part}'.", "Name an attribute that holds floats."
                )
            found = found.get(part)
        return found

    def gradient_templates(self) -> tuple[Abstract, ...]:
        """The structures of the gradients, one for each item of `wrt`; their Slots count the derivatives."""
        positions = {var: k for k, var in enumerate(self.variables())}
        return tuple(self._counted(self.template(name), positions) for name in self.names())

    def _counted(self, template: Any, positions: dict[Var, int]) -> Any:
        """A template with positions for leaves; inactive values (options, integers) become None."""
        if isinstance(template, Struct):
            return replace(template, children=tuple(self._counted(child, positions) for child in template.children))
        var = self.lowered.param_of(template) if isinstance(template, Leaf) else None
        return Slot(positions[var]) if var in positions else StaticValue(None)

    def variables(self) -> tuple[Var, ...]:
        """The IR parameters that are differentiated, each once."""
        chosen: dict[Var, None] = {}
        for name in self.names():
            template = self.template(name)
            leaves = [leaf for leaf in leaves_of(template) if isinstance(leaf, Leaf)]
            floating = [leaf for leaf in leaves if is_floating(leaf.type)]
            integer = [leaf for leaf in leaves if isinstance(leaf.type, Array) and not is_floating(leaf.type)]
            if not floating or integer:
                held = {leaf.type.dtype for leaf in integer if isinstance(leaf.type, Array)}
                numbers = "truth values (bool)" if held == {"bool"} else "integers" if leaves else "no numbers"
                kind = (
                    f"is a {type(template.value).__name__}, which has"
                    if isinstance(template, StaticValue)
                    else f"holds {numbers}, which have"
                )
                raise BadArgument(
                    f"'{name}' {kind} no gradient.",
                    "Pass floats, or leave it out of wrt.",
                    span_of_parameter(self.owner.function, name) or self.lowered.function.origin,
                )
            for leaf in floating:
                var = self.lowered.param_of(leaf)
                if var is not None:
                    chosen.setdefault(var)
        return tuple(chosen)

    def active_results(self, *, scalar: bool) -> tuple[bool, ...]:
        """Which returned values are differentiated; for a gradient there must be one, and it must be a scalar."""
        last = self.lowered.function.body[-1]
        assert isinstance(last, Return)
        objective = self.objective
        if scalar:
            if isinstance(objective, StaticValue) and isinstance(objective.value, float):
                return tuple(False for _ in last.values)
            if isinstance(objective, Slot) and is_complex(last.values[objective.index].type):
                raise BadArgument(
                    f"{self.owner.function.__name__} returns a complex number, which has no gradient.",
                    "Return a real number (its absolute value, its real part), or use vjp with a complex cotangent.",
                    last.origin or self.lowered.function.origin,
                )
            if not isinstance(objective, Slot) or not _is_number(last.values[objective.index].type):
                self.variables()  # integers in, integers out: the argument is to blame
                raise BadArgument(
                    f"{self.owner.function.__name__} does not return a float but "
                    f"{kind_of_result(objective, last.values)}, so it has no gradient.",
                    "Return one number, or use vjp or jacobian.",
                    last.origin or self.lowered.function.origin,
                )
            return tuple(k == objective.index for k in range(len(last.values)))
        chosen = {leaf.index for leaf in leaves_of(objective) if isinstance(leaf, Slot)}
        return tuple(k in chosen and is_floating(value.type) for k, value in enumerate(last.values))

    @property
    def objective(self) -> Abstract:
        """The differentiated part of the value: all of it, or the first of two."""
        output = self.lowered.output
        if not self.options.has_aux:
            return output
        if not isinstance(output, Struct) or output.kind != "tuple" or len(output.children) != 2:
            last = self.lowered.function.body[-1]
            assert isinstance(last, Return)
            raise BadArgument(
                "has_aux=True needs a function that returns (objective, aux).",
                "Return a pair.",
                last.origin or self.lowered.function.origin,
            )
        return output.children[0]


def _is_number(type_: Any) -> bool:
    return is_floating(type_) and not isinstance(type_, ListOf) and (isinstance(type_, Scalar) or type_.rank == 0)
