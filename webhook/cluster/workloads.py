"""What selects pods: Services and the controllers whose pods are spread by default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.kube.label_selector import LabelSelector, exact_selector, read_label_selector, selector_matches
from webhook.kube.reader import Reader
from webhook.kube.wellknown import DEFAULT_NAMESPACE

SERVICE = ("v1", "Service")
REPLICATION_CONTROLLER = ("v1", "ReplicationController")
# The controllers whose selectors kube-scheduler looks up. Their selectors are LabelSelectors, that of a
# ReplicationController is a map of labels, as that of a Service is.
OWNERS = (REPLICATION_CONTROLLER, ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))


class Owner(NamedTuple):
    """The controller of a pod, in the pod's namespace."""

    api_version: str
    kind: str
    name: str

    @property
    def is_looked_up(self) -> bool:
        """Whether kube-scheduler reads the selector of such a controller."""
        return (self.api_version, self.kind) in OWNERS


class SelectingObject(NamedTuple):
    """A Service or a controller, and the pods that it selects."""

    namespace: str
    owner: Owner
    selector: LabelSelector | None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "SelectingObject":
        """The facts of `content`, a raw object of a Service or of one of OWNERS.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(content.get("metadata"), "metadata")
        spec = reader.object(content.get("spec"), "spec")
        owner = Owner(
            reader.text(content.get("apiVersion"), "apiVersion"),
            reader.text(content.get("kind"), "kind"),
            reader.text(metadata.get("name"), "metadata.name"),
        )
        selector = spec.get("selector")
        workload = cls(
            reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE,
            owner,
            _exact(reader, selector)
            if owner[:2] in (SERVICE, REPLICATION_CONTROLLER)
            else read_label_selector(reader, selector, "spec.selector"),
        )
        reader.finish()
        return workload


def _exact(reader: Reader, selector: Any) -> LabelSelector | None:
    return None if selector is None else exact_selector(reader.text_map(selector, "spec.selector"))


@dataclass(frozen=True, slots=True, eq=False)
class SelectingObjects:
    """The workloads of a cluster that are known: Services by namespace, controllers by namespace and owner.

    `knows_services`: there is no Service beside these.
    """

    services: Mapping[str, tuple[LabelSelector, ...]]
    controllers: Mapping[tuple[str, Owner], LabelSelector | None]
    knows_services: bool = True

    @classmethod
    def of(cls, workloads: Iterable[SelectingObject], *, knows_services: bool = True) -> "SelectingObjects":
        """The tables of `workloads`."""
        services: dict[str, list[LabelSelector]] = {}
        controllers: dict[tuple[str, Owner], LabelSelector | None] = {}
        for namespace, owner, selector in workloads:
            if owner[:2] != SERVICE:
                controllers[namespace, owner] = selector
            elif selector is not None:
                services.setdefault(namespace, []).append(selector)
        return cls({namespace: tuple(found) for namespace, found in services.items()}, controllers, knows_services)

    def __bool__(self) -> bool:
        return bool(self.services or self.controllers)

    def read_keys(self, namespace: str, owner: Owner | None) -> frozenset[str]:
        """The labels that the selectors of the Services of `namespace` read, and that of a pod's `owner` there."""
        of_owner = self.controllers.get((namespace, owner)) if owner is not None else None
        selectors = (*self.services.get(namespace, ()), of_owner or ())
        return frozenset(requirement.key for selector in selectors for requirement in selector)

    def lacks(self, namespace: str, owner: Owner | None) -> bool:
        """Whether the selector of a pod's `owner`, or of a Service, would be looked up and is not known."""
        if not self.knows_services:
            return True
        return owner is not None and owner.is_looked_up and (namespace, owner) not in self.controllers

    def default_selector(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> LabelSelector:
        """What the Services that select a pod with `labels` ask for and what its `owner` does, all of it.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector
        """
        services = [selector for selector in self.services.get(namespace, ()) if selector_matches(selector, labels)]
        of_owner = self.controllers.get((namespace, owner)) if owner is not None and owner.is_looked_up else None
        return tuple(dict.fromkeys(requirement for selector in (*services, of_owner or ()) for requirement in selector))


NO_WORKLOADS = SelectingObjects({}, {})
