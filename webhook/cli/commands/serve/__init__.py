"""The command `serve`: its options, and the code that starts the server."""

from webhook.cli.commands.serve.serve_command import serve

__all__ = ["serve"]
