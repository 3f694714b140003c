"""Shared library build (ahead of time): derivatives with a C header and a Python module that needs only NumPy."""

from __future__ import annotations

import hashlib
import inspect
import json
import keyword
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tapegen.analysis.side_effects import effects_of
from tapegen.api import Differentiable, differentiable
from tapegen.backend.cache.atomic_files import publish
from tapegen.backend.numba.build import decorator_text
from tapegen.backend.printer.module import emit
from tapegen.errors import BadArgument, BuildError, NameConflict, printable
from tapegen.export.module import MODES, Derived, ExportRequest, Form, name_of
from tapegen.export.native.blas import Products
from tapegen.export.native.c_header import header
from tapegen.export.native.c_wrappers import implementation
from tapegen.export.native.entry_points import Entry, Parameter, Result, identifier
from tapegen.export.native.linker import link
from tapegen.export.native.object_code import Errors, NativeObject, Processor, native_object, processor
from tapegen.export.output_buffers import with_output_buffers
from tapegen.export.python_wrapper import Wrapped, wrapper
from tapegen.frontend.lowered import Param
from tapegen.frontend.values.pytree import Slot, leaves_of
from tapegen.ir.nodes import Call, Effect, Expr, Function, Return, Var
from tapegen.ir.passes import deep
from tapegen.ir.traversal import statements
from tapegen.ir.types import Array, ListOf, Scalar
from tapegen.pipeline.artifacts.generated_text import routines_of
from tapegen.pipeline.artifacts.program import Program

_MODULES = frozenset(("numpy", *sys.stdlib_module_names, *keyword.kwlist))
"""Names that no module can have next to the modules of Python."""


_LONGEST = 200
"""Maximal length of a name: files are limited to 255 characters, with what is added to the name."""


def build(
    func: Callable[..., Any],
    *args: Any,
    directory: str | os.PathLike[str] = "build",
    name: str | None = None,
    modes: Sequence[str] | None = None,
    cpu: str = "x86-64-v2",
    blas: str = "builtin",
    **kwargs: Any,
) -> Path:
    """Build a shared library of a function and its derivatives, its C header, and a Python module that loads it.

    Parameters
    ----------
    func : callable
        A function, differentiated with respect to the `wrt` of `differentiable`, or its first argument.
    *args, **kwargs
        Arguments of the types that the library shall accept; contiguous arrays make the library accept contiguous ones.
    directory : path
        Where `lib{name}.so`, `{name}.h`, `{name}.py` and `{name}.json` are written; it is created if necessary.
    name : str, optional
        Name of the library; by default that of the function (`signal_grad` where Python has a module of that name).
    modes : sequence of str, optional
        Some of `MODES`; by default all that are possible for the function.
    cpu : {"x86-64-v2", "x86-64-v3", "native"}
        The processors it runs on.
    blas : str
        "builtin", or "cblas:PATH" for the products of a library with the C interface of BLAS.

    Returns
    -------
    Path
        The Python module.

    Raises
    ------
    BuildError
        If the function cannot be compiled, there is no C compiler, or the directory cannot be written.
    BadArgument
        If the name is invalid in C, or as the name of a Python module (NameConflict).
    """
    function = func if isinstance(func, Differentiable) else differentiable(func)
    wanted = ExportRequest(function, args, kwargs, modes or default_modes(function, args, kwargs))
    return build_library([wanted], directory, name or default_name(name_of(function)), cpu=cpu, blas=blas)


def default_name(text: str) -> str:
    """The name of the library of a function or file: its own, if a module can have that name."""
    name = identifier(text)
    return f"{name}_grad" if name in _MODULES else name


