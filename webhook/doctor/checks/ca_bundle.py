"""The caBundle of each webhook has a valid CA."""

from collections.abc import Iterator

from certs import pem
from certs.registration import ca_bundles
from webhook.doctor.check import check
from webhook.doctor.commands import new_ca, trust
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source
from webhook.doctor.validity import expires_soon
from webhook.kube.documents import field


@check(
    "ca-bundle",
    "A caBundle is empty, unreadable or expired, so API servers do not trust the webhook",
    "the log of the certs controller, or of cert-manager's cainjector; else `placement-webhook certs register`",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook without a CA that is valid for some time."""
    configuration = installation.configuration
    if configuration is None:
        return
    for index, (webhook, bundle) in enumerate(zip(installation.webhooks, ca_bundles(configuration), strict=True)):
        where = f"{installation.place}: webhooks[{index}].clientConfig.caBundle"
        cas = pem.readable_certificates(bundle)
        if not cas:
            if field(webhook, "clientConfig", "url") and not bundle:
                continue  # the system's roots can have issued the certificate
            yield error(
                where, "empty or unreadable: API servers trust no certificate of the webhook", trust(installation)
            )
            continue
        last = max(cas, key=lambda each: each.not_valid_after_utc)
        end = last.not_valid_after_utc
        days = (end - installation.now).days
        if end <= installation.now:
            yield error(where, f"its last CA expired on {end:%Y-%m-%d}", new_ca(installation))
        elif expires_soon(last, installation.now):
            yield warning(where, f"its last CA expires in {days} days", new_ca(installation))
