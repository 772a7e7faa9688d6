"""The clocks of API server, nodes and this machine agree, and no certificate is from the future."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from certs import pem
from certs.registration import ca_bundles
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, named, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of
from webhook.doctor.source import Source
from webhook.kube.documents import field

# The API server states whole seconds.
_LARGEST_SKEW = timedelta(seconds=5)
# A slow request adds to it.
_LARGEST_HOLDER_SKEW = timedelta(seconds=15)


@check(
    "clock",
    "The clocks of API server, nodes, holders of Leases and this machine differ, or a certificate is not valid yet",
    "synchronise the clocks (`chronyc tracking`, `timedatectl`)",
    Source.CLOCK,
    Source.LEASES,
    Source.CONFIGURATIONS,
    Source.PROBE,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each clock that differs from that of the API server."""
    clock = installation.clock
    now = clock.server if clock is not None else installation.now
    if clock is not None:
        ahead = max(clock.before - clock.server - timedelta(seconds=1), clock.server - clock.after)
        if ahead > _LARGEST_SKEW:
            what = f"differs by {ahead.total_seconds():.0f} s from that of this machine"
            remedy = "synchronise both (`timedatectl`); the other findings on time go by the API server"
            yield warning("the clock of the API server", what, remedy)
    yield from _future_certificates(installation, now)
    skewed = sorted((name_of(each), skew) for each in installation.of(Source.LEASES) if (skew := _skew(each)))
    for direction, chosen in (
        ("ahead of", [name for name, skew in skewed if skew > timedelta()]),
        ("behind", [name for name, skew in skewed if skew < timedelta()]),
    ):
        if chosen:
            largest = max(abs(skew.total_seconds()) for name, skew in skewed if name in chosen)
            what = f"the clock of the holder is up to {largest:.0f} s {direction} that of the API server"
            remedy = "synchronise the clock of the node, or of the node of that pod"
            yield warning(f"Leases {named(chosen)}: spec.renewTime", what, remedy)


def _future_certificates(installation: Installation, now: datetime) -> Iterator[Fault]:
    if installation.configuration is None:
        return
    served = [(each.address, each.certificate) for probe in installation.probes for each in probe.called if each]
    sent = [(f"the certificate of {address}", each) for address, each in served if each is not None]
    sent += [
        (f"a CA of {installation.place}: webhooks[{index}].clientConfig.caBundle", ca)
        for index, bundle in enumerate(ca_bundles(installation.configuration))
        for ca in pem.readable_certificates(bundle)
    ]
    reported = set()
    for where, certificate in sent:
        start = certificate.not_valid_before_utc
        if start > now and certificate.serial_number not in reported:
            reported.add(certificate.serial_number)
            what = f"is valid from {start:%Y-%m-%dT%H:%M:%SZ} on, and the API server has {now:%Y-%m-%dT%H:%M:%SZ}"
            yield error(where, what, "synchronise the clock of the issuer, or wait")


def _skew(lease: JsonObject) -> timedelta | None:
    """Return by how much the holder's clock is ahead, None if it is about right or not known.

    `renewTime` is by the holder's clock; the API server writes the time of the same update into managedFields.

    Source: k8s.io/apimachinery/pkg/util/managedfields/internal/managedfieldsupdater.go, Update
    """
    renewed = _time(field(lease, "spec", "renewTime"))
    written = [
        time
        for each in listed(lease, "metadata", "managedFields")
        if field(each, "fieldsV1", "f:spec", "f:renewTime") is not None and (time := _time(each.get("time")))
    ]
    if renewed is None or not written:
        return None
    skew = renewed - max(written)
    return skew if abs(skew) > _LARGEST_HOLDER_SKEW else None


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.astimezone(UTC) if found is not None and found.tzinfo else None
