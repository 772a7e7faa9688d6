"""The commands. Offline commands call the same core as the server."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Imported here: a Ctrl-C can arrive while the modules are loaded.
        from webhook.cli.root import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


def complete_for_kubectl() -> None:
    """Print completions for `kubectl placement`."""
    from webhook.cli.root import complete_for_kubectl as run

    run()


__all__ = ["complete_for_kubectl", "main"]
