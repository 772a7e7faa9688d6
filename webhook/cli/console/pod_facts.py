"""Facts of pods that a snapshot does not hold and the console shows: owner, workload type, words of the scheduler."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.cluster.cache.object_key import PENDING_PODS, Key
from webhook.cluster.file import occupies_node
from webhook.cluster.pods.pending_pods import is_pending
from webhook.documents.documents import Document, field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_NAMESPACE

# Texts of users in memory, for each pod.
_MOST_NAME, _MOST_MESSAGE = 256, 2048
_HASH_LABEL = "pod-template-hash"


class PodFact(NamedTuple):
    """Facts of one pod. `owner` is `Kind/name`, of a Deployment's pod the Deployment; empty without one.

    `workload_type` is the value of its annotation. `message` is the last report of its scheduler, `reason` its reason,
    and `since` the time since when. `created` is its creationTimestamp.
    """

    owner: str = ""
    workload_type: str = ""
    message: str = ""
    reason: str = ""
    created: str = ""
    gates: tuple[str, ...] = ()


_NOTHING = PodFact()


class PodFacts:
    """The facts of the bound and the pending pods, each kept while the pod is in the view.

    `type_annotation` is the key of the workload type. An instance is fed by one thread and may be read by others.
    """

    def __init__(self, type_annotation: str) -> None:
        self._type_annotation = type_annotation
        self._bound: dict[tuple[str, str], PodFact] = {}
        self._pending: dict[tuple[str, str], PodFact] = {}
        self._shared: dict[PodFact, PodFact] = {}

    def note(self, part: str, key: Key, pod: Mapping[str, Any] | None) -> None:
        """Keep the facts of a pod that arrives or changes; forget one that is gone (None)."""
        if part not in ("Pod", PENDING_PODS):
            return
        kept, name = self._pending if part == PENDING_PODS else self._bound, (key.namespace, key.name)
        if pod is None:
            kept.pop(name, None)
        elif part == PENDING_PODS:
            kept[name] = self._read(pod, is_waiting=True)
        else:
            kept[name] = self._share(self._read(pod, is_waiting=False))

    def add(self, documents: Iterable[Document]) -> None:
        """Keep the facts of the pods of a cluster file."""
        for document in documents:
            content = document.content
            if (content.get("apiVersion"), content.get("kind")) != ("v1", "Pod"):
                continue
            key = Key(_text(field(content, "metadata", "namespace")) or DEFAULT_NAMESPACE, _name(content))
            if is_pending(content):
                self.note(PENDING_PODS, key, content)
            elif occupies_node(content):
                self.note("Pod", key, content)

    def bound(self, namespace: str, name: str) -> PodFact:
        """Return the facts of a bound pod; empty ones for an unknown pod."""
        return self._bound.get((namespace, name), _NOTHING)

    def pending(self, namespace: str, name: str) -> PodFact:
        """Return the facts of a pending pod; empty ones for an unknown pod."""
        return self._pending.get((namespace, name), _NOTHING)

    def _share(self, fact: PodFact) -> PodFact:
        """Return one object for equal facts, which all pods of an owner have."""
        if len(self._shared) > 2 * len(self._bound) + 1000:
            self._shared = {}
        return self._shared.setdefault(fact, fact)

    def _read(self, pod: Mapping[str, Any], *, is_waiting: bool) -> PodFact:
        annotations = field(pod, "metadata", "annotations")
        found = annotations.get(self._type_annotation) if isinstance(annotations, Mapping) else ""
        fact = PodFact(_owner(pod), cut(_text(found), _MOST_NAME))
        if not is_waiting:
            return fact
        condition = _scheduled(pod)
        gates = field(pod, "spec", "schedulingGates")
        return fact._replace(
            message=cut(_text(condition.get("message")), _MOST_MESSAGE),
            reason=cut(_text(condition.get("reason")), _MOST_NAME),
            created=cut(_text(field(pod, "metadata", "creationTimestamp")), _MOST_NAME),
            gates=tuple(_text(each.get("name")) for each in _objects(gates)[:8]),
        )


def _owner(pod: Mapping[str, Any]) -> str:
    owners = _objects(field(pod, "metadata", "ownerReferences"))
    owner = next((each for each in owners if each.get("controller")), owners[0] if owners else None)
    if owner is None:
        return ""
    kind, name = _text(owner.get("kind")), _text(owner.get("name"))
    labels = field(pod, "metadata", "labels")
    suffix = f"-{labels.get(_HASH_LABEL)}" if isinstance(labels, Mapping) else ""
    if kind == "ReplicaSet" and name.endswith(suffix) and len(suffix) > 1:
        kind, name = "Deployment", name.removesuffix(suffix)
    return cut(f"{kind}/{name}", _MOST_NAME)


def _scheduled(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition by which a scheduler reports on the pod; empty if there is none."""
    conditions = _objects(field(pod, "status", "conditions"))
    return next((each for each in conditions if each.get("type") == "PodScheduled"), {})


def _name(content: Mapping[str, Any]) -> str:
    return _text(field(content, "metadata", "name"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
