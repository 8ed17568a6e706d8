"""`angd completion`: a script with which a shell completes commands, tasks, recipes and options."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from angd.problems.library import TASKS
from angd.program.flow_catalogue import FLOWS
from angd.recipes.named import DENSITIES, FIELDS, RECIPES

SHELLS = ("bash", "zsh")
SCRIPT = """\
_angd() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
  case "${{COMP_WORDS[1]}}:${{COMP_WORDS[3]:-}}" in
{recipes}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "--help --out --seed --steps --seconds --cpu-seconds $options" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ]; then
    case "${{COMP_WORDS[1]}}" in
      run|compare|sweep) COMPREPLY=($(compgen -f -W "{tasks}" -- "$word")) ;;
      list) COMPREPLY=($(compgen -W "{names}" -- "$word")) ;;
      *) COMPREPLY=($(compgen -f -- "$word")) ;;
    esac
  elif [ "$COMP_CWORD" -eq 3 ]; then
    case "${{COMP_WORDS[2]}}" in
      vmc-*|*.xyz) COMPREPLY=($(compgen -f -W "{densities}" -- "$word")) ;;
      *) COMPREPLY=($(compgen -f -W "{fields}" -- "$word")) ;;
    esac
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _angd angd
"""


@dataclass(frozen=True)
class CompletionOptions:
    """angd completion bash|zsh: print a script that teaches a shell to complete words of angd.

    Put the line of an example into ~/.bashrc or ~/.zshrc.
    """

    examples: ClassVar[tuple[str, ...]] = (
        'eval "$(angd completion bash)"',
        'eval "$(angd completion zsh)"',
        "angd completion bash > ~/.local/share/bash-completion/completions/angd",
    )

    shell: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="bash|zsh")]
    """For which shell."""

    def check(self) -> None:
        """Refuse another shell."""
        if self.shell not in SHELLS:
            raise ValueError(f"The shell must be one of {', '.join(SHELLS)}, got {self.shell!r}.")


def run_completion(options: CompletionOptions) -> int:
    """Print it."""
    head = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
    print(head + script())
    return 0


def script() -> str:
    """For bash, or for zsh once it understands bash's."""
    here = sorted(path.name.removesuffix(".py") for path in Path(__file__).parent.glob("[a-z]*.py"))
    commands = [{"listing": "list"}.get(name, name) for name in here]
    own = "\n".join(f'    run:{name}|sweep:{name}) options="{_options(name)}" ;;' for name in RECIPES)
    words = {"tasks": TASKS, "densities": DENSITIES, "fields": FIELDS, "commands": commands}
    return SCRIPT.format(
        recipes=own,
        names=" ".join([*TASKS, *RECIPES, *FLOWS]),
        **{kind: " ".join(known) for kind, known in words.items()},
    )


def _options(name: str) -> str:
    """Those of a recipe, as one types them."""
    return " ".join(f"--{spec.name.replace('_', '-')}" for spec in fields(RECIPES[name].recipe))
