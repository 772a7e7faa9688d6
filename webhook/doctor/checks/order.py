"""Webhooks of peers that depend on the injected fields are called after this webhook."""

from collections.abc import Iterator
from dataclasses import replace

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation
from webhook.doctor.matching import is_reinvoked
from webhook.doctor.peers import PeerWebhook, peer_webhooks
from webhook.doctor.source import Source


@check(
    "order",
    "The webhook of a peer that depends on the injected fields is called first, and not again",
    "rename the configuration so that it sorts first: the default is 00-placement-webhook",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook of a peer that is called before, and not again after, this webhook.

    API servers call configurations in the order of their names. In the second round they call only webhooks with
    `reinvocationPolicy: IfNeeded` that they called in the first, which a condition or selector can prevent.

    Source: k8s.io/apiserver/pkg/admission/configuration/mutating_webhook_manager.go
    """
    own = installation.target.configuration
    if installation.configuration is None:
        return
    for each in peer_webhooks(installation.of(Source.CONFIGURATIONS), own):
        if each.configuration > own or _is_called_again(each):
            continue
        what = f"{each.peer.name} {each.peer.concern}, and is called before {own}: it does not see what is injected"
        yield warning(each.place, what, _renamed(installation, each))


def _renamed(installation: Installation, each: PeerWebhook) -> str:
    """Return how the configuration gets another name, without a moment in which no webhook is called."""
    renamed = replace(installation, target=replace(installation.target, configuration="NAME"))
    own = installation.target.configuration
    deleted = commands.command("kubectl", "delete", "mutatingwebhookconfiguration", own)
    return f"with a NAME that sorts before {each.configuration}: {commands.registered(renamed)}, then {deleted}"


def _is_called_again(each: PeerWebhook) -> bool:
    content = each.content
    return is_reinvoked(content) and not (content.get("matchConditions") or content.get("objectSelector"))
