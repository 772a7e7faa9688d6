"""The facts of bound pods that decide whether a pod may be moved. A snapshot does not contain them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, MIRROR_POD_ANNOTATION
from webhook.kube.pod.bound_status import controller_of
from webhook.kube.reader import Reader, reading

_PENDING = "Pending"


class Controller(NamedTuple):
    """The owner that controls a pod and creates a new one in its place."""

    api_version: str
    kind: str
    name: str

    @property
    def is_daemon_set(self) -> bool:
        """Return true for a DaemonSet, whose pods belong to their nodes."""
        return (self.api_version, self.kind) == ("apps/v1", "DaemonSet")

    @property
    def is_job(self) -> bool:
        """Return true for a Job, whose pods lose their work when they are deleted."""
        return (self.api_version, self.kind) == ("batch/v1", "Job")

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that is bound to `node`. `created` is its creationTimestamp, whose text sorts by time.

    `content` is the raw object. `is_disruptable` is true if the eviction API does not check the pod's budgets.
    """

    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    controller: Controller | None
    is_mirror: bool
    is_terminating: bool
    is_disruptable: bool
    is_ready: bool
    has_empty_dir: bool
    created: str
    priority: int
    scheduler: str
    content: Mapping[str, Any] = field(compare=False, repr=False)

    @classmethod
    @reading
    def of(cls, pod: Reader) -> "BoundPod":
        """Read a Pod.

        Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go, canIgnorePDB; k8s.io/kubectl/pkg/drain
        """
        metadata, spec, status = pod.object("metadata"), pod.object("spec"), pod.object("status")
        is_terminating = metadata.raw.get("deletionTimestamp") is not None
        conditions = [each.raw for each in status.objects("conditions")]
        return cls(
            namespace=metadata.text("namespace") or DEFAULT_NAMESPACE,
            name=metadata.text("name"),
            node=spec.text("nodeName"),
            labels=metadata.text_map("labels"),
            controller=_controller(metadata),
            is_mirror=MIRROR_POD_ANNOTATION in metadata.object("annotations").raw,
            is_terminating=is_terminating,
            is_disruptable=is_terminating or status.raw.get("phase") == _PENDING,
            is_ready=any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions),
            has_empty_dir=any(each.raw.get("emptyDir") is not None for each in spec.objects("volumes")),
            created=metadata.text("creationTimestamp"),
            priority=spec.integer("priority"),
            scheduler=spec.text("schedulerName") or DEFAULT_SCHEDULER,
            content=pod.raw,
        )

    @property
    def full_name(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> tuple[str, str]:
        """Return the namespace and the name."""
        return self.namespace, self.name

    def replacement(self) -> dict[str, Any]:
        """Return the pod that the controller creates as a replacement: this pod without a node and a status."""
        metadata = {key: self.content["metadata"].get(key) for key in ("annotations", "labels", "ownerReferences")}
        kept = {key: value for key, value in metadata.items() if value is not None}
        spec = {key: value for key, value in self.content["spec"].items() if key != "nodeName"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": self.namespace, **kept},
            "spec": spec,
        }


def _controller(metadata: Reader) -> Controller | None:
    owner = controller_of(metadata)
    if owner is None:
        return None
    return Controller(owner.text("apiVersion"), owner.text("kind"), owner.text("name"))


BoundPods = Mapping[str, Sequence[BoundPod]]
"""The bound pods by node."""
