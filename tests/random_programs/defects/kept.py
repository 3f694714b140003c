"""Defects of what is kept on disk and found again: keys of programs and of machine code, entries."""

from __future__ import annotations

from tapegen.backend.cache import derived_programs
from tapegen.backend.cache.derived_programs import Place
from tapegen.backend.cache.machine_code import MachineCodeCache
from tapegen.backend.cache.store import Store
from tapegen.ir import fingerprint
from tapegen.ir.fingerprint import _Writer as Writer
from tests.random_programs.defects.switch import edit, likely

KEYS = likely(
    "tests/backend/test_cache_keys.py",
    edit(
        "numbers are written with six digits",
        Writer,
        "__call__",
        ("self.put(value.hex())", 'self.put(f"{value:.6g}")'),
        in_text=False,
    ),
    edit(
        "types are no part of the key",
        Writer,
        "__call__",
        ('f"Var({value.name!r},{value.type!r})"', 'f"Var({value.name!r})"'),
        in_text=False,
    ),
    edit(
        "sets are written in the order of their hashes",
        Writer,
        "__call__",
        ("','.join(sorted(parts))", "','.join(parts)"),
        in_text=False,
    ),
    edit(
        "a number of NumPy is written without its dtype",
        fingerprint,
        "_named",
        ('return f"{value.dtype.str}:{value.tobytes().hex()}"', 'return f"{value}"'),
        in_text=False,
    ),
    edit(
        "a complex number is written without its imaginary part",
        fingerprint,
        "_named",
        ("complex({value.real.hex()},{value.imag.hex()})", "complex({value.real.hex()})"),
        in_text=False,
    ),
    edit("slices are written without their step", fingerprint, "_named", (",{value.step!r})", ")"), in_text=False),
    edit(
        "a function of the user is written by its name",
        fingerprint,
        "_named",
        ('module.partition(".")[0] in _STABLE and _found(module, name or "") is value', "True"),
        in_text=False,
    ),
    edit(
        "a routine is written without its body",
        Writer,
        "__call__",
        ("self((value.name, value.function, [sorted(shared) for shared in value.shares]))", "self(value.name)"),
        in_text=False,
    ),
    edit(
        "what is wanted is no part of the key",
        Place,
        "__init__",
        (", *_rules(), *parts)", ", *_rules())"),
        in_text=False,
    ),
    edit(
        "rules of users are no part of the key", derived_programs, "_rules", ("raise NoDigest", "pass"), in_text=False
    ),
    edit(
        "a file that the key does not speak of is kept",
        Place,
        "_encoded",
        ("if len(self.places.files) > self.files:", "if False:"),
        in_text=False,
    ),
    edit(
        "an exception class that is not there is kept as None",
        Place,
        "_decoded",
        ("if None in namespace.values():", "if False:"),
        in_text=False,
    ),
    edit(
        "cotangents that are kept come back without their unit axes",
        derived_programs,
        "_type_in",
        ("tuple(unit))", ")"),
        in_text=False,
    ),
    edit(
        "places are counted from the beginning of the file",
        fingerprint.Places,
        "span",
        ("line, end_line = line + self.line, end_line + self.line", "pass"),
        in_text=False,
    ),
    edit(
        "settings of numba are no part of the key",
        MachineCodeCache,
        "key",
        ('"\\n".join(settings), "\\n".join(given)', '"\\n".join(given)'),
        in_text=False,
    ),
    edit(
        "settings of the compiler below are no part of the key",
        MachineCodeCache,
        "key",
        ('"\\n".join(settings), "\\n".join(given)', '"\\n".join(settings)'),
        in_text=False,
    ),
    edit(
        "types of arguments are no part of the key",
        MachineCodeCache,
        "key",
        ("*texts, *types_, *target", "*texts, *target"),
        in_text=False,
    ),
    edit(
        "the options of a text are no part of the key",
        MachineCodeCache,
        "key",
        ("source.overlapping, self.from_start, ", ""),
        in_text=False,
    ),
)

ENTRIES = likely(
    "tests/backend/test_cache.py",
    edit(
        "damaged entries are read",
        Store,
        "_read",
        ("if text[:_HEAD] != _head(key, payload):", "if False:"),
        in_text=False,
    ),
    edit("entries that others can write are read", Store, "_read", (" or found.st_mode & 0o022", ""), in_text=False),
    edit("links are followed", Store, "_read", (" | os.O_NOFOLLOW", ""), in_text=False),
    edit(
        "a directory that others can write into is used",
        Store,
        "_check_folder",
        ("if found.st_mode & 0o022:", "if False:"),
        in_text=False,
    ),
    edit(
        "entries appear in parts",
        Store,
        "_publish",
        ('f".{key[:16]}-{os.urandom(8).hex()}"', "key"),
        (" | os.O_EXCL", ""),
        in_text=False,
    ),
    edit(
        "what was used last goes first",
        Store,
        "_prune",
        ("key=lambda each: each.used)", "key=lambda each: -each.used)"),
        in_text=False,
    ),
    edit("the newest entry goes", Store, "_prune", ("if each.path.name != newest:", "if True:"), in_text=False),
    edit("unfinished files stay", Store, "_prune", ("> _ABANDONED", "> 1e18"), in_text=False),
    edit("entries that are read count as not used", Store, "_read", ("os.utime(path)", "pass"), in_text=False),
)

DEFECTS = (*KEYS, *ENTRIES)
