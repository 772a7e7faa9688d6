"""The command `placement-webhook`: its subcommands and the output of errors.

Exit codes: 0 done, 1 an internal error, 2 bad usage or input; `check` adds 3 and 4, `mutate` adds 5, `policy test` 6,
`replay` 7.
"""

import gc
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib import import_module

import click
from click.shell_completion import CompletionItem, ShellComplete

from webhook import __version__
from webhook.cli.output.program import COMPLETION_VARIABLE, NAME, PLUGIN, SuggestingGroup, name, with_program_name
from webhook.cli.output.terminal import OutputError, discard_output, echo, echo_fields, echo_lines, prepare_streams
from webhook.documents.field import InvalidInput

# The text of each command in --help and shell completion. The command NAME is the function NAME in
# webhook.cli.commands.NAME, or in that of a package below, which is imported when the command runs: offline commands do
# not import the server.
COMMANDS: Mapping[str, str] = {
    "allowed": "Print what the pods of a namespace may use.",
    "audit": "Read the audit log: list, show, summary, verify, export.",
    "capacity": "Report how many more of each pod fit, and what stops the next one.",
    "certs": "Issue, register and check the certificates of the webhook.",
    "check": "Report which node can take a pod, and why the others cannot.",
    "console": "Serve a web page about the cluster on loopback.",
    "demo": "Run the main job end to end on a sample cluster, over real TLS.",
    "explain": "Print what was injected into a pod, and why it waits.",
    "missed": "List pods that were stored while the webhook was away.",
    "doctor": "Report what is wrong with an installation, and how to mend it.",
    "mutate": "Print pods as the webhook would admit them.",
    "nodes": "Print the cards of each pool and product, free or not.",
    "policy": "Check, test or export a policy, print it or the JSON schema.",
    "reclaim": "Report cards that are held and not used, and what frees them.",
    "report": "Write the pages of the console into one file.",
    "replay": "Report what another policy would decide on recorded admissions.",
    "serve": "Serve the admission webhook over TLS.",
    "simulate": "Run a trace of pods in virtual time, by policy and profile.",
    "snapshot": "Write a running cluster to a cluster file.",
    "version": "Print the version and what it models.",
}
PACKAGES: Mapping[str, str] = {
    "capacity": "placement_planner",
    "console": "placement_console",
    "doctor": "placement_doctor",
    "nodes": "placement_planner",
    "reclaim": "placement_reclaim",
    "replay": "placement_planner",
    "report": "placement_console",
    "simulate": "placement_planner",
}
"""The package in `packages/` that has the command NAME in its module `cli.NAME`."""

# Source: github.com/spf13/cobra, ShellCompDirective
_FILES, _NO_FILES = ":0", ":4"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a folder in memory that containers have


class LazyGroup(SuggestingGroup):
    """A group that imports the module of a command on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return the command."""
        if cmd_name not in COMMANDS:
            return None
        # Imports create objects that stay, and collections take an eighth of their time.
        gc.disable()
        try:
            folder = f"{PACKAGES[cmd_name]}.cli" if cmd_name in PACKAGES else "webhook.cli.commands"
            command: click.Command = getattr(import_module(f"{folder}.{cmd_name}"), cmd_name)
        finally:
            gc.freeze()
            gc.enable()
        return with_program_name(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of --help without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing the commands, or a flag."""
        names = [
            CompletionItem(name, help=COMMANDS[name]) for name in self.list_commands(ctx) if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f'Shell completion (or zsh, fish): eval "$({COMPLETION_VARIABLE}=bash_source {NAME})"',
)
@click.version_option(__version__, "-V", "--version", prog_name="placement-webhook", message="%(prog)s %(version)s")
def root() -> None:
    """Place GPU training and inference pods at admission.

    Injects affinity, tolerations, bin-packing hints and the scheduler as the annotations of pods request, and predicts
    whether a node can take them.
    """


def _show(error: click.ClickException) -> None:
    """Print the error as click does, but on one line. Its message can quote an API server or a file name."""
    shown = io.StringIO()
    error.show(shown)
    usage, label, message = shown.getvalue().removesuffix("\n").partition("Error: ")
    echo_lines(usage, err=True)
    echo(label + message, err=True)


def main() -> None:
    """Run the command line and exit with its code."""
    prepare_streams()
    _choose_temporary_folder()
    output = sys.stdout
    try:
        code = _run()
    except (click.Abort, KeyboardInterrupt):
        # The reader of the output may be waiting for the user, as a pager is.
        discard_output()
        echo("Interrupted.", err=True)
        code = 130
    except OutputError as error:
        discard_output()
        echo(f"Error: standard output cannot be written: {error}", err=True)
        code = 1
    except (BrokenPipeError, SystemExit) as error:
        # click handles a broken pipe by replacing stdout and raising SystemExit. Only the SystemExit of shell
        # completion is raised again.
        if isinstance(error, SystemExit) and sys.stdout is output:
            raise
        # The reader has closed the pipe (`| head`). Without this, Python reports the error again in its last flush.
        discard_output()
        code = 0
    except Exception:
        echo_lines(traceback.format_exc(), err=True)
        echo("Error: internal error in placement-webhook; please report the traceback above.", err=True)
        code = 1
    sys.exit(code)


def _choose_temporary_folder() -> None:
    """Use memory for temporary files if no other folder can be written, as with `docker run --read-only`."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if os.access(_SHARED_MEMORY, os.W_OK):
            tempfile.tempdir = _SHARED_MEMORY


def _run() -> int:
    try:
        code = root.main(standalone_mode=False, prog_name=name(), complete_var=COMPLETION_VARIABLE)
    except InvalidInput as error:
        sys.stdout.flush()
        for each in error.errors:
            echo(f"Error: {each}", err=True)
        code = 2
    except click.ClickException as error:
        sys.stdout.flush()
        _show(error)
        code = error.exit_code
    except FileNotFoundError as error:
        # Python's error has neither a file name nor a type of its own.
        if error.filename is not None or tempfile.tempdir is not None:
            raise
        sys.stdout.flush()
        echo("Error: TMPDIR: no folder for temporary files can be written; set it to one that can", err=True)
        code = 1
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _print_completions(arguments: list[str]) -> None:
    """Print the completions of the last argument in the format of cobra.

    Source: k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go
    """
    *before, incomplete = arguments or [""]
    found = ShellComplete(root, {}, PLUGIN, COMPLETION_VARIABLE).get_completions(before, incomplete)
    for item in found:
        if item.type == "plain":
            echo_fields(str(item.value), *([item.help] if item.help else []))
    echo(_FILES if any(item.type in ("file", "dir") for item in found) else _NO_FILES)


def complete_for_kubectl() -> None:
    """Complete the arguments of the process, for `kubectl placement <TAB>`."""
    # A traceback would be printed into the command line of the user. Without an answer kubectl completes nothing.
    try:
        _print_completions(sys.argv[1:])
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt):
        os._exit(1)
