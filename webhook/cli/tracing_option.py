"""The option `--otlp-endpoint`: trace the admissions of this process."""

from urllib.parse import urlsplit

import click

_TRACES_PATH = "/v1/traces"


def _start(ctx: click.Context, _: click.Parameter, endpoint: str | None) -> str | None:
    """Trace until the context of the command ends.

    Raises:
        click.BadParameter: the value is no URL of a collector.
        click.UsageError: OpenTelemetry is not installed.
    """
    if endpoint is None or ctx.resilient_parsing:
        return endpoint
    url = _traces_url(endpoint)
    try:
        # The image has the packages; another installation has them with the extra only.
        from webhook.serving.tracing import exporting
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"--otlp-endpoint needs the package of {error.name}: pip install 'placement-webhook[tracing]'."
        ) from error
    ctx.with_resource(exporting(url))
    return url


def _traces_url(endpoint: str) -> str:
    """Return the URL for traces. As OTEL_EXPORTER_OTLP_ENDPOINT, one without a path is that of a collector."""
    path = _path(endpoint)
    if path is None:
        raise click.BadParameter(f'"{endpoint}" must be an HTTP URL, such as http://collector:4318')
    return endpoint if path.strip("/") else f"{endpoint.rstrip('/')}{_TRACES_PATH}"


def _path(url: str) -> str | None:
    """Return the path of an HTTP URL; None for anything else."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts.path if is_http else None


otlp_option = click.option(
    "--otlp-endpoint",
    metavar="URL",
    default=None,
    expose_value=False,
    callback=_start,
    help="Trace admissions with OpenTelemetry, and export the spans over OTLP/HTTP to this collector.",
)
