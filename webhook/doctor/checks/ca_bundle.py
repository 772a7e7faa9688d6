"""The caBundle of each webhook has a valid CA."""

from collections.abc import Iterator

from certs import pem
from certs.registration import INJECTED_BY_CERT_MANAGER, ca_bundles
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation, texts
from webhook.doctor.source import Source
from webhook.doctor.validity import expires_soon
from webhook.kube.documents import field


@check(
    "ca-bundle",
    "A caBundle is empty, unreadable or expired, so API servers do not trust the webhook",
    "the log of the certs controller, `placement-webhook certs register`, or cert-manager's annotation",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook without a CA that is valid for some time."""
    configuration = installation.configuration
    if configuration is None:
        return
    annotations = texts(configuration, "metadata", "annotations")
    by_cert_manager = any(key in annotations for key in INJECTED_BY_CERT_MANAGER)
    remedy = "the certs controller puts the CA there, or else `placement-webhook certs register`"
    if by_cert_manager:
        remedy = "cert-manager injects it: `kubectl -n cert-manager logs deploy/cert-manager-cainjector` says why not"
    for index, (webhook, bundle) in enumerate(zip(installation.webhooks, ca_bundles(configuration), strict=True)):
        where = f"{installation.place}: webhooks[{index}].clientConfig.caBundle"
        cas = pem.readable_certificates(bundle)
        if not cas:
            if field(webhook, "clientConfig", "url") and not bundle:
                continue  # the system's roots can have issued the certificate
            yield error(where, "empty or unreadable: API servers trust no certificate of the webhook", remedy)
            continue
        last = max(cas, key=lambda each: each.not_valid_after_utc)
        end = last.not_valid_after_utc
        days = (end - installation.now).days
        if end <= installation.now:
            yield error(where, f"its last CA expired on {end:%Y-%m-%d}", remedy)
        elif expires_soon(last, installation.now):
            yield warning(where, f"its last CA expires in {days} days", remedy)
