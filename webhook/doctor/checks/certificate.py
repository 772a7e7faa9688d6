"""The served certificate is one that API servers trust, and is for some time."""

from collections.abc import Iterator

from certs.chain import unfit_for_server
from certs.names import names_of
from certs.status import Called
from webhook.doctor.check import check
from webhook.doctor.commands import renewal, trust
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source
from webhook.doctor.validity import expires_soon


@check(
    "certificate",
    "The served certificate does not match the caBundle, has other names, or expires soon",
    "`placement-webhook certs rotate` with the certs controller; cert-manager's Certificate; else `certs register`",
    Source.CONFIGURATIONS,
    Source.PROBE,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each address and webhook whose certificate API servers do not trust, or not for long."""
    reported = set()
    for probe in installation.probes:
        for index, called in enumerate(probe.called):
            fault = _fault(f"{installation.place}: webhooks[{index}]", called, installation) if called else None
            if fault is not None and (probe.address, fault.what) not in reported:
                reported.add((probe.address, fault.what))
                yield fault


def _fault(place: str, called: Called, installation: Installation) -> Fault | None:
    served = called.certificate
    if served is None:
        return None
    days = (served.not_valid_after_utc - installation.now).days
    if served.not_valid_after_utc <= installation.now:
        return error(
            place, f"{called.address} serves a certificate that expired {-days} days ago", renewal(installation)
        )
    if not called.trusted:
        reason = unfit_for_server(served) or called.detail
        names = names_of(served)
        what = f"{called.address} serves a certificate that API servers do not trust: {reason} (valid for {names})"
        return error(place, what, trust(installation))
    if expires_soon(served, installation.now):
        return warning(
            place, f"{called.address} serves a certificate that expires in {days} days", renewal(installation)
        )
    return None
