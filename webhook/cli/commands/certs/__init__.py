"""The command `certs`: issue, register, rotate and check certificates."""

from webhook.cli.commands.certs.certs_group import certs

__all__ = ["certs"]
