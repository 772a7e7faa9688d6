"""`report`: write the pages of the console for one moment into one file."""

from pathlib import Path

import click

from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import PATH, file_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.cli.output.terminal import echo
from webhook.serving.clock import rfc3339_now


@click.command()
@with_session(
    cluster_option,
    live_options,
    policies_option,
    scheduler_options,
    file_option("--audit", multiple=True, help="Audit files for the page Admissions."),
    click.option("-o", "--output", "path", required=True, type=PATH, metavar="FILE.html", help="The file to write."),
    needs_pods=False,
)
def report(session: Session, audit: tuple[str, ...], path: Path) -> int:
    """Write the pages of `console` for this moment into one file, which needs no network, such as for a ticket.

    It names the nodes, the namespaces and the pods of the cluster; `snapshot --hash-names` writes a cluster file with
    other names, and --cluster reads it.

    \b
    Examples:
      placement-webhook report -o report.html
      placement-webhook report --cluster cluster.json -o report.html
    """
    # Imported here, so that --help does not import the server.
    from placement_console.page import fixed_sources
    from placement_console.report_file import report_of

    check_writable(path, "--output")
    content = report_of(fixed_sources(session, audit), rfc3339_now())
    write_atomically(path, "--output", lambda file: file.write(content))
    echo(f"{path}: {len(content) / 1024:,.0f} KiB", err=True)
    return 0
