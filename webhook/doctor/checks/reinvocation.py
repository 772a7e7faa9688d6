"""The webhook for pods is called again after later webhooks have changed the pod."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation, name_of, webhooks_of
from webhook.doctor.matching import is_called_for_pods, is_reinvoked
from webhook.doctor.source import Source


@check(
    "reinvocation",
    "The webhook for pods is not called again after a later webhook has changed the pod",
    "set `reinvocationPolicy: IfNeeded`; admission is idempotent",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if the webhook for pods has `reinvocationPolicy: Never`."""
    own = installation.pods_webhook
    if own is None or is_reinvoked(own[1]):
        return
    later = [
        name_of(each)
        for each in installation.of(Source.CONFIGURATIONS)
        if name_of(each) > installation.target.configuration and any(map(is_called_for_pods, webhooks_of(each)))
    ]
    who = f": {', '.join(sorted(later)[:3])}" if later else ""
    what = f"Never: what later webhooks add to pods (annotations, containers) is not seen{who}"
    path = f"/webhooks/{installation.webhooks.index(own[1])}/reinvocationPolicy"
    remedy = f"{commands.patched(installation, {path: 'IfNeeded'})}; admission is idempotent"
    yield warning(f"{own[0]}.reinvocationPolicy", what, remedy)
