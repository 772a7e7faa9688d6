"""Webhooks of other projects that change or read what this webhook injects into pods."""

from collections.abc import Iterator
from typing import NamedTuple

from webhook.doctor.installation import JsonObject, name_of, webhooks_of
from webhook.doctor.matching import is_called_for_pods


class Peer(NamedTuple):
    """A project: parts of the names of its configurations and webhooks, and what it reads or changes of a pod."""

    name: str
    parts: tuple[str, ...]
    concern: str


# Source: the manifests and charts of the projects.
PEERS = (
    Peer(
        "Volcano", ("volcano",), "reads schedulerName and the queue, and sets schedulerName, affinity and tolerations"
    ),
    Peer("KAI", ("kai-admission", "admission.run.ai", "kai-scheduler"), "reads schedulerName, by a matchCondition"),
    Peer("Run:ai", ("runai",), "reads and sets schedulerName"),
    Peer("Kueue", ("kueue",), "reads the queue, affinity and tolerations"),
    Peer("HAMi", ("hami", "vgpu"), "reads and sets schedulerName"),
    Peer("Koordinator", ("koordinator", "koord-manager"), "sets schedulerName, priority and affinity"),
    Peer("Kyverno", ("kyverno",), "reads and sets any field"),
    Peer("multiarch tuning operator", ("pod-placement-scheduling-gate", "multiarch"), "reads and sets affinity"),
    Peer("NVIDIA Grove", ("grove",), "sets schedulerName and gangs"),
)


class PeerWebhook(NamedTuple):
    """A webhook for pods of a peer: its place is `webhooks[position]` of `configuration`."""

    peer: Peer
    configuration: str
    position: int
    content: JsonObject

    @property
    def place(self) -> str:
        """The webhook, in messages."""
        return f"MutatingWebhookConfiguration {self.configuration}: webhooks[{self.position}]"


def peer_webhooks(configurations: tuple[JsonObject, ...], own: str) -> Iterator[PeerWebhook]:
    """Yield the webhooks of peers that are called for pods, without those of the configuration `own`."""
    for configuration in configurations:
        name = name_of(configuration)
        if name == own:
            continue
        for position, webhook in enumerate(webhooks_of(configuration)):
            peer = _peer_of(name, str(webhook.get("name", "")))
            if peer is not None and is_called_for_pods(webhook):
                yield PeerWebhook(peer, name, position, webhook)


def _peer_of(configuration: str, webhook: str) -> Peer | None:
    return next((each for each in PEERS if any(part in configuration or part in webhook for part in each.parts)), None)
