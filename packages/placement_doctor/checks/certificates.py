"""The certificates are valid and trusted, their controller runs, and the clocks of the cluster agree."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from certs import pem
from certs.cluster.probe import Called
from certs.inspection import expires_soon, time_left
from certs.names import names_of
from certs.registration import ca_bundles
from placement_doctor import commands
from placement_doctor.check import Finding, Severity, check, error, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.source import Source
from placement_doctor.workloads import Owner, controller_namespace, controller_of, owner_of, pod_selector
from webhook.cluster.objects.lease import time_of, writes_of
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed

# A controller that was restarted so often, the last time so recently, keeps failing, unless it has been steady since.
_MOST_RESTARTS = 3
_RECENT = timedelta(hours=1)
_STEADY = timedelta(minutes=10)
_STARTING = ("ContainerCreating", "PodInitializing")
# The API server states whole seconds.
_LARGEST_SKEW = timedelta(seconds=5)
# A slow request adds to it.
_LARGEST_HOLDER_SKEW = timedelta(seconds=15)


@check(
    "the log of the certs controller, or of cert-manager's cainjector; else `placement-webhook certs register`",
    needs={Source.CONFIGURATIONS},
)
def ca_bundle(cluster: Cluster) -> Iterator[Finding]:
    """A caBundle is empty, unreadable or expired, so API servers do not trust the webhook."""
    pairs = zip(cluster.webhooks, ca_bundles(cluster.configuration or {}), strict=True)
    for index, (webhook, bundle) in enumerate(pairs):
        where = f"{cluster.place}: webhooks[{index}].clientConfig.caBundle"
        cas = pem.readable_certificates(bundle)
        if not cas:
            # Without a bundle, the system's roots can have issued the certificate of a URL.
            if bundle or not field(webhook, "clientConfig", "url"):
                what = "empty or unreadable: API servers trust no certificate of the webhook"
                yield error(where, what, commands.trust(cluster))
            continue
        last = max(cas, key=lambda each: each.not_valid_after_utc)
        end = last.not_valid_after_utc
        if end <= cluster.now:
            yield error(where, f"its last CA expired on {end:%Y-%m-%d}", commands.new_ca(cluster))
        elif expires_soon(last, cluster.now):
            yield warning(where, f"its last CA {time_left(end, cluster.now)}", commands.new_ca(cluster))


@check(
    "`placement-webhook certs rotate` with the certs controller; cert-manager's Certificate; else `certs register`",
    needs={Source.CONFIGURATIONS, Source.PROBE},
)
def certificate(cluster: Cluster) -> Iterator[Finding]:
    """The served certificate does not match the caBundle, has other names, or expires soon."""
    reported = set[str]()
    for probe in cluster.probes:
        for index, called in enumerate(probe):
            found = _of_served(f"{cluster.place}: webhooks[{index}]", called, cluster) if called else None
            if found is not None and found.what not in reported:
                reported.add(found.what)
                yield found


def _of_served(place: str, called: Called, cluster: Cluster) -> Finding | None:
    served, serves = called.certificate, f"{called.address} serves a certificate that"
    if served is None:
        return None
    left = time_left(served.not_valid_after_utc, cluster.now)
    if served.not_valid_after_utc <= cluster.now:
        return error(place, f"{serves} {left}", commands.renewal(cluster))
    if not called.trusted:
        what = f"{serves} API servers do not trust: {called.detail} (valid for {names_of(served)})"
        return error(place, what, commands.trust(cluster))
    if expires_soon(served, cluster.now):
        return warning(place, f"{serves} {left}", commands.renewal(cluster))
    return None


@check(
    "`kubectl -n NAMESPACE logs deployment/placement-webhook-certs`; apply the manifests of deploy/ again",
    needs={Source.CONFIGURATIONS, Source.DEPLOYMENTS, Source.CONTROLLER_PODS, Source.PROBE},
)
def certs_controller(cluster: Cluster) -> Iterator[Finding]:
    """The certs controller, which maintains Secret and caBundle, is missing, not ready or crash-looping.

    It is an error if the certificate expires soon, or else a warning.
    """
    if not cluster.knows(Source.DEPLOYMENTS):
        return
    controller, owner = controller_of(cluster), owner_of(cluster)
    if owner is Owner.CERT_MANAGER and controller is not None:
        remedy = commands.of_controller(cluster, "delete", "deployment", commands.controller_name(cluster))
        what = "runs beside cert-manager, which maintains the caBundle: the controller changes nothing"
        yield warning(f"Deployment {name_of(controller)}", what, remedy)
    if owner is not Owner.CONTROLLER:
        return
    severity, effect = _without_controller(cluster)
    if controller is None:
        where = f"Deployment {controller_namespace(cluster)}/{commands.CONTROLLER}"
        what = f"does not exist, though the certs controller wrote the caBundle: {effect}"
        yield Finding(severity, where, what, commands.applied_again(cluster))
    elif found := _not_running(cluster, controller):
        path, what, remedy = found
        yield Finding(severity, f"Deployment {name_of(controller)}: {path}", f"{what}: {effect}", remedy)


def _without_controller(cluster: Cluster) -> tuple[Severity, str]:
    """Return the severity and the consequence of a missing controller, by the served certificate that expires first."""
    served = [each.certificate for each in cluster.called if each.certificate]
    if not served:
        what = "nothing renews the certificate; no endpoint can be reached from here, so its expiry is not known"
        return Severity.WARNING, what
    first = min(served, key=lambda each: each.not_valid_after_utc)
    what = f"nothing renews the served certificate, which {time_left(first.not_valid_after_utc, cluster.now)}"
    if expires_soon(first, cluster.now):
        return Severity.ERROR, what
    return Severity.WARNING, f"{what}, or repairs the caBundle"


def _not_running(cluster: Cluster, controller: JsonObject) -> tuple[str, str, str] | None:
    """Return the field, the problem, and the remedy, or None if the controller runs."""
    if field(controller, "spec", "replicas") == 0:
        name = commands.controller_name(cluster)
        return "spec.replicas", "0", commands.of_controller(cluster, "scale", "deployment", name, "--replicas=1")
    pods, ready = cluster.of(Source.CONTROLLER_PODS), "status.readyReplicas"
    crashed = next((text for pod in pods if (text := _crashes(pod, cluster.now))), None)
    if crashed is not None:
        return ready, crashed, f"{commands.logs(cluster, '--previous')} has the reason"
    if field(controller, "status", "readyReplicas"):
        return None
    reason = next((text for pod in pods if (text := _waits(pod))), None)
    if reason is None:
        return ready, "no replica is ready", f"{commands.logs(cluster)} has the reason"
    described = commands.of_controller(cluster, "describe", "pods", f"--selector={pod_selector(controller)}")
    return ready, f"no replica is ready ({reason})", f"{described} has the events"


def _crashes(pod: JsonObject, now: datetime) -> str | None:
    """Return a text about how often and why the container of a pod ends, or None if it does not crash-loop."""
    for each in listed(pod, "status", "containerStatuses"):
        restarts, code = each.get("restartCount"), field(each, "lastState", "terminated", "exitCode")
        ended = time_of(field(each, "lastState", "terminated", "finishedAt"))
        started = time_of(field(each, "state", "running", "startedAt"))
        # As after an outage of the API server.
        is_steady = each.get("ready") is True and started is not None and now - started >= _STEADY
        often = isinstance(restarts, int) and restarts >= _MOST_RESTARTS and not is_steady
        if field(each, "state", "waiting", "reason") == "CrashLoopBackOff" or (
            often and ended is not None and now - ended < _RECENT
        ):
            return f"its container ends again and again ({restarts} restarts, the last with exit code {code})"
    return None


def _waits(pod: JsonObject) -> str | None:
    """Return the reason why a pod does not start, or None if its status has none."""
    for each in listed(pod, "status", "containerStatuses"):
        waiting = field(each, "state", "waiting", "reason")
        if isinstance(waiting, str) and waiting not in _STARTING:
            return waiting
    for each in listed(pod, "status", "conditions"):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason"))
    return None


@check(
    "synchronise the clocks (`chronyc tracking`, `timedatectl`)",
    needs={Source.CLOCK, Source.LEASES, Source.CONFIGURATIONS, Source.PROBE},
)
def clock(cluster: Cluster) -> Iterator[Finding]:
    """The clocks of API server, nodes, holders of Leases and this machine differ, or a certificate is not valid yet."""
    now = cluster.now
    if cluster.clock is not None:
        now, before, after = cluster.clock
        ahead = max(before - now - timedelta(seconds=1), now - after)
        if ahead > _LARGEST_SKEW:
            what = f"differs by {ahead.total_seconds():.0f} s from that of this machine"
            remedy = "synchronise both (`timedatectl`); the other findings on time go by the API server"
            yield warning("the clock of the API server", what, remedy)
    yield from _future_certificates(cluster, now)
    skews = sorted((name_of(each), skew) for each in cluster.of(Source.LEASES) if (skew := _skew(each)))
    for direction, is_ahead in (("ahead of", True), ("behind", False)):
        chosen = {name: abs(skew.total_seconds()) for name, skew in skews if (skew > timedelta()) is is_ahead}
        if chosen:
            what = f"the clock of the holder is up to {max(chosen.values()):.0f} s {direction} that of the API server"
            remedy = "synchronise the clock of the node, or of the node of that pod"
            yield warning(f"Leases {named(chosen)}: spec.renewTime", what, remedy)


def _future_certificates(cluster: Cluster, now: datetime) -> Iterator[Finding]:
    called = cluster.called if cluster.configuration else ()
    sent = [(f"the certificate of {each.address}", each.certificate) for each in called if each.certificate]
    sent += [
        (f"a CA of {cluster.place}: webhooks[{index}].clientConfig.caBundle", ca)
        for index, bundle in enumerate(ca_bundles(cluster.configuration or {}))
        for ca in pem.readable_certificates(bundle)
    ]
    reported = set()
    for where, each in sent:
        start = each.not_valid_before_utc
        if start > now and each.serial_number not in reported:
            reported.add(each.serial_number)
            what = f"is valid from {start:%Y-%m-%dT%H:%M:%SZ} on, and the API server has {now:%Y-%m-%dT%H:%M:%SZ}"
            yield error(where, what, "synchronise the clock of the issuer, or wait")


def _skew(lease: JsonObject) -> timedelta | None:
    """Return the time by which the holder's clock is ahead, or None if it is about right or not known.

    `renewTime` is by the holder's clock. The API server writes the time of the same update to managedFields.
    """
    renewed, written = time_of(field(lease, "spec", "renewTime")), writes_of(lease, "renewTime")
    if renewed is None or not written:
        return None
    skew = renewed - max(written)
    return skew if abs(skew) > _LARGEST_HOLDER_SKEW else None
