"""Commands. The offline ones call the same core as the server."""

from webhook.cli.root import main

__all__ = ["main"]
