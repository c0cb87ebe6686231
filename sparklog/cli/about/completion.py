"""``sparklog completion bash|zsh``: a script with which that shell completes commands, options and choices.

The script is made from the parsers of all commands, so it has what this release has. It starts no Python: a
key press costs nothing. zsh takes it by its own ``bashcompinit``.
"""

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparklog.cli.command import DONE, Command, build_parser
from sparklog.cli.registry import command_names, load_command
from sparklog.cli.values import directory

SHELLS: Final = ("bash", "zsh")

_ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"

_SCRIPT: Final = """\
_sparklog() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" at="" word before="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        case "$at/$before" in
            {takers}) before="" ;;
            *) case "$at/$word" in
                {places}) at="$at/$word"; before="" ;;
                *) before="$word" ;;
            esac ;;
        esac
    done
    COMPREPLY=()
    case "$at/$before" in
{values}
    esac
    local words=""
    case "$at" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _sparklog sparklog
"""
"""``at``: the place among commands, such as ``/topics/create``; ``before``: an option that awaits a value."""


@dataclass(slots=True)
class _Place:
    """What may be typed at one place among the commands."""

    words: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """By option that takes a value: how bash completes that."""


def shell_script(shell: str) -> str:
    """The script for ``shell``, one of SHELLS."""
    places = {"": _Place(["--help", "--version", *command_names()])}
    for name in command_names():
        places |= dict(_places(f"/{name}", build_parser(load_command(name))))
    takers = [f"{at}/{option}" for at, place in places.items() for option in place.values]
    script = _SCRIPT.format(
        takers=_pattern(takers),
        places=_pattern([at for at in places if at]),
        values="\n".join(
            f"        {_pattern([f'{at}/{option}'])}) {reply}; return ;;"
            for at, place in places.items()
            for option, reply in place.values.items()
        ),
        words="\n".join(
            f"        {_pattern([at])}) words={shlex.quote(' '.join(place.words))} ;;"
            for at, place in places.items()
        ),
    )
    return (_ZSH if shell == "zsh" else "") + script


def _places(at: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, _Place]]:
    """The place of a parser, and those of the parsers nested in it."""
    place = _Place()
    nested: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        options = [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action.choices, dict):
            nested = action.choices
        elif not action.option_strings and action.choices is not None:
            place.words += map(str, action.choices)
        if action.help != argparse.SUPPRESS:
            place.words += options
        if action.option_strings and action.nargs != 0:
            place.values |= dict.fromkeys(action.option_strings, _reply(action))
    place.words = [*nested, *place.words]
    yield at, place
    for name, parser_of_action in nested.items():
        yield from _places(f"{at}/{name}", parser_of_action)


def _reply(action: argparse.Action) -> str:
    """How bash completes the value of an option; nothing is offered for what only the user can know."""
    if action.choices is not None:
        return f'COMPREPLY=($(compgen -W "{" ".join(map(str, action.choices))}" -- "$cur"))'
    if action.type is directory:
        return 'COMPREPLY=($(compgen -d -- "$cur"))'
    return 'COMPREPLY=($(compgen -f -- "$cur"))' if action.type is Path else ":"


def _pattern(texts: list[str]) -> str:
    return "|".join(f'"{text}"' for text in texts)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    print(shell_script(arguments.shell), end="")
    return DONE


COMMAND: Final = Command(
    name="completion",
    summary="print a script with which bash or zsh completes commands and options",
    add_arguments=add_arguments,
    run=run,
    examples=(
        'eval "$(sparklog completion bash)"      in ~/.bashrc',
        'eval "$(sparklog completion zsh)"       in ~/.zshrc, behind compinit',
    ),
)
