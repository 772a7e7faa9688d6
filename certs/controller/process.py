"""Run the certs controller as a process, until SIGTERM or SIGINT."""

import asyncio
import signal

from certs.controller.loop import Controller
from certs.controller.metrics import ControllerMetrics
from certs.controller.options import Options
from webhook.settings import Address
from webhook.watch.api_server import ClientConfig


def run_until_signalled(options: Options, admin: Address, source: ClientConfig) -> None:
    """Keep the objects of `options` in order, in the cluster of `source`.

    Raises:
        InvalidInput: the cluster or the address of the admin port is invalid.
    """
    asyncio.run(_run(options, source, admin))


async def _run(options: Options, source: ClientConfig, admin: Address) -> None:
    # A missing kubeconfig is an error of the caller. Later, an API server that is away is waited for.
    await source.configuration()
    stop, metrics = asyncio.Event(), ControllerMetrics()
    metrics.show_process()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Controller(options, source.connect, metrics).run(stop, admin)
