"""The objects of EVERY_OPTIONAL_KIND, from lists and watch events."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from webhook.cluster.cache.namespace_budget import NamespaceBudget, memory_bytes
from webhook.cluster.cache.object_key import Key
from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.left_out import LeftOutTracker
from webhook.cluster.objects.selecting_objects import NO_WORKLOADS, SelectingObjects
from webhook.cluster.optional_kinds import EVERY_OPTIONAL_KIND, WORKLOAD_KINDS, Facts, snapshot_fields
from webhook.cluster.storage.volumes import PersistentVolumeClaim
from webhook.documents.field import InvalidInput, forbidden

# An ordinary object has about 1 KiB.
MOST_OBJECT_BYTES = 64 * 1024
# About 80,000 ordinary ReplicaSets, which take 90 MiB. Only what tenants can create counts.
BUDGET_BYTES = 128 * 1024 * 1024


class _Objects:
    """The facts about the objects of a kind, by namespace and name. Iteration yields the facts.

    `parts` are the facts that other objects need about objects that are left out.
    """

    def __init__(self) -> None:
        self.facts: dict[str, dict[str, Facts]] = {}
        self.parts: dict[str, dict[str, Facts]] = {}

    def __iter__(self) -> Iterator[Facts]:
        for of_kind in (self.facts, self.parts):
            for of_namespace in of_kind.values():
                yield from of_namespace.values()


class OptionalObjects:
    """The facts about objects by kind.

    Snapshots contain a kind only while all its objects are known, except those in `left_out`. Otherwise the unlisted
    ones would count as missing. Tenants can create objects with a namespace. Each of these has at most
    MOST_OBJECT_BYTES, and all share `budget_bytes`. If the budget is exceeded, the latest objects of the largest kind
    in the namespace with the most bytes are left out until they change or are listed again.
    """

    def __init__(self, left_out: LeftOutTracker, budget_bytes: int = BUDGET_BYTES) -> None:
        self._objects = {kind: _Objects() for kind in EVERY_OPTIONAL_KIND}
        self._left_out = left_out
        self._budget = NamespaceBudget(budget_bytes)
        self._known: set[str] = set()
        self._changed: set[str] = set()
        # The namespaces whose workloads have changed. None means that those of any may have changed.
        self._changed_namespaces: set[str] | None = set()
        self._workloads = NO_WORKLOADS

    @property
    def has_changed(self) -> bool:
        """Return true if `changed_fields` would return a field."""
        return bool(self._changed)

    def keys(self, kind: str) -> Iterator[Key]:
        """Yield the keys of the objects of `kind`, including objects that are left out."""
        for namespace, of_namespace in self._objects[kind].facts.items():
            yield from (Key(namespace, name) for name in of_namespace)
        yield from (Key(*each) for each in self._left_out.names(kind))

    def put(self, kind: str, key: Key, facts: Facts | None) -> None:
        """Store the facts about an object, or delete the object if `facts` is None.

        Raises:
            InvalidInput: the object is too large and is left out.
        """
        if self._left_out.discard(kind, *key):
            parts = self._objects[kind].parts
            if parts.get(key.namespace, {}).pop(key.name, None) is not None and not parts[key.namespace]:
                del parts[key.namespace]
            self._note_change(kind, key)
        before = self._objects[kind].facts.get(key.namespace, {}).get(key.name)
        if before == facts:
            return
        if before is not None:
            self._remove(kind, key, before)
        if facts is None:
            return
        if key.namespace:
            size_bytes = memory_bytes(facts, MOST_OBJECT_BYTES)
            if size_bytes > MOST_OBJECT_BYTES:
                self.leave_out(kind, key, facts)
                detail = f"what the view reads of it takes more than {MOST_OBJECT_BYTES} bytes"
                raise InvalidInput([forbidden("spec", detail)])
            self._budget.use(key.namespace, size_bytes)
        self._objects[kind].facts.setdefault(key.namespace, {})[key.name] = facts
        self._note_change(kind, key)
        while self._budget.left_bytes < 0:
            self._leave_out_latest(self._budget.largest())

    def leave_out(self, kind: str, key: Key, facts: Facts | None = None) -> None:
        """Leave out an object. `facts` are its facts if they are known, or None."""
        before = self._objects[kind].facts.get(key.namespace, {}).get(key.name)
        if before is not None:
            self._remove(kind, key, before)
        self._left_out.add(kind, *key)
        self._note_change(kind, key)
        part = _part_for_others(facts)
        if part is not None:
            self._objects[kind].parts.setdefault(key.namespace, {})[key.name] = part

    def set_known(self, kind: str, *, known: bool) -> None:
        """Mark `kind` as known, if all its objects are stored, or as not known."""
        if (kind in self._known) is known:
            return
        (self._known.add if known else self._known.discard)(kind)
        self._changed.add(EVERY_OPTIONAL_KIND[kind].field)
        if kind in WORKLOAD_KINDS:
            self._changed_namespaces = None

    def changed_fields(self) -> dict[str, Any]:
        """Return the fields of a snapshot that have changed since the last call."""
        found = {kind: self._objects[kind] for kind in self._known}
        fields = snapshot_fields(found, self._changed - {"workloads"})
        if "workloads" in self._changed:
            fields["workloads"] = self._workloads = self._changed_workloads(found)
        self._changed.clear()
        return fields

    def _changed_workloads(self, found: Mapping[str, _Objects]) -> SelectingObjects:
        namespaces, self._changed_namespaces = self._changed_namespaces, set()
        if namespaces is None:
            rebuilt: SelectingObjects = snapshot_fields(found, ("workloads",))["workloads"]
            return rebuilt
        known: list[Mapping[str, Mapping[str, Any]]] = [found[kind].facts for kind in WORKLOAD_KINDS if kind in found]
        return self._workloads.with_namespaces(
            {each: [facts for of_kind in known for facts in of_kind.get(each, {}).values()] for each in namespaces}
        )

    def _leave_out_latest(self, namespace: str) -> None:
        of_namespace = {kind: each.facts.get(namespace, {}) for kind, each in self._objects.items()}
        kind = max(of_namespace, key=lambda each: len(of_namespace[each]))
        name, facts = next(reversed(of_namespace[kind].items()))
        self.leave_out(kind, Key(namespace, name), facts)

    def _remove(self, kind: str, key: Key, facts: Facts) -> None:
        of_kind = self._objects[kind].facts
        del of_kind[key.namespace][key.name]
        if not of_kind[key.namespace]:
            del of_kind[key.namespace]
        if key.namespace:
            self._budget.use(key.namespace, -memory_bytes(facts, MOST_OBJECT_BYTES))
        self._note_change(kind, key)

    def _note_change(self, kind: str, key: Key) -> None:
        if kind in self._known:
            self._changed.add(EVERY_OPTIONAL_KIND[kind].field)
            if kind in WORKLOAD_KINDS and self._changed_namespaces is not None:
                self._changed_namespaces.add(key.namespace)


def _part_for_others(facts: Facts | None) -> Facts | None:
    """Return the facts that other objects depend on: the volume of a claim, or its devices. They are small."""
    if isinstance(facts, PersistentVolumeClaim) and facts.is_bound:
        return replace(facts, access_modes=(), selector=None)
    if isinstance(facts, ResourceClaim) and facts.allocation is not None:
        return replace(facts, requests=(), constraints=())
    return None
