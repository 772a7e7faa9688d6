"""The one writer of pods: copies what it changes and notes the RFC 6902 operations that change it.

The operations come from the edits themselves, since comparing two documents costs far more than making one of them.
"""

from functools import lru_cache
from typing import Any

from webhook.kube.taints import Toleration

JsonObject = dict[str, Any]
Step = str | int
Path = tuple[Step, ...]


class PodEditor:
    """A pod under edit. `pod` is the pod as it is by now; the original is never touched.

    Missing and null parents are created. What lies inside a parent that was created here needs no operation of its own:
    the operation that adds the parent carries it.
    """

    def __init__(self, pod: JsonObject) -> None:
        self.pod: JsonObject = dict(pod)
        self.operations: list[JsonObject] = []
        # The containers that may be written: copies of the original's, or new. Held, so that no id is used twice.
        self._own: dict[int, Any] = {id(self.pod): self.pod}
        self._new: dict[int, Any] = {}
        self._tolerations: set[Toleration] | None = None

    @property
    def tolerations(self) -> set[Toleration]:
        """Return the tolerations of the pod, to look a taint up in. A caller that appends one also adds it here."""
        # No cached_property: in Python 3.11 its lock is shared by all editors, of the other threads too.
        if self._tolerations is None:
            self._tolerations = {Toleration.of(each) for each in self.get("spec", "tolerations") or ()}
        return self._tolerations

    def get(self, *path: Step) -> Any:
        """The value at `path`, or None where it or a parent of it is missing or null."""
        value: Any = self.pod
        for step in path:
            if value is None:
                return None
            value = value.get(step) if isinstance(value, dict) else value[step]
        return value

    def set(self, value: Any, *path: Step) -> None:
        """Make `value` stand at `path`, whose last step is a key of an object."""
        key = path[-1]
        parent = self._open(path[:-1], {})
        if id(parent) not in self._new:
            replaces = parent.get(key) is not None
            self.operations.append({"op": "replace" if replaces else "add", "path": _pointer(path), "value": value})
        parent[key] = value

    def append(self, value: Any, *path: Step) -> None:
        """Put `value` behind the last item of the list at `path`."""
        items = self._open(path, [])
        if id(items) not in self._new:
            self.operations.append({"op": "add", "path": _pointer((*path, "-")), "value": value})
        items.append(value)

    def _open(self, path: Path, kind: Any) -> Any:
        """The container at `path`, writable; `kind` is an empty one of its type. The parents are objects."""
        here: Any = self.pod
        for depth, step in enumerate(path):
            there = here.get(step) if isinstance(here, dict) else here[step]
            if there is None:
                there = type(kind)() if depth == len(path) - 1 else {}
                if id(here) not in self._new:
                    self.operations.append({"op": "add", "path": _pointer(path[: depth + 1]), "value": there})
                here[step] = self._new[id(there)] = self._own[id(there)] = there
            elif id(here) in self._new:
                # What an edit put into a new container came from that edit, not from the user.
                self._new[id(there)] = self._own[id(there)] = there
            elif id(there) not in self._own:
                there = here[step] = there.copy()
                self._own[id(there)] = there
            here = there
        return here


@lru_cache(maxsize=256)
def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
