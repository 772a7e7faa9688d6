"""The live cluster: lists and events in, immutable snapshots out.

Only what plugins read is kept of an object. A pod that waits for a node or has ended takes nothing, and is not kept.
"""

from collections.abc import Callable, Iterable, KeysView, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from webhook.cluster.file import holds_a_place
from webhook.cluster.interning import Interner
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.cluster.update import updated
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput
from webhook.kube.wellknown import DEFAULT_NAMESPACE

JsonObject = Mapping[str, Any]

DELETED = "DELETED"


class Key(NamedTuple):
    """An object among those of its kind; the namespace of nodes and namespaces is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Unusable:
    """An object that is not in the view because it cannot be read; `message` has every field that is wrong."""

    kind: str
    key: Key
    message: str


class _Kind(NamedTuple):
    """How objects of one kind are read, put away (None: taken out) and counted."""

    read: Callable[[JsonObject], Any]
    put: Callable[[Key, Any], None]
    keys: Callable[[], KeysView[Key]]


class ClusterCache:
    """The nodes, pods and namespaces that lists and events told of. An instance is for one thread.

    Two rules make it safe to feed: what an event says replaces what was known of its object, so that events may come
    twice; and an object that cannot be read is left out and named in `unusable`, until a readable one comes.
    """

    def __init__(self) -> None:
        self.unusable: dict[tuple[str, Key], Unusable] = {}
        self._nodes: dict[Key, Node] = {}
        self._pods: dict[Key, RunningPod] = {}
        self._namespaces: dict[Key, Namespace] = {}
        self._pods_on: dict[str, dict[Key, RunningPod]] = {}
        self._interner = Interner()
        self._kinds = {
            "Node": _Kind(Node.of, self._put_node, self._nodes.keys),
            "Pod": _Kind(_running_pod, self._put_pod, self._pods.keys),
            "Namespace": _Kind(Namespace.of, self._put_namespace, self._namespaces.keys),
        }
        self._infos: dict[str, NodeInfo] = {}
        self._snapshot = Snapshot.of(())
        self._namespaces_alone: Snapshot | None = None
        self._touched: set[str] = set()
        self._has_other_nodes = False
        self._has_other_namespaces = False

    def replace(self, kind: str, objects: Iterable[JsonObject]) -> list[Unusable]:
        """Hold `objects`, raw objects of the API, and no others of `kind`; those that have become unusable."""
        listing = self.listing(kind)
        unusable = listing.add(objects)
        listing.finish()
        return unusable

    def listing(self, kind: str) -> "Listing":
        """`replace` in several steps, such as the pages of a list."""
        return Listing(self, kind, set(self._kinds[kind].keys()) | {key for of, key in self.unusable if of == kind})

    def apply(self, kind: str, event_type: str, content: JsonObject) -> Unusable | None:
        """Take one event of a watch in: DELETED takes `content` out, any other puts it in.

        The object, if it has become unusable by that, or in another way than before.
        """
        reads, key = self._kinds[kind], key_of(kind, content)
        facts, problem = None, None
        if event_type != DELETED:
            try:
                facts = reads.read(content)
            except InvalidInput as error:
                problem = Unusable(kind, key, str(error))
        reads.put(key, facts)
        if problem is None:
            self.unusable.pop((kind, key), None)
            return None
        before = self.unusable.get((kind, key))
        self.unusable[kind, key] = problem
        return None if before == problem else problem

    def forget(self, kind: str, key: Key) -> None:
        """Take one object out."""
        self._kinds[kind].put(key, None)
        self.unusable.pop((kind, key), None)

    def snapshot(self) -> Snapshot:
        """The cluster as it is told to be: the same snapshot until something in it changes."""
        if not (self._touched or self._has_other_nodes or self._has_other_namespaces):
            return self._snapshot
        before = self._snapshot
        generation = before.generation + 1
        namespaces = before.namespaces
        if self._has_other_namespaces:
            namespaces = {key.name: namespace for key, namespace in self._namespaces.items()}
        infos = {name: self._info(name) for name in self._touched if name in self._infos}
        self._infos.update(infos)
        if self._has_other_nodes:
            self._snapshot = Snapshot.of(self._infos.values(), namespaces, generation, before.workloads, before.storage)
        else:
            self._snapshot = replace(updated(before, infos.values(), generation), namespaces=namespaces)
        self._touched.clear()
        self._has_other_nodes = self._has_other_namespaces = False
        return self._snapshot

    def namespaces_alone(self) -> Snapshot:
        """The namespaces, and no node: what can be said at little cost while the first lists come in."""
        if self._namespaces_alone is None:
            namespaces = {key.name: namespace for key, namespace in self._namespaces.items()}
            self._namespaces_alone = Snapshot.of((), namespaces)
        return self._namespaces_alone

    def _info(self, name: str) -> NodeInfo:
        return NodeInfo.of(self._nodes[Key("", name)], self._pods_on.get(name, {}).values())

    def _put_node(self, key: Key, node: Node | None) -> None:
        before = self._nodes.get(key)
        if before == node:
            return
        self._touched.add(key.name)
        if node is None:
            del self._nodes[key], self._infos[key.name]
            self._has_other_nodes = True
            return
        self._nodes[key] = self._interner.shared(node)
        if before is None:
            self._infos[key.name] = NodeInfo.of(node)
            self._has_other_nodes = True

    def _put_pod(self, key: Key, pod: RunningPod | None) -> None:
        before = self._pods.get(key)
        if before == pod:
            return
        if before is not None:
            self._touched.add(before.node_name)
            beside = self._pods_on[before.node_name]
            del self._pods[key], beside[key]
            if not beside:
                del self._pods_on[before.node_name]
        if pod is not None:
            pod = self._pods[key] = self._interner.shared(pod)
            self._touched.add(pod.node_name)
            self._pods_on.setdefault(pod.node_name, {})[key] = pod

    def _put_namespace(self, key: Key, namespace: Namespace | None) -> None:
        if self._namespaces.get(key) == namespace:
            return
        self._has_other_namespaces = True
        self._namespaces_alone = None
        if namespace is None:
            del self._namespaces[key]
        else:
            self._namespaces[key] = namespace


class Listing:
    """A list that comes page by page. Objects count as they come; what no page held goes at the end.

    So a list that breaks off has changed nothing for the worse, and no second copy of the cluster is held meanwhile.
    """

    def __init__(self, cache: ClusterCache, kind: str, held_before: set[Key]) -> None:
        self._cache = cache
        self._kind = kind
        self._unseen = held_before

    def add(self, objects: Iterable[JsonObject]) -> list[Unusable]:
        """Take some of its objects in; those that have become unusable."""
        found = []
        for content in objects:
            self._unseen.discard(key_of(self._kind, content))
            if problem := self._cache.apply(self._kind, "ADDED", content):
                found.append(problem)
        return found

    def finish(self) -> None:
        """Take out what was in none of the pages."""
        for key in self._unseen:
            self._cache.forget(self._kind, key)
        self._unseen = set()


def key_of(kind: str, content: JsonObject) -> Key:
    """The key of a raw object of the API."""
    name, namespace = field(content, "metadata", "name"), field(content, "metadata", "namespace")
    if kind == "Pod":
        namespace = namespace or DEFAULT_NAMESPACE
    return Key(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")


def _running_pod(pod: JsonObject) -> RunningPod | None:
    return RunningPod.of(pod) if holds_a_place(pod) else None
