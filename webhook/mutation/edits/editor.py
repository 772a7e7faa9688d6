"""Change pods: copy the changed parts and record the operations, which is cheaper than a comparison."""

from functools import lru_cache
from typing import Any

from webhook.documents.documents import JsonObject
from webhook.kube.api.json_patch import escaped
from webhook.kube.pod.taints import Toleration

Step = str | int
Path = tuple[Step, ...]


class PodEditor:
    """An editor of a pod. `pod` is the current state; the original is never changed.

    Missing and null parents are created. A value inside a new parent needs no operation of its own, because the
    operation that adds the parent includes it.
    """

    def __init__(self, pod: JsonObject) -> None:
        self.pod: JsonObject = dict(pod)
        self.operations: list[JsonObject] = []
        # The lists and dicts that may be changed: copies of the original's, or new. The references keep the ids unique.
        self._writable: dict[int, Any] = {id(self.pod): self.pod}
        self._added: dict[int, Any] = {}
        self._tolerations: set[Toleration] | None = None

    @property
    def tolerations(self) -> set[Toleration]:
        """Return the tolerations of the pod, for lookups. A caller that appends a toleration also adds it here."""
        # No cached_property: in Python 3.11 its lock is shared by all editors and threads.
        if self._tolerations is None:
            self._tolerations = {Toleration.of(each) for each in self.get("spec", "tolerations") or ()}
        return self._tolerations

    def get(self, *path: Step) -> Any:
        """Return the value at `path`, or None if it or one of its parents is missing or null."""
        value: Any = self.pod
        for step in path:
            if value is None:
                return None
            value = value.get(step) if isinstance(value, dict) else value[step]
        return value

    def set(self, value: Any, *path: Step) -> None:
        """Set `value` at `path`, whose last step is a key of an object."""
        key = path[-1]
        parent = self._open(path[:-1], {})
        if id(parent) not in self._added:
            replaces = parent.get(key) is not None
            self.operations.append({"op": "replace" if replaces else "add", "path": pointer(path), "value": value})
        parent[key] = value

    def append(self, value: Any, *path: Step) -> None:
        """Append `value` to the list at `path`."""
        items = self._open(path, [])
        if id(items) not in self._added:
            self.operations.append({"op": "add", "path": pointer((*path, "-")), "value": value})
        items.append(value)

    def remove(self, *path: Step) -> None:
        """Remove the value at `path`, if there is one. The last step of the path is a key of an object."""
        if self.get(*path) is None:
            return
        parent = self._open(path[:-1], {})
        if id(parent) not in self._added:
            self.operations.append({"op": "remove", "path": pointer(path)})
        del parent[path[-1]]

    def _open(self, path: Path, kind: Any) -> Any:
        """Return the list or dict at `path` for writing."""
        here: Any = self.pod
        for depth, step in enumerate(path):
            there = here.get(step) if isinstance(here, dict) else here[step]
            if there is None:
                there = type(kind)() if depth == len(path) - 1 else {}
                if id(here) not in self._added:
                    self.operations.append({"op": "add", "path": pointer(path[: depth + 1]), "value": there})
                here[step] = self._added[id(there)] = self._writable[id(there)] = there
            elif id(here) in self._added:
                # The content of a new list or dict comes from edits, not from the user.
                self._added[id(there)] = self._writable[id(there)] = there
            elif id(there) not in self._writable:
                there = here[step] = there.copy()
                self._writable[id(there)] = there
            here = there
        return here


@lru_cache(maxsize=256)
def pointer(path: Path) -> str:
    """Return the JSON pointer of a path."""
    return "".join("/" + escaped(str(step)) for step in path)
