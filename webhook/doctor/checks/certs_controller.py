"""The certs controller runs, where it maintains the certificates."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from webhook.doctor import commands
from webhook.doctor.certificate_owner import Owner, controller_of, first_to_expire, owner_of
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, Severity, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of
from webhook.doctor.source import Source
from webhook.doctor.validity import expires_soon
from webhook.kube.documents import field

# A controller that was restarted so often, the last time so recently, keeps failing, unless it has been steady since.
_MOST_RESTARTS = 3
_RECENT = timedelta(hours=1)
_STEADY = timedelta(minutes=10)
_STARTING = ("ContainerCreating", "PodInitializing")


@check(
    "certs-controller",
    "The certs controller, which maintains Secret and caBundle, is missing, not ready or crash-looping",
    "`kubectl -n NAMESPACE logs deployment/placement-webhook-certs`; apply the manifests of deploy/ again",
    Source.CONFIGURATIONS,
    Source.DEPLOYMENTS,
    Source.CONTROLLER_PODS,
    Source.PROBE,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if nothing renews the certificate: an error if it expires soon, a warning if it lasts."""
    if not installation.knows(Source.DEPLOYMENTS):
        return
    controller, owner = controller_of(installation), owner_of(installation)
    if owner is Owner.CERT_MANAGER and controller is not None:
        remedy = commands.kubectl(installation, "delete", "deployment", commands.controller_name(installation))
        what = "runs beside cert-manager, which maintains the caBundle: the controller changes nothing"
        yield warning(f"Deployment {name_of(controller)}", what, remedy)
    if owner is not Owner.CONTROLLER:
        return
    severity, effect = _effect(installation)
    if controller is None:
        where = f"Deployment {installation.target.namespace}/{commands.CONTROLLER}"
        what = f"does not exist, though the certs controller wrote the caBundle: {effect}"
        yield Fault(severity, where, what, commands.applied_again(installation))
        return
    found = _not_running(installation, controller)
    if found is not None:
        path, what, remedy = found
        yield Fault(severity, f"Deployment {name_of(controller)}: {path}", f"{what}: {effect}", remedy)


def _effect(installation: Installation) -> tuple[Severity, str]:
    """Return what follows while no controller runs, and how severe it is."""
    served = first_to_expire(installation)
    if served is None:
        what = "nothing renews the certificate; `placement-webhook certs status` shows how long it lasts"
        return Severity.WARNING, what
    end = served.not_valid_after_utc
    days = (end - installation.now).days
    if end <= installation.now:
        return Severity.ERROR, "nothing renews the served certificate, which has expired"
    if expires_soon(served, installation.now):
        return Severity.ERROR, f"nothing renews the served certificate, which expires in {days} days"
    return Severity.WARNING, f"nothing renews the served certificate, which lasts {days} days, or repairs the caBundle"


def _not_running(installation: Installation, controller: JsonObject) -> tuple[str, str, str] | None:
    """Return the field, what is wrong with it, and the remedy; None if the controller runs."""
    name = commands.short_name(controller)
    if field(controller, "spec", "replicas") == 0:
        return "spec.replicas", "0", commands.kubectl(installation, "scale", "deployment", name, "--replicas=1")
    pods = installation.of(Source.CONTROLLER_PODS)
    crashed = next((text for pod in pods if (text := _crashes(pod, installation.now))), None)
    if crashed is not None:
        return "status.readyReplicas", crashed, _previous_log(installation, name)
    if field(controller, "status", "readyReplicas"):
        return None
    reason = next((text for pod in pods if (text := _waits(pod))), None)
    if reason is not None:
        described = commands.kubectl(installation, "describe", "pods", f"--selector={_selector(controller)}")
        return "status.readyReplicas", f"no replica is ready ({reason})", f"{described} has the events"
    return "status.readyReplicas", "no replica is ready", f"{commands.logs(installation)} has the reason"


def _crashes(pod: JsonObject, now: datetime) -> str | None:
    """Return how often and why the container of a pod ends, if it keeps doing so."""
    for each in listed(pod, "status", "containerStatuses"):
        restarts, code = each.get("restartCount"), field(each, "lastState", "terminated", "exitCode")
        ended = _time(field(each, "lastState", "terminated", "finishedAt"))
        often = isinstance(restarts, int) and restarts >= _MOST_RESTARTS and not _is_steady(each, now)
        if field(each, "state", "waiting", "reason") == "CrashLoopBackOff" or (
            often and ended is not None and now - ended < _RECENT
        ):
            return f"its container ends again and again ({restarts} restarts, the last with exit code {code})"
    return None


def _is_steady(status: JsonObject, now: datetime) -> bool:
    """Return whether a container is ready and has not ended for a while, as after an outage of the API server."""
    started = _time(field(status, "state", "running", "startedAt"))
    return status.get("ready") is True and started is not None and now - started >= _STEADY


def _waits(pod: JsonObject) -> str | None:
    """Return why a pod does not start, if the cluster says so."""
    for each in listed(pod, "status", "containerStatuses"):
        waiting = field(each, "state", "waiting", "reason")
        if isinstance(waiting, str) and waiting not in _STARTING:
            return waiting
    for each in listed(pod, "status", "conditions"):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason"))
    return None


def _previous_log(installation: Installation, name: str) -> str:
    return f"{commands.kubectl(installation, 'logs', f'deployment/{name}', '--previous')} has the reason"


def _selector(controller: JsonObject) -> str:
    labels = field(controller, "spec", "template", "metadata", "labels")
    return ",".join(f"{key}={value}" for key, value in labels.items()) if isinstance(labels, dict) else ""


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
