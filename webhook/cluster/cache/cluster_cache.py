"""The cache of a live cluster: facts of listed and watched objects, and immutable snapshots of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.object_key import Key, key_of
from webhook.cluster.cache.optional_objects import OptionalObjects
from webhook.cluster.cache.pending_tracker import PendingTracker
from webhook.cluster.interner import Interner
from webhook.cluster.left_out import LeftOutTracker
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.optional_kinds import EVERY_OPTIONAL_KIND, read_optional, snapshot_fields
from webhook.cluster.pods.pending_pod_reader import PendingPodReader
from webhook.cluster.pods.pending_pods import PendingPod
from webhook.cluster.pods.running_pod_reader import RunningPodReader
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.cluster.update import updated, with_nodes
from webhook.documents.field import InvalidInput
from webhook.kube.names import ENDED_PHASES
from webhook.kube.pod.stored_pod import Binding, node_and_phase
from webhook.kube.release import ASSUMED, Release

JsonObject = Mapping[str, Any]
DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class InvalidObject:
    """An object that is left out of the view because it is malformed or too large; `message` names each bad field."""

    kind: str
    key: Key
    message: str


class _Kind(NamedTuple):
    """The functions that read, store and list the objects of one kind. Storing None deletes the object.

    `leave_out` records that an object is not known. Without it, a malformed object counts as missing.
    """

    read: Callable[[JsonObject], Any]
    put: Callable[[Key, Any], None]
    keys: Callable[[], Iterable[Key]]
    leave_out: Callable[[Key], None] | None = None


class ClusterCache:
    """The objects of lists and watch events. Not thread-safe.

    An event replaces the stored object, so it may be applied twice. An object that is malformed or too large is left
    out, and is in `invalid` until a valid version arrives. `follower` gets the objects, and the pods that become bound.
    """

    def __init__(self, follower: ClusterFollower | None = None) -> None:
        self._follower = follower or ClusterFollower()
        self.invalid: dict[tuple[str, Key], InvalidObject] = {}
        self._nodes: dict[Key, Node] = {}
        self._pods: dict[Key, RunningPod] = {}
        self._namespaces: dict[Key, Namespace] = {}
        self._pods_on: dict[str, dict[Key, RunningPod]] = {}
        self._pending = PendingTracker()
        self._running_pods, self._pending_pods = RunningPodReader(), PendingPodReader()
        self._kinds = {
            "Node": _Kind(partial(Node.of, interner=Interner()), self._put_node, self._nodes.keys),
            "Pod": _Kind(self._read_pod, self._put_pod, lambda: (*self._pods, *self._pending.keys())),
            "Namespace": _Kind(Namespace.of, self._put_namespace, self._namespaces.keys),
        }
        self._left_out = LeftOutTracker()
        self._optional = OptionalObjects(self._left_out)
        for kind in EVERY_OPTIONAL_KIND:
            put, keys = partial(self._optional.put, kind), partial(self._optional.keys, kind)
            leave_out = partial(self._optional.leave_out, kind)
            self._kinds[kind] = _Kind(partial(read_optional, kind), put, keys, leave_out)
        self._infos: dict[str, NodeInfo] = {}
        self._snapshot = Snapshot.of((), **snapshot_fields({}))
        self._namespaces_snapshot: Snapshot | None = None
        # The nodes that differ from the last snapshot; with the pods that were added if nothing else has changed.
        self._changed_nodes: dict[str, list[RunningPod] | None] = {}
        self._node_set_changed = self._namespaces_changed = False
        self._evidence: SchedulerEvidence | None = None
        self._release = ASSUMED

    def replace(self, kind: str, objects: Iterable[JsonObject]) -> list[InvalidObject]:
        """Replace all objects of `kind` by `objects`, raw API objects. Return the objects that have become invalid."""
        listing = self.listing(kind)
        invalid = listing.add(objects)
        listing.finish()
        return invalid

    def listing(self, kind: str) -> "Listing":
        """Return a Listing, which does `replace` in steps for a list in pages."""
        return Listing(self, kind, self._keys(kind))

    def apply(self, kind: str, event_type: str, content: JsonObject) -> InvalidObject | None:
        """Store `content`, or delete it if DELETED. Return the object if it is invalid for a new reason."""
        was_bound = (key := key_of(kind, content)) in self._pods
        problem = self.store(kind, key, None if event_type == DELETED else content)
        if not was_bound and key in self._pods:
            try:
                self._follower.pod_bound(Binding.of(content), self._snapshot.generation + 1)
            except Exception:
                self._follower.raised()
        return problem

    def store(self, kind: str, key: Key, content: JsonObject | None) -> InvalidObject | None:
        """Store one object, or delete it if `content` is None. Return it if it has become invalid, as in `apply`."""
        functions, problem = self._kinds[kind], None
        try:
            functions.put(key, None if content is None else functions.read(content))
        except InvalidInput as error:
            problem = InvalidObject(kind, key, str(error))
            if functions.leave_out is None:
                functions.put(key, None)
            else:
                functions.leave_out(key)
        try:
            self._follower.object_changed(kind, key, content)
        except Exception:
            self._follower.raised()
        before = self.invalid.pop((kind, key), None)
        if problem is not None:
            self.invalid[kind, key] = problem
        return None if before == problem else problem

    def mark_unknown(self, kind: str) -> None:
        """Delete all objects of `kind`, one of EVERY_OPTIONAL_KIND, and mark it as not known."""
        self._optional.set_known(kind, known=False)
        for key in self._keys(kind):
            self.store(kind, key, None)

    def mark_known(self, kind: str) -> None:
        """Mark `kind` as known, because all its objects are stored."""
        if kind in EVERY_OPTIONAL_KIND:
            self._optional.set_known(kind, known=True)

    def put_scheduler_evidence(self, evidence: SchedulerEvidence | None) -> None:
        """Store the evidence of schedulers, or None if it is not known."""
        self._evidence = evidence

    def put_release(self, release: Release) -> None:
        """Store the release of the cluster."""
        self._release = release

    def snapshot(self) -> Snapshot:
        """Return the current state of the cluster. The same snapshot is returned until an object changes."""
        if not self._has_changed:
            return self._snapshot
        generation = self._snapshot.generation + 1
        infos = {name: self._info(name, added) for name, added in self._changed_nodes.items() if name in self._infos}
        self._infos.update(infos)
        # From here on, `infos` have the added pods, even if no snapshot can be made.
        self._changed_nodes = dict.fromkeys(self._changed_nodes)
        if self._node_set_changed:
            snapshot = with_nodes(self._snapshot, self._infos.values(), generation)
        else:
            snapshot = updated(self._snapshot, infos.values(), generation)
            snapshot.note_origin(self._snapshot, [snapshot.rows[name] for name in infos])
        # It is not shared yet.
        for name, value in self._changed_fields().items():
            setattr(snapshot, name, value)
        self._snapshot = snapshot
        self._changed_nodes.clear()
        self._node_set_changed = self._namespaces_changed = False
        return self._snapshot

    def _changed_fields(self) -> dict[str, Any]:
        """Return the fields of the next snapshot that do not depend on nodes and may have changed."""
        changed: dict[str, Any] = {"scheduler_evidence": self._evidence, "release": self._release}
        if self._optional.has_changed:
            changed |= self._optional.changed_fields()
        if self._namespaces_changed:
            changed["namespaces"] = self._namespaces_by_name()
        if self._left_out.has_changed:
            changed["left_out"] = self._left_out.current()
        if self._pending.has_changed:
            pending = self._pending.pending()
            changed |= {"pending": pending, "nominated": self._pending.nominated(pending)}
        return changed

    def namespaces_only(self) -> Snapshot:
        """Return a snapshot without nodes, which is cheap while the first lists arrive."""
        if self._namespaces_snapshot is None:
            self._namespaces_snapshot = Snapshot.of((), self._namespaces_by_name())
        return self._namespaces_snapshot

    @property
    def _has_changed(self) -> bool:
        has_other = (self._evidence, self._release) != (self._snapshot.scheduler_evidence, self._snapshot.release)
        is_changed = has_other or self._changed_nodes or self._node_set_changed or self._namespaces_changed
        return bool(is_changed or any(each.has_changed for each in (self._optional, self._pending, self._left_out)))

    def _keys(self, kind: str) -> set[Key]:
        return {*self._kinds[kind].keys(), *(key for of, key in self.invalid if of == kind)}

    def _namespaces_by_name(self) -> dict[str, Namespace]:
        return {key.name: namespace for key, namespace in self._namespaces.items()}

    def _info(self, name: str, added: Iterable[RunningPod] | None) -> NodeInfo:
        if added is not None:
            return self._infos[name].with_pods(added)
        return NodeInfo.of(self._nodes[Key("", name)], self._pods_on.get(name, {}).values())

    def _read_pod(self, pod: JsonObject) -> RunningPod | PendingPod | None:
        node, phase = node_and_phase(pod)
        read = self._running_pods.read if node else self._pending_pods.read
        return None if phase in ENDED_PHASES else read(pod)

    def _put_node(self, key: Key, node: Node | None) -> None:
        before = self._nodes.get(key)
        if before == node:
            return
        self._changed_nodes[key.name] = None
        if node is None:
            del self._nodes[key], self._infos[key.name]
            self._node_set_changed = True
            return
        self._nodes[key] = node
        if before is None:
            self._infos[key.name] = NodeInfo.of(node)
            self._node_set_changed = True

    def _put_pod(self, key: Key, pod: RunningPod | PendingPod | None) -> None:
        self._pending.put(key, pod if isinstance(pod, PendingPod) else None)
        self._put_bound(key, pod if isinstance(pod, RunningPod) else None)

    def _put_bound(self, key: Key, pod: RunningPod | None) -> None:
        before = self._pods.get(key)
        if before == pod:
            return
        if before is not None and pod is not None and before.node_name == pod.node_name and before.is_same_load(pod):
            # In its place: the pods of the node stay in their order, so `updated` finds the load of each unchanged.
            self._pods[key] = self._pods_on[pod.node_name][key] = pod
            self._changed_nodes[pod.node_name] = None
            return
        if before is not None:
            self._changed_nodes[before.node_name] = None
            pods_on_node = self._pods_on[before.node_name]
            del self._pods[key], pods_on_node[key]
            if not pods_on_node:
                del self._pods_on[before.node_name]
            for part, namespace in before.rare.left_out:
                self._left_out.discard(part, namespace, str(key))
        if pod is not None:
            self._pods[key] = pod
            for part, namespace in pod.rare.left_out:
                self._left_out.add(part, namespace, str(key))
            added = self._changed_nodes.setdefault(pod.node_name, [])
            if added is not None:
                added.append(pod)
            self._pods_on.setdefault(pod.node_name, {})[key] = pod

    def _put_namespace(self, key: Key, namespace: Namespace | None) -> None:
        if self._namespaces.get(key) == namespace:
            return
        self._namespaces_changed = True
        self._namespaces_snapshot = None
        if namespace is None:
            del self._namespaces[key]
        else:
            self._namespaces[key] = namespace


class Listing:
    """A list in pages. Objects are stored as they arrive; objects that are in no page are deleted at the end.

    So an incomplete list deletes no objects, and the cache needs no second copy of the cluster.
    """

    def __init__(self, cache: ClusterCache, kind: str, stored: set[Key]) -> None:
        self._cache = cache
        self._kind = kind
        self._unseen = stored

    def add(self, objects: Iterable[JsonObject]) -> list[InvalidObject]:
        """Store some objects of the list. Return those that have become invalid."""
        found = []
        for content in objects:
            key = key_of(self._kind, content)
            self._unseen.discard(key)
            if problem := self._cache.store(self._kind, key, content):
                found.append(problem)
        return found

    def finish(self) -> None:
        """Delete the objects that were in no page, and mark the kind as known."""
        for key in self._unseen:
            self._cache.store(self._kind, key, None)
        self._unseen = set()
        self._cache.mark_known(self._kind)
