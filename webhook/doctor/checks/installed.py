"""The webhook configuration exists and has the webhooks of its manifest."""

from collections.abc import Iterator

from certs.registration import manifest, missing_webhooks
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, named, warning
from webhook.doctor.installation import Installation, name_of, webhooks_of
from webhook.doctor.matching import is_called_for_pods
from webhook.doctor.source import Source


@check(
    "installed",
    "There is no webhook configuration of the name, it is not called for pods, or it lacks a webhook",
    "`placement-webhook certs register`; or name it with `--configuration`",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if API servers do not call the webhook at all, or not for all objects."""
    if not installation.knows(Source.CONFIGURATIONS):
        return
    if installation.configuration is None:
        known = [name_of(each) for each in installation.of(Source.CONFIGURATIONS)]
        own = [name for name, each in zip(known, installation.of(Source.CONFIGURATIONS), strict=True) if _is_ours(each)]
        hint = f"--configuration {own[0]} names the one that exists" if own else "`placement-webhook certs register`"
        what = f"does not exist, so no pod is sent to the webhook; the cluster has {named(known, 5) or 'none'}"
        yield error(installation.place, what, hint)
        return
    if not any(map(is_called_for_pods, installation.webhooks)):
        what = "no rule has the creation of pods"
        yield error(f"{installation.place}: webhooks", what, "`placement-webhook certs manifest` prints the rules")
    missing = missing_webhooks(installation.configuration, manifest(installation.target))
    if missing:
        what = f"lacks {named(str(each['name']) for each in missing)}: it was made from an earlier manifest"
        yield warning(f"{installation.place}: webhooks", what, "`placement-webhook certs register` adds them")


def _is_ours(configuration: dict[str, object]) -> bool:
    return any(".placement." in str(each.get("name")) for each in webhooks_of(configuration))
