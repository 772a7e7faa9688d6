"""HOST:PORT as the value of an option."""

from typing import Any

import click

from webhook.settings import Address, parse_address


class AddressType(click.ParamType[Address]):
    """HOST:PORT on the command line."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """Return the address. Raise a usage error for an invalid one."""
        if isinstance(value, Address):
            return value
        try:
            return parse_address(value)
        except ValueError as error:
            self.fail(f'"{value}" {error}', param, ctx)
