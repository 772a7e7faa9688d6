"""A TLS handshake with the endpoint succeeds."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, info
from webhook.doctor.installation import Installation, Probe
from webhook.doctor.source import Source


@check(
    "endpoint",
    "No endpoint of the webhook can be reached from this machine",
    "run doctor in the cluster, or `kubectl port-forward` and `--endpoint`; the check `answer` judges meanwhile",
    Source.CONFIGURATIONS,
    Source.PROBE,
    Source.TRIAL,
    Source.ENDPOINTS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if no server answers.

    API servers reach a Service that other machines do not, so it is an error only for a URL, or if the dry-run
    creation shows that they do not reach it either.
    """
    probes = installation.probes
    if not probes or any(map(_is_reached, probes)):
        return
    detail = next((each.detail for probe in probes for each in probe.called if each), "no address is known")
    addresses = ", ".join(dict.fromkeys(each.address for each in probes))
    trial = installation.trial
    is_injected = trial is not None and bool(installation.mark_on(trial.pod))
    what = f"{addresses}: not reachable from this machine ({detail})"
    if installation.is_called_by_service or is_injected:
        judged = "; the dry-run creation of a pod shows that API servers reach it" if is_injected else ""
        forwarded = commands.kubectl(installation, "port-forward", f"service/{installation.target.service}", "8443:443")
        remedy = f"{forwarded}, then `placement-webhook doctor --endpoint=localhost:8443`"
        yield info(f"{installation.place}: clientConfig", what + judged, remedy)
    else:
        yield error(f"{installation.place}: clientConfig.url", what, "start the webhook there, or correct the url")


def _is_reached(probe: Probe) -> bool:
    return any(each is not None and each.certificate is not None for each in probe.called)
