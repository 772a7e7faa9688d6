"""The live cluster: lists and events in, immutable snapshots out.

Only what plugins read is kept of an object. A pod that waits for a node or has ended takes nothing, and is not kept,
unless it is nominated to a node.
"""

from collections.abc import Callable, Iterable, KeysView, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from webhook.cluster.cache.interning import Interner
from webhook.cluster.cache.nomination_tracker import NominationTracker
from webhook.cluster.cache.object_key import NOMINATED_PODS, Key, key_of
from webhook.cluster.cache.optional_objects import OptionalObjects
from webhook.cluster.file import occupies_node
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.nominated_pods import NominatedPod, is_nominated
from webhook.cluster.optional_kinds import OPTIONAL_KINDS, read_optional, snapshot_fields
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.cluster.update import updated, with_nodes
from webhook.kube.field import InvalidInput

JsonObject = Mapping[str, Any]

DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class InvalidObject:
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
    """The objects that lists and events told of. An instance is for one thread.

    Two rules make it safe to feed: what an event says replaces what was known of its object, so that events may come
    twice; and an object that cannot be read is left out and named in `invalid`, until a readable one comes.
    """

    def __init__(self) -> None:
        self.invalid: dict[tuple[str, Key], InvalidObject] = {}
        self._nodes: dict[Key, Node] = {}
        self._pods: dict[Key, RunningPod] = {}
        self._namespaces: dict[Key, Namespace] = {}
        self._pods_on: dict[str, dict[Key, RunningPod]] = {}
        self._nominations = NominationTracker()
        self._interner = Interner()
        self._kinds = {
            "Node": _Kind(Node.of, self._put_node, self._nodes.keys),
            "Pod": _Kind(_running_pod, self._put_pod, self._pods.keys),
            "Namespace": _Kind(Namespace.of, self._put_namespace, self._namespaces.keys),
            NOMINATED_PODS: _Kind(_nominated_pod, self._nominations.put, self._nominations.keys),
        }
        self._optional = OptionalObjects()
        for kind in OPTIONAL_KINDS:
            put, keys = partial(self._optional.put, kind), partial(self._optional.keys, kind)
            self._kinds[kind] = _Kind(partial(read_optional, kind), put, keys)
        self._infos: dict[str, NodeInfo] = {}
        self._snapshot = Snapshot.of((), **snapshot_fields({}))
        self._namespaces_alone: Snapshot | None = None
        self._touched: set[str] = set()
        self._has_other_nodes = False
        self._has_other_namespaces = False

    def replace(self, kind: str, objects: Iterable[JsonObject]) -> list[InvalidObject]:
        """Hold `objects`, raw objects of the API, and no others of `kind`; those that have become invalid."""
        listing = self.listing(kind)
        invalid = listing.add(objects)
        listing.finish()
        return invalid

    def listing(self, kind: str) -> "Listing":
        """`replace` in several steps, such as the pages of a list."""
        return Listing(self, kind, self._held(kind))

    def apply(self, kind: str, event_type: str, content: JsonObject) -> InvalidObject | None:
        """Take one event of a watch in: DELETED takes `content` out, any other puts it in.

        The object, if it has become invalid by that, or in another way than before.
        """
        reads, key = self._kinds[kind], key_of(kind, content)
        facts, problem = None, None
        if event_type != DELETED:
            try:
                facts = reads.read(content)
            except InvalidInput as error:
                problem = InvalidObject(kind, key, str(error))
        reads.put(key, facts)
        if problem is None:
            self.invalid.pop((kind, key), None)
            return None
        before = self.invalid.get((kind, key))
        self.invalid[kind, key] = problem
        return None if before == problem else problem

    def forget(self, kind: str, key: Key) -> None:
        """Take one object out."""
        self._kinds[kind].put(key, None)
        self.invalid.pop((kind, key), None)

    def forget_kind(self, kind: str) -> None:
        """Take out all objects of `kind`, one of OPTIONAL_KINDS, of which nothing is known from now on."""
        self._optional.set_known(kind, known=False)
        for key in self._held(kind):
            self.forget(kind, key)

    def complete(self, kind: str) -> None:
        """Take note that all objects of `kind` have been told."""
        if kind in OPTIONAL_KINDS:
            self._optional.set_known(kind, known=True)

    def compact(self) -> None:
        """Hold no more the nominated pods that left before this was last called, and are not told to be bound."""
        self._nominations.compact()

    def snapshot(self) -> Snapshot:
        """The cluster as it is told to be: the same snapshot until something in it changes."""
        if not (self._touched or self._has_other_nodes or self._has_other_namespaces or self._has_changed_beside):
            return self._snapshot
        generation = self._snapshot.generation + 1
        infos = {name: self._info(name) for name in self._touched if name in self._infos}
        self._infos.update(infos)
        if self._has_other_nodes:
            renewed = with_nodes(self._snapshot, self._infos.values(), generation)
        else:
            renewed = updated(self._snapshot, infos.values(), generation)
        if self._has_other_namespaces:
            renewed = replace(renewed, namespaces=self._namespaces_by_name())
        if self._nominations.has_changed:
            renewed = replace(renewed, nominated=self._nominations.excluding(self._pods))
        self._snapshot = replace(renewed, **self._optional.changed_fields())
        self._touched.clear()
        self._has_other_nodes = self._has_other_namespaces = False
        return self._snapshot

    def namespaces_only(self) -> Snapshot:
        """The namespaces, and no node: what can be said at little cost while the first lists come in."""
        if self._namespaces_alone is None:
            self._namespaces_alone = Snapshot.of((), self._namespaces_by_name())
        return self._namespaces_alone

    @property
    def _has_changed_beside(self) -> bool:
        return self._optional.has_changed or self._nominations.has_changed

    def _held(self, kind: str) -> set[Key]:
        return {*self._kinds[kind].keys(), *(key for of, key in self.invalid if of == kind)}

    def _namespaces_by_name(self) -> dict[str, Namespace]:
        return {key.name: namespace for key, namespace in self._namespaces.items()}

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
        self._nominations.mark_bound(key)
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

    def add(self, objects: Iterable[JsonObject]) -> list[InvalidObject]:
        """Take some of its objects in; those that have become invalid."""
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
        self._cache.complete(self._kind)


def _running_pod(pod: JsonObject) -> RunningPod | None:
    return RunningPod.of(pod) if occupies_node(pod) else None


def _nominated_pod(pod: JsonObject) -> NominatedPod | None:
    return NominatedPod.of(pod) if is_nominated(pod) else None
