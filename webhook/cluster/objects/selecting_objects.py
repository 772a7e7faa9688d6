"""Objects that select pods: Services, and controllers whose pods are spread by default."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.reader import Reader, reading
from webhook.kube.selectors import LabelSelector, read_exact_selector, read_label_selector, selector_matches

SERVICE = ("v1", "Service")
REPLICATION_CONTROLLER = ("v1", "ReplicationController")
# The controllers whose selectors kube-scheduler reads. The selector of a ReplicationController is a map of labels, as
# that of a Service; the others have LabelSelectors.
OWNERS = (REPLICATION_CONTROLLER, ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))


class Owner(NamedTuple):
    """The controller of a pod, in the pod's namespace."""

    api_version: str
    kind: str
    name: str

    @property
    def is_looked_up(self) -> bool:
        """Return true if kube-scheduler reads the selector of a controller of this kind."""
        return (self.api_version, self.kind) in OWNERS


class SelectingObject(NamedTuple):
    """A Service or a controller, and the pods that it selects."""

    namespace: str
    owner: Owner
    selector: LabelSelector | None

    @classmethod
    @reading
    def of(cls, content: Reader) -> "SelectingObject":
        """Read a Service or an object of OWNERS."""
        metadata, spec = content.object("metadata"), content.object("spec")
        owner = Owner(content.text("apiVersion"), content.text("kind"), metadata.text("name"))
        is_exact = owner[:2] in (SERVICE, REPLICATION_CONTROLLER)
        selector = read_exact_selector(spec, "selector") if is_exact else read_label_selector(spec, "selector")
        return cls(metadata.text("namespace") or DEFAULT_NAMESPACE, owner, selector)


class NamespaceSelectors(NamedTuple):
    """The selectors of the Services of a namespace, and those of its controllers."""

    services: tuple[LabelSelector, ...]
    controllers: Mapping[Owner, LabelSelector | None]


_NO_SELECTORS = NamespaceSelectors((), {})


@dataclass(frozen=True, slots=True, eq=False)
class SelectingObjects:
    """The known selecting objects of a cluster by namespace. A namespace without selecting objects has no entry.

    `knows_services` is true if these are all Services of the cluster.
    """

    by_namespace: Mapping[str, NamespaceSelectors]
    knows_services: bool = True

    @classmethod
    def of(cls, objects: Iterable[SelectingObject], *, knows_services: bool = True) -> "SelectingObjects":
        """Return the tables of `objects`."""
        of_namespaces: dict[str, list[SelectingObject]] = {}
        for each in objects:
            of_namespaces.setdefault(each.namespace, []).append(each)
        return cls({}, knows_services).with_namespaces(of_namespaces)

    def with_namespaces(self, objects: Mapping[str, Iterable[SelectingObject]]) -> "SelectingObjects":
        """Return the tables with exactly these objects in these namespaces."""
        by_namespace = dict(self.by_namespace)
        for namespace, found in objects.items():
            services: list[LabelSelector] = []
            controllers: dict[Owner, LabelSelector | None] = {}
            for _, owner, selector in found:
                if owner[:2] != SERVICE:
                    controllers[owner] = selector
                elif selector is not None:
                    services.append(selector)
            by_namespace[namespace] = NamespaceSelectors(tuple(services), controllers)
            if not services and not controllers:
                del by_namespace[namespace]
        return SelectingObjects(by_namespace, self.knows_services)

    def __bool__(self) -> bool:
        return bool(self.by_namespace)

    def read_keys(self, namespace: str, owner: Owner | None) -> frozenset[str]:
        """Return the label keys in the selectors of the Services of `namespace` and of a pod's `owner` there."""
        services, controllers = self.by_namespace.get(namespace, _NO_SELECTORS)
        of_owner = controllers.get(owner) if owner is not None else None
        return frozenset(requirement.key for selector in (*services, of_owner or ()) for requirement in selector)

    def lacks(self, namespace: str, owner: Owner | None) -> bool:
        """Return true if kube-scheduler reads a selector, of `owner` or of a Service, that is not known."""
        if not self.knows_services:
            return True
        if owner is None or not owner.is_looked_up:
            return False
        return owner not in self.by_namespace.get(namespace, _NO_SELECTORS).controllers

    def default_selector(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> LabelSelector:
        """Return the combined selector of a pod's `owner` and of the Services that select a pod with `labels`.

        Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector
        """
        if namespace not in self.by_namespace:
            return ()
        services, controllers = self.by_namespace[namespace]
        matching = [selector for selector in services if selector_matches(selector, labels)]
        of_owner = controllers.get(owner) if owner is not None and owner.is_looked_up else None
        return tuple(dict.fromkeys(requirement for selector in (*matching, of_owner or ()) for requirement in selector))


NO_WORKLOADS = SelectingObjects({})
