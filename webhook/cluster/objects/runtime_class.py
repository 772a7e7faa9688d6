"""RuntimeClasses: the overhead and the nodes of the pods that name a class."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.pod.amounts import read_quantities
from webhook.kube.reader import Reader, reading


class RuntimeClass(NamedTuple):
    """A RuntimeClass. `overhead` are quantities as the API server prints them, or None if the class has no overhead."""

    name: str
    overhead: Mapping[str, str] | None
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]

    @classmethod
    @reading
    def of(cls, content: Reader) -> "RuntimeClass":
        """Read a RuntimeClass."""
        name, scheduling = content.object("metadata").text("name"), content.object("scheduling")
        overhead = None
        if content.raw.get("overhead") is not None:
            overhead = read_quantities(content.object("overhead"), "podFixed")
        tolerations = scheduling.objects("tolerations")
        for each in tolerations:
            for field in ("key", "operator", "value", "effect"):
                each.text(field)
        return cls(name, overhead, scheduling.text_map("nodeSelector"), tuple([each.raw for each in tolerations]))


class RuntimeClasses(NamedTuple):
    """The RuntimeClasses by name. `are_known` is true if these are all classes of the cluster."""

    by_name: Mapping[str, RuntimeClass]
    are_known: bool = False


NO_RUNTIME_CLASSES = RuntimeClasses({})
