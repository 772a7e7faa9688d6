"""Facts about pods that the console shows and a snapshot lacks: owner, workload type, message of the scheduler."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cluster_file import occupies_node
from webhook.cluster.pods.pending_pods import is_pending
from webhook.documents.documents import Document, field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.top_controller import top_controller

# Texts of users in memory, for each pod.
_MOST_NAME, _MOST_MESSAGE, _MOST_GATES = 256, 2048, 8


class PodFact(NamedTuple):
    """Facts about one pod. `owner` is `Kind/name` (the Deployment for its pods), or empty if the pod has no owner.

    `workload_type` is the value of its annotation. The other facts are only set for a pending pod: `message` is the
    last report of its scheduler, `gates` are its scheduling gates, and `annotations` are those of the key domain.
    """

    owner: str = ""
    workload_type: str = ""
    message: str = ""
    gates: tuple[str, ...] = ()
    is_terminating: bool = False
    annotations: tuple[tuple[str, str], ...] = ()


_NOTHING = PodFact()


class PodFacts(ClusterFollower):
    """The facts about the bound and the pending pods, each kept while the pod is in the view.

    `key_domain` is the domain of the annotations. One thread writes to an instance, and others may read it.
    """

    def __init__(self, key_domain: str) -> None:
        self._prefix = f"{key_domain}/"
        self._facts: dict[tuple[str, str], PodFact] = {}
        self._shared: dict[PodFact, PodFact] = {}

    def object_changed(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Store the facts about a pod that arrives or changes.

        Drop a pod that is gone (`content` is None) or has ended.
        """
        if kind != "Pod":
            return
        waits = content is not None and is_pending(content)
        if content is None or not (waits or occupies_node(content)):
            self._facts.pop(key, None)
        else:
            fact = self._read(content, is_waiting=waits)
            self._facts[key] = fact if waits else self._share(fact)

    def add(self, documents: Iterable[Document]) -> None:
        """Store the facts about the pods of a cluster file."""
        for document in documents:
            content = document.content
            if (content.get("apiVersion"), content.get("kind")) != ("v1", "Pod"):
                continue
            namespace, name = (_text(field(content, "metadata", each)) for each in ("namespace", "name"))
            self.object_changed("Pod", Key(namespace or DEFAULT_NAMESPACE, name), content)

    def of(self, namespace: str, name: str) -> PodFact:
        """Return the facts about a pod, or empty facts for an unknown pod."""
        return self._facts.get((namespace, name), _NOTHING)

    def _share(self, fact: PodFact) -> PodFact:
        """Return one shared object for equal facts, because the pods of an owner mostly have equal facts."""
        if len(self._shared) > 2 * len(self._facts) + 1000:
            self._shared = {}
        return self._shared.setdefault(fact, fact)

    def _read(self, pod: Mapping[str, Any], *, is_waiting: bool) -> PodFact:
        annotations = field(pod, "metadata", "annotations")
        found = annotations.get(f"{self._prefix}workload-type") if isinstance(annotations, Mapping) else ""
        fact = PodFact(_owner(pod), cut(_text(found), _MOST_NAME))
        if not is_waiting:
            return fact
        gates = _objects(field(pod, "spec", "schedulingGates"))
        conditions = _objects(field(pod, "status", "conditions"))
        reported = (each.get("message") for each in conditions if each.get("type") == "PodScheduled")
        own = annotations if isinstance(annotations, Mapping) else {}
        return fact._replace(
            message=cut(_text(next(reported, "")), _MOST_MESSAGE),
            gates=tuple(cut(_text(each.get("name")), _MOST_NAME) for each in gates[:_MOST_GATES]),
            is_terminating=field(pod, "metadata", "deletionTimestamp") is not None,
            annotations=tuple(
                (key, value)
                for key, value in own.items()
                if key.startswith(self._prefix) and isinstance(value, str) and len(value) <= _MOST_MESSAGE
            ),
        )


def _owner(pod: Mapping[str, Any]) -> str:
    if found := top_controller(pod):
        return cut(f"{found.kind}/{found.name}", _MOST_NAME)
    owners = _objects(field(pod, "metadata", "ownerReferences"))
    return cut("/".join(_text(owners[0].get(key)) for key in ("kind", "name")), _MOST_NAME) if owners else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
