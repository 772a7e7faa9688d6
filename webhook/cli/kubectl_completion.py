"""Completions for kubectl: `kubectl placement <TAB>` runs `kubectl_complete-placement`."""

import os
import sys

from click.shell_completion import ShellComplete

from webhook.cli.program import COMPLETION_VARIABLE, PLUGIN
from webhook.cli.root import root
from webhook.cli.terminal import echo, echo_fields

# Source: github.com/spf13/cobra, ShellCompDirective
_FILES, _NO_FILES = ":0", ":4"


def complete(arguments: list[str]) -> None:
    """Print the completions of the last argument in the format of cobra.

    Source: k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go
    """
    *before, incomplete = arguments or [""]
    found = ShellComplete(root, {}, PLUGIN, COMPLETION_VARIABLE).get_completions(before, incomplete)
    for item in found:
        if item.type == "plain":
            echo_fields(str(item.value), *([item.help] if item.help else []))
    echo(_FILES if any(item.type in ("file", "dir") for item in found) else _NO_FILES)


def main() -> None:
    """Complete the arguments of the process."""
    # A traceback would be printed into the command line of the user. Without an answer kubectl completes nothing.
    try:
        complete(sys.argv[1:])
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt):
        os._exit(1)
