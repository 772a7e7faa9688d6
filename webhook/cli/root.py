"""The command `placement-webhook`: its sub-commands, and how what goes wrong is said.

Exit codes: 0 done, 1 an unexpected fault, 2 bad usage or input; `check` adds 3 and 4, `mutate` adds 5.
"""

import io
import os
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module

import click

from webhook import __version__
from webhook.cli.terminal import say, say_lines
from webhook.kube.field import InvalidInput

# The text that --help and the shell's completion show for each command. The command NAME is the function NAME of the
# module webhook.cli.NAME, which is imported when the command runs: the offline commands do not wait for the server's
# imports.
COMMANDS: Mapping[str, str] = {
    "audit": "Read the audit log: list, show, summary, verify.",
    "certs": "Issue, register and examine the webhook's certificates.",
    "check": "Say which node could take a pod, and why the others could not.",
    "demo": "See the main job end to end on a sample cluster, over real TLS.",
    "mutate": "Show what the webhook would make of pods.",
    "policy": "Check a policy file, print its JSON schema or the policy in force.",
    "serve": "Serve the admission webhook over TLS.",
    "snapshot": "Write a running cluster into a cluster file.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command's name."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command, imported."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"webhook.cli.{cmd_name}"), cmd_name)
        command.short_help = COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in --help, which needs no import."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog='Shell completion (or zsh, fish): eval "$(_PLACEMENT_WEBHOOK_COMPLETE=bash_source placement-webhook)"',
)
@click.version_option(__version__, "-V", "--version", prog_name="placement-webhook", message="%(prog)s %(version)s")
def root() -> None:
    """Place GPU training and inference pods at admission.

    Injects affinity, tolerations, bin-packing hints and the scheduler by the pods' annotations, and says beforehand
    whether a node can take them.
    """


def _show(error: click.ClickException) -> None:
    """Print the error as click does, its message on one line: it may quote an API server, or a file's name."""
    shown = io.StringIO()
    error.show(shown)
    usage, label, message = shown.getvalue().removesuffix("\n").partition("Error: ")
    say_lines(usage, err=True)
    say(label + message, err=True)


def main() -> None:
    """Run the command line and exit with its code."""
    output = sys.stdout
    try:
        code = root.main(standalone_mode=False, prog_name="placement-webhook")
        sys.stdout.flush()
    except InvalidInput as error:
        for each in error.errors:
            say(f"Error: {each}", err=True)
        code = 2
    except click.ClickException as error:
        _show(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted.", err=True)
        code = 130
    except (BrokenPipeError, SystemExit) as error:
        # click answers a broken pipe by muffling stdout and SystemExit; that of the shell's completion is meant.
        if isinstance(error, SystemExit) and sys.stdout is output:
            raise
        # Whoever read our output has enough (`| head`). Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception:
        say_lines(traceback.format_exc(), err=True)
        say("Error: an unexpected fault in placement-webhook itself; please report what is above.", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