def default_modes(function: Differentiable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """All modes that are possible for the function: a gradient needs a scalar as the value.

    A tape cannot contain lists of lists.
    """
    program = function._specialise(tuple(args), dict(kwargs)).program
    kept = [var.type for var in program.stages(scalar=False).kept]
    lists = [type_ for type_ in kept if isinstance(type_, ListOf)]
    left_out = set() if all(isinstance(type_.item, Scalar | Array) for type_ in lists) else {"split"}
    try:
        program.selection.active_results(scalar=True)
    except BadArgument:
        left_out |= {"grad", "hvp"}
    if _is_collected(function, program):
        left_out.add("hvp")
    return tuple(mode for mode in MODES if mode not in left_out)


def _is_collected(function: Differentiable, program: Program) -> bool:
    """Whether a derivative is with respect to arguments that the function collects."""
    kinds = {name: p.kind for name, p in function._specializer.signature.parameters.items()}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(kinds.get(name.partition(".")[0]) in variable for name in program.wrt_names)


def build_library(
    wanted: Sequence[ExportRequest],
    directory: str | os.PathLike[str],
    name: str,
    *,
    cpu: str = "x86-64-v2",
    blas: str = "builtin",
) -> Path:
    """Build one library of several functions; see `build`."""
    if identifier(name) != name:
        raise BadArgument(
            f"'{printable(name)}' cannot be the prefix of C functions.", "Use letters, digits and underscores."
        )
    if len(name) > _LONGEST:
        raise BadArgument(f"the name has {len(name)} letters, which no file may have.", f"Take {_LONGEST} at most.")
    if name in _MODULES:
        raise NameConflict(f"a module called '{name}' cannot be imported beside Python's own.", "Give another name.")
    library = _Library(name, processor(cpu))
    products = Products.of(blas)
    for each in wanted:
        library.add(each)
    return library.write(Path(directory), products)


def _refuse_print(functions: Iterable[Function]) -> None:
    """Refuse programs that write to Python's standard output, which the callers of a library need not have."""
    for function in functions:
        for stmt in statements(function.body):
            if isinstance(stmt, Effect) and stmt.call.func is print:
                raise BuildError(
                    "print writes by way of Python, and a library runs without it.",
                    "Leave print out; return what the caller shall see.",
                    stmt.origin,
                )


class _Library:
    """Collects the contents of one library."""

    def __init__(self, name: str, target: Processor) -> None:
        self.name, self.target = name, target
        self.errors = Errors()
        self.objects: list[NativeObject] = []
        self.entries: list[Entry] = []
        self.wrapped: list[Wrapped] = []
        self.about: list[dict[str, Any]] = []
        self.taken: set[str] = {name, f"{name}_strerror", f"{name}_abi"}

    def add(self, wanted: ExportRequest) -> None:
        """The derivatives of one function for one combination of types."""
        for mode in wanted.modes:
            if mode not in MODES:
                raise BadArgument(f"mode '{printable(mode)}' is unknown.", f"The modes are {', '.join(MODES)}.")
        wanted = replace(wanted, modes=tuple(dict.fromkeys(wanted.modes)))
        derived = Derived(wanted, readable=False)
        with derived.program.boundary("compiling"):
            self._add(wanted, derived)

    def _add(self, wanted: ExportRequest, derived: Derived) -> None:
        chosen = derived.program.wrt_names
        if "hvp" in wanted.modes and _is_collected(wanted.function, derived.program):
            raise BuildError(
                f"{', '.join(chosen)}: there is no Hessian product by arguments that a function collects (*args).",
                "Build the other modes, or name the arguments.",
            )
        if len(set(chosen)) < len(chosen):
            raise BadArgument(f"{', '.join(chosen)}: wrt names an argument twice.", "Name each once.")
        base = self._base(name_of(wanted.function))
        entries: dict[str, Entry] = {}
        hessian: tuple[int, ...] = ()
        recorded: dict[Var, str] = {}
        for role, form, function in zip(_roles(wanted.modes), derived.forms, derived.checked(), strict=True):
            _refuse_print([form.function, *routines_of(form.program, form.function, compiled=True).values()])
            interface = _Interface(base, role, derived, form, function, recorded)
            entry = self._compiled(base, derived, form, function, interface.entry())
            if role == "record":
                recorded = interface.names
            self.entries.append(entry)
            entries[role] = entry
            if role == "hvp":
                places = {position: k for k, (position, _) in _hessian_places(derived, form.program).items()}
                hessian = tuple(places[k] for k in range(len(places)))
        lowered = derived.program.lowered
        public = base.removeprefix(f"{self.name.rstrip('_')}_")
        self.wrapped.append(Wrapped(derived, public, entries, hessian))
        self.about.append(
            {
                "function": derived.owner.function.__qualname__,
                "arguments": wanted.signature,
                "wrt": list(derived.program.wrt_names),
                "modes": list(wanted.modes),
                "primal": lowered.digest,
            }
        )

    def _base(self, name: str) -> str:
        """The prefix of the names of a function; no other function has the same."""
        refused: set[str] = set()
        while True:
            base = identifier(f"{self.name}_{name}", refused)
            names = {base, *(f"{base}_{what}" for what in _SUFFIXES)}
            if not names & self.taken:
                self.taken |= names
                return base
            refused.add(base)

    def _compiled(self, base: str, derived: Derived, form: Form, function: Function, entry: Entry) -> Entry:
        """The C function with the machine code that it calls."""
        decorator = decorator_text(fastmath=derived.options.fastmath)
        last = function.body[-1]
        assert isinstance(last, Return)
        results = [value.type for value in last.values]
        returned = Return(tuple(map(_of_its_dtype, last.values)), last.origin)
        function = replace(function, body=(*function.body[:-1], returned), defaults=())
        # results of a pullback have the names of arguments of its record, whose sizes are not passed to it
        given = {parameter.name for parameter in entry.given} if entry.kind == "call" else set()
        function, rooms = with_output_buffers(
            function, [k for k, each in enumerate(entry.results) if each.like in given]
        )
        with deep():
            modules, routines = form.program.lowered.modules, derived.routines
            source = emit(function, modules=modules, header="", decorator=decorator, routines=routines)
        content = hashlib.sha256((source.text + self.target.name + base).encode()).hexdigest()
        symbol = f"tg_{content[:24]}"
        types = [param.type for param in function.params]
        self.objects.append(native_object(source, types, results, symbol, self.errors, self.target))
        return replace(entry, symbol=symbol, rooms=rooms)

    def write(self, directory: Path, products: Products) -> Path:
        """Write the files."""
        about = {
            "generator": _GENERATOR,
            "name": self.name,
            "functions": self.about,
            "platform": sysconfig.get_platform(),
            "cpu": self.target.name,
            "features": list(self.target.features),
            "blas": products.name,
            "errors": {str(number): f"{kind}: {text}" for number, kind, text in self.errors.items()},
        }
        lines = [
            f"{each['function']}({each['arguments']}), derivatives with respect to {', '.join(each['wrt'])}"
            for each in self.about
        ]
        description = json.dumps(about, indent=2) + "\n"
        native = "".join(each.symbol for each in self.objects)
        abi = hashlib.sha256((description + native).encode()).hexdigest()[:8]
        texts = {
            f"{self.name}.json": description,  # first: it marks the other files as ours
            f"{self.name}.h": header(self.name, self.entries, lines, abi),
            f"{self.name}.py": wrapper(self.name, self.wrapped, abi),
        }
        needed = {name for each in self.objects for name in each.needs}
        text = products.text(needed)
        c_text = implementation(self.name, self.entries, self.errors, self.target.features, products=text)
        _refuse_foreign(directory, self.name, (f"lib{self.name}.so", *texts))
        code = link(c_text, (f"{self.name}.h", texts[f"{self.name}.h"]), self.objects, products.flags)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            publish(directory / f"lib{self.name}.so", code, 0o755)
            for file, text in texts.items():
                publish(directory / file, text.encode(), 0o644)
        except (OSError, ValueError) as error:
            raise BuildError(
                f"{printable(str(directory))} cannot be written: {printable(str(error))}.", "Give another directory."
            ) from None
        return directory / f"{self.name}.py"


_GENERATOR = "tapegen"


def _refuse_foreign(directory: Path, name: str, files: Iterable[str]) -> None:
    """Raise BuildError where a file would overwrite one that is no part of a library; the .json lists them."""
    try:
        about = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
        ours = isinstance(about, dict) and about.get("generator") == _GENERATOR and about.get("name") == name
    except (OSError, ValueError):
        ours = False
    found = [] if ours else [file for file in files if os.path.lexists(directory / file)]
    if found:
        raise BuildError(
            f"{printable(str(directory / found[0]))} exists, and is no part of a library that tapegen has built.",
            "Give another directory or another name, or remove it first.",
        )


def _roles(modes: Sequence[str]) -> Iterator[str]:
    for mode in modes:
        yield from ("record", "pullback") if mode == "split" else (mode,)


# of C functions and types, and of the functions of the module
_SUFFIXES = (
    *("value", "grad", "jvp", "hvp", "record", "pullback", "tape", "tape_free"),
    *("value_and_grad", "vjp"),
)

_DOC = {
    "value": "The value.",
    "grad": "The value and its gradient.",
    "jvp": "The value and its derivative along a direction.",
    "hvp": "The gradient and the product of the Hessian with a direction.",
    "record": "The value, and a tape for the function below; free it afterwards.",
    "pullback": "Cotangents of the arguments for cotangents of the value; a tape serves any number of calls.",
}


class _Interface:
    """The C function of one derivative kind: names of parameters and results, and where they come from.

    `recorded` holds the names that the arguments have in the first function of a pair.
    """

    def __init__(
        self, base: str, role: str, derived: Derived, form: Form, function: Function, recorded: Mapping[Var, str]
    ) -> None:
        self.base, self.role, self.derived, self.form, self.function = base, role, derived, form, function
        self.program, self.recorded = form.program, recorded
        self.params: dict[Var, Param] = {param.var: param for param in self.program.lowered.params}
        self.names: dict[Var, str] = {}
        self.taken: set[str] = set()

    def entry(self) -> Entry:
        """The C function, without the machine code that it calls."""
        last = self.function.body[-1]
        assert isinstance(last, Return)
        stages = self.program.stages(scalar=False) if self.role in ("record", "pullback") else None
        kind: Any = self.role if stages is not None else "call"
        count = 0
        if self.role == "record":
            assert stages is not None
            count = len(last.values) - len(stages.kept)
        elif self.role == "pullback":
            assert stages is not None
            count = len(stages.kept)
        parameters = tuple(self._parameter(k, var, count) for k, var in enumerate(self.function.params))
        results = tuple(self._results(last.values))
        marks = stages is not None and _writes_into(stages.pullback, stages.kept)
        return Entry(
            *(f"{self.base}_{self.role}", _DOC[self.role], "", parameters, results),
            *(kind, count, f"{self.base}_tape", marks),
        )

    def _name(self, text: str, type_: Any) -> str:
        """A free name for C, whose derived names in the interface are free too."""
        refused: set[str] = set()
        while True:
            name = identifier(text, self.taken | refused)
            names = {name}
            if isinstance(type_, Array):
                names |= {f"{name}_shape", *(f"{name}_{what}{axis}" for what in "ns" for axis in range(type_.rank))}
            if not names & self.taken:
                self.taken |= names
                return name
            refused.add(name)

    def _parameter(self, k: int, var: Var, count: int) -> Parameter:
        if self.role == "pullback" and k < count:
            return Parameter(f"kept_{k}", var.type)
        name = self.names[var] = self._name(var.name, var.type)
        found = self.params.get(var)
        if found is not None:
            written = var.name in self.program.mutated
            held = self._stored_value(found)
            if written and held is not None:
                raise BuildError(
                    f"the function writes into '{printable(found.argument)}', which would be part of the library.",
                    "Make it an argument.",
                    self.program.lowered.function.origin,
                )
            return Parameter(name, var.type, written, held)
        is_array = isinstance(var.type, Array)
        if self.role == "pullback":
            return Parameter(name, var.type, like=str(self._active()[k - count]) if is_array else None)
        if self.role in ("jvp", "hvp"):
            of = dict(self.form.given)[var]
            return Parameter(name, var.type, like=self.names[of] if of is not None and is_array else None)
        return Parameter(name, var.type, value=np.ones(()) if is_array else 1.0)  # the cotangent of the objective

    def _stored_value(self, param: Param) -> Any:
        """The value of a parameter that is part of the library; None for one that the caller passes."""
        if param.getter is not None:
            value = param.getter()
        elif param.argument in self.derived.bound:
            value = self.derived.part(param.argument, param.path)
        else:
            return None
        if isinstance(value, np.ndarray) and not (value.flags.c_contiguous or value.flags.f_contiguous):
            return np.ascontiguousarray(value)
        return value

    def _active(self) -> list[int]:
        """Positions of the results that are differentiated, in the order of their cotangents or tangents."""
        flags = self.program.selection.active_results(scalar=self.role == "grad")
        return [k for k, active in enumerate(flags) if active]

    def _results(self, values: Sequence[Expr]) -> Iterator[Result]:
        wrt = self.program.wrt_vars()
        lowered = self.program.lowered.function.body[-1]
        assert isinstance(lowered, Return)
        count = len(lowered.values)
        if self.role == "pullback":
            for var in wrt:
                like = self.recorded[var] if isinstance(var.type, Array) else None
                yield Result(self._name(f"{var.name}_bar", var.type), var.type, like)
            return
        likes: dict[int, Var] = {}
        if self.role == "hvp":
            likes = {k: var for k, (_, var) in _hessian_places(self.derived, self.program).items()}
        names: list[str] = []
        for k, value in enumerate(values[:count]):
            base = value.name if isinstance(value, Var) else "value"
            if k in likes:
                base = f"{likes[k].name}_bar"
            names.append(self._name(base, value.type))
            yield Result(names[-1], value.type, self.names.get(likes[k]) if k in likes else None)
        for k, value in enumerate(values[count:]):
            if self.role == "record":  # with the type that the pullback accepts
                yield Result(f"kept_{k}", self.program.stages(scalar=False).kept[k].type)
            elif self.role == "grad":
                like = self.names.get(wrt[k])
                yield Result(self._name(f"{wrt[k].name}_bar", value.type), value.type, like)
            else:
                position = self._active()[k]
                like = self.names.get(likes[position]) if position in likes else None
                base = f"{likes[position].name}_hvp" if position in likes else f"{names[position]}_dot"
                yield Result(self._name(base, value.type), value.type, like)


def _of_its_dtype(value: Expr) -> Expr:
    """A result as the C function reads it: numba computes some single-precision scalars in double."""
    if isinstance(value.type, Scalar) and value.type.dtype in ("float32", "complex64"):
        return Call(getattr(np, value.type.dtype), (value,), (), value.type)
    return value


def _writes_into(function: Function, kept: Sequence[Var]) -> bool:
    """Whether a pullback may write into its arguments; the items of a list have no names."""
    if any(isinstance(var.type, ListOf) and isinstance(var.type.item, Array) for var in kept):
        return True
    return bool(effects_of(function).mutated_params.intersection(var.name for var in kept))


def _hessian_places(derived: Derived, program: Program) -> dict[int, tuple[int, Var]]:
    """For the results of a gradient: which argument of `wrt` each belongs to, and its parameter there."""
    own = {(param.argument, param.path): param.var for param in program.lowered.params}
    places = {param.var: (param.argument, param.path) for param in derived.program.lowered.params}
    wrt = derived.program.wrt_vars()
    templates = derived.program.gradient_templates
    output = program.lowered.output
    outputs = [output] if len(templates) == 1 else output.children
    found: dict[int, tuple[int, Var]] = {}
    for got, template in zip(outputs, templates, strict=True):
        for slot, like in zip(leaves_of(got), leaves_of(template), strict=True):
            if isinstance(slot, Slot) and isinstance(like, Slot):
                found[slot.index] = (like.index, own[places[wrt[like.index]]])
    return found
