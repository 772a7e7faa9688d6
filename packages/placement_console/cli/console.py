"""`console`: serve a read-only web page about the cluster on loopback."""

import click

from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import AddressType, file_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.logs import configure_logs
from webhook.runtime.settings import Address

_LISTEN = Address("127.0.0.1", 8090)


@click.command()
@with_session(
    cluster_option,
    live_options,
    click.option("--in-cluster", is_flag=True, help="The live cluster of this pod."),
    policies_option,
    scheduler_options,
    file_option("--audit", multiple=True, help="Audit files for the page Admissions."),
    click.option(
        "--listen",
        type=AddressType(),
        default=_LISTEN,
        show_default=True,
        envvar="PLACEMENT_WEBHOOK_CONSOLE_LISTEN",
        show_envvar=True,
        help="An address of loopback, and a port.",
    ),
    needs_pods=False,
)
def console(session: Session, audit: tuple[str, ...], listen: Address) -> int:
    """Serve a web page that shows the cluster, the pods that wait and why, and what a manifest would get.

    The page only reads. It is on loopback and has no login: who can reach the port of this machine can read it. In a
    cluster, `kubectl port-forward` leads to it. It follows a live cluster; a file is shown as it is.

    \b
    Examples:
      placement-webhook console
      placement-webhook console --cluster cluster.json
      placement-webhook console --context staging --audit audit.jsonl
    """
    # Imported here, so that --help does not import the server.
    from placement_console.serving import serve_console

    configure_logs("auto", "info")
    serve_console(session, audit, listen)
    return 0
