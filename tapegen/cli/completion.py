"""`tapegen completion`: shell scripts that complete commands, options, files and functions."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

EXAMPLES = """\
examples:
  tapegen completion bash > ~/.local/share/bash-completion/completions/tapegen
  tapegen completion zsh > ~/.zfunc/_tapegen             with ~/.zfunc in fpath
  tapegen completion fish > ~/.config/fish/completions/tapegen.fish
"""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """The arguments of the command."""
    parser = commands.add_parser(
        "completion",
        help="print a script with which a shell completes this command",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(_SCRIPTS))
    parser.set_defaults(run=lambda options: run(options, commands))


def run(options: argparse.Namespace, commands: argparse._SubParsersAction) -> int:
    """Print the script."""
    print(script(options.shell, commands))
    return 0


def script(shell: str, commands: argparse._SubParsersAction) -> str:
    """The script for a shell; it contains the commands and options of this version."""
    return "\n".join(_SCRIPTS[shell](commands))


def _helps(commands: argparse._SubParsersAction) -> dict[str, str]:
    return {action.dest: action.help or "" for action in commands._choices_actions}


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in parser._actions if action.option_strings)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """The possible values of the positional arguments."""
    found = (action for action in parser._actions if not action.option_strings)
    return [str(choice) for action in found for choice in action.choices or ()]


def _bash(commands: argparse._SubParsersAction) -> Iterator[str]:
    yield "# `tapegen completion bash` made this."
    yield "_tapegen() {"
    yield '    local line="${COMP_LINE:0:COMP_POINT}" options="" choices=""'
    yield '    local current="${line##*[[:space:]]}"'
    yield '    local before="${line%"$current"}"'
    yield '    before="${before%"${before##*[![:space:]]}"}"'
    yield '    before="${before##*[[:space:]]}"'
    yield "    COMPREPLY=()"
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'        COMPREPLY=($(compgen -W {shlex.quote(" ".join([*commands.choices, "--help"]))} -- "$current"))'
    yield "        return"
    yield "    fi"
    yield '    case "${COMP_WORDS[1]}" in'
    for name, parser in commands.choices.items():
        words = " ".join(option for action in _options(parser) for option in action.option_strings)
        yield f"    {name})"
        yield f"        options={shlex.quote(words)} choices={shlex.quote(' '.join(_words(parser)))}"
        yield '        case "$before" in'
        for action in _options(parser):
            if action.choices:
                values = shlex.quote(" ".join(map(str, action.choices)))
                yield f"        {'|'.join(action.option_strings)}) choices={values} ;;"
        yield "        esac ;;"
    yield "    esac"
    yield '    if [[ "$current" == -* ]]; then'
    yield '        COMPREPLY=($(compgen -W "$options" -- "$current"))'
    yield '    elif [ -n "$choices" ]; then'
    yield '        COMPREPLY=($(compgen -W "$choices" -- "$current"))'
    yield '    elif [[ "$current" == *::* ]]; then'
    yield '        local file="${current%%::*}" start=""'
    yield '        [[ "$COMP_WORDBREAKS" == *:* ]] || start="$file::"'
    yield ('        local names="$(sed -n \'s/^def \\([A-Za-z_][A-Za-z_0-9]*\\).*/\\1/p\' -- "$file" 2> /dev/null)"')
    yield '        COMPREPLY=($(compgen -P "$start" -W "$names" -- "${current##*::}"))'
    yield "    else"
    yield "        compopt -o filenames 2> /dev/null"
    yield "        local IFS=$'\\n'"
    yield '        COMPREPLY=($(compgen -f -- "$current"))'
    yield "    fi"
    yield "}"
    yield "complete -F _tapegen tapegen"


def _zsh(commands: argparse._SubParsersAction) -> Iterator[str]:
    helps = _helps(commands)
    yield "#compdef tapegen"
    yield "# `tapegen completion zsh` made this."
    yield "_tapegen() {"
    yield "    local -a commands"
    yield "    if (( CURRENT == 2 )); then"
    yield "        commands=("
    yield from (f"            {shlex.quote(f'{name}:{helps[name]}')}" for name in commands.choices)
    yield "        )"
    yield "        _describe command commands"
    yield "        return"
    yield "    fi"
    yield "    shift words"
    yield "    (( CURRENT-- ))"
    yield '    case "${words[1]}" in'
    for name, parser in commands.choices.items():
        words = " ".join(_words(parser))
        specs = [f"*:value:({words})" if words else "*:file:_files"]
        for action in _options(parser):
            text = (action.help or "").replace("[", "(").replace("]", ")").replace(":", "\\:")
            values = f"({' '.join(map(str, action.choices))})" if action.choices else "_files"
            taken = "" if action.nargs == 0 else f":value:{values}"
            specs += [f"{option}[{text}]{taken}" for option in action.option_strings]
        yield f"    {name}) _arguments {' '.join(map(shlex.quote, specs))} ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _tapegen ]; then _tapegen "$@"; else compdef _tapegen tapegen; fi'


def _fish(commands: argparse._SubParsersAction) -> Iterator[str]:
    helps = _helps(commands)
    yield "# `tapegen completion fish` made this."
    for name, parser in commands.choices.items():
        yield f"complete -c tapegen -f -n __fish_use_subcommand -a {name} -d {_fish_text(helps[name])}"
        within = f"complete -c tapegen -n '__fish_seen_subcommand_from {name}'"
        if words := _words(parser):
            yield f"{within} -f -a {_fish_text(' '.join(words))}"
        for action in _options(parser):
            named = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
            values = f" -x -a {_fish_text(' '.join(map(str, action.choices)))}" if action.choices else " -r"
            taken = "" if action.nargs == 0 else values
            yield f"{within} {named}{taken} -d {_fish_text(action.help or '')}"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
