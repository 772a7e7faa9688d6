"""A set of equal pods that an object creates from one pod template."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import object_at
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.exclusive_topology import Exclusive
from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind


@dataclass(frozen=True, slots=True)
class Dimension:
    """One factor of the number of pods: a count, and the `first` index."""

    first: int
    number: int


@dataclass(frozen=True, slots=True)
class PodNames:
    """The parts of pod names. `base` is the name of the object. If it is empty, `generate_name` is the prefix."""

    namespace: str
    base: str
    generate_name: str
    role: str
    pattern: str

    def of_pod(self, indices: tuple[int, ...]) -> tuple[str, str]:
        """Return the field for the name of a pod (`name` or `generateName`), and its value."""
        if not self.base:
            return "generateName", self.generate_name
        name = self.formatted(self.pattern, indices)
        return ("generateName" if name.endswith("-") else "name"), name

    def formatted(self, pattern: str, indices: tuple[int, ...], pod: str = "") -> str:
        """Return `pattern` with its placeholders replaced."""
        return pattern.format(*indices, name=self.base, role=self.role.lower(), pod=pod)


@dataclass(frozen=True, slots=True)
class PodSet:
    """The pods of one template of an object. The cost to create a set does not depend on the number of replicas.

    `path` is the path of the template in the object, and `annotations_path` the path of the annotations of its pods.
    They are empty for a Pod, which is its own template. `role` distinguishes the sets of an object. `replicas` is None
    for one pod on each node. `claims` are the volumeClaimTemplates. `caveat` is a property of the pods that the object
    does not define; if it is set, no verdict on the pods is certain. `suspended` is the field that currently keeps the
    object from creating the pods, or empty if there is none. `exclusive` are the rules by which the controller gives
    groups of the pods a topology domain of their own; they are not part of the pods that this class returns.
    """

    kind: WorkloadKind | None
    path: str
    annotations_path: str
    spec_path: str
    role: str
    replicas: int | None
    claims: tuple[JsonObject, ...]
    caveat: str
    template: PodTemplatePath
    common: JsonObject
    names: PodNames
    dimensions: tuple[Dimension, ...]
    suspended: str = ""
    exclusive: tuple[Exclusive, ...] = ()

    @property
    def pod(self) -> JsonObject:
        """Return the first pod, as its controller creates it."""
        return self.pod_at(0)

    def pod_at(self, index: int) -> JsonObject:
        """Return pod number `index`, from 0. Its spec is a part of the object and must not be changed."""
        if self.kind is None:
            return self.common
        indices = self._indices(index)
        name_field, name = self.names.of_pod(indices)
        # Without a name, it ends as a prefix does, which is no valid label.
        labels = {key: self.names.formatted(text, indices, name).rstrip("-") for key, text in self.template.labels}
        template = self.template
        own = self.common["metadata"]
        metadata = {**own, name_field: name}
        if labels and isinstance(own.get("labels", {}), Mapping):
            metadata["labels"] = {**own.get("labels", {}), **labels}
        owner = self.names.formatted(template.owner_name, indices)
        # No object has a name that ends with a hyphen.
        reference = {
            "kind": template.owner_kind or self.kind.kind,
            "name": owner if self.names.base else f"{self.names.generate_name.removesuffix('-')}{owner}-",
            "controller": True,
        }
        pod = {**self.common, "metadata": {**metadata, "ownerReferences": [reference]}}
        return self._with_claims(pod, name) if self.claims else pod

    def claims_at(self, index: int) -> tuple[JsonObject, ...]:
        """Return the PersistentVolumeClaims that the controller creates for pod number `index`."""
        _, pod = self.names.of_pod(self._indices(index))
        namespace = self.names.namespace or DEFAULT_NAMESPACE
        return tuple(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**object_at(claim, "metadata"), "name": _claim_name(claim, pod), "namespace": namespace},
                "spec": claim.get("spec"),
            }
            for claim in self.claims
        )

    @property
    def follows(self) -> bool:
        """True if the controller creates the pods when their leaders have a node."""
        return any(each.follows for each in self.exclusive)

    def group_of(self, rule: Exclusive, index: int) -> str:
        """Return the value of the label by which `rule` tells the group of pod number `index` from others."""
        indices = self._indices(index)
        namespace = self.names.namespace or DEFAULT_NAMESPACE
        text = rule.groups.text.format(*indices, name=self.names.base, role=self.names.role, namespace=namespace)
        return rule.value(text, indices[-1])

    def locate(self, path: str) -> str:
        """Return the path in the object of the field `path` of a pod: `spec.template.spec.tolerations[0]`."""
        for inner, outer in (("metadata.annotations", self.annotations_path), ("spec", self.spec_path)):
            if self.kind is not None and path.startswith(inner) and path[len(inner) :][:1] in ("", ".", "["):
                return f"{outer}{path[len(inner) :]}"
        return f"{self.path}.{path}" if self.path and path else self.path or path

    def _indices(self, index: int) -> tuple[int, ...]:
        """Return the index within each count. The last index changes fastest."""
        indices = []
        for each in reversed(self.dimensions):
            index, position = divmod(index, max(1, each.number))
            indices.append(each.first + position)
        return tuple(reversed(indices))

    def _with_claims(self, pod: JsonObject, name: str) -> JsonObject:
        """Return `pod` with a volume for each claim. These volumes replace the pod's own volumes of the same names.

        Source: k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_utils.go, updateStorage
        """
        spec = pod["spec"]
        if not isinstance(spec, Mapping) or not isinstance(spec.get("volumes") or [], list):
            return pod
        volumes = [
            {
                "name": object_at(claim, "metadata")["name"],
                "persistentVolumeClaim": {"claimName": _claim_name(claim, name)},
            }
            for claim in self.claims
        ]
        names = {volume["name"] for volume in volumes}
        others = [
            each for each in spec.get("volumes") or [] if not isinstance(each, Mapping) or each.get("name") not in names
        ]
        return {**pod, "spec": {**spec, "volumes": [*volumes, *others]}}


def pod_name(pod: Mapping[str, Any]) -> str:
    """Return `NAMESPACE/NAME` of a pod, with generateName if it has no name."""
    namespace = field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE
    return f"{namespace}/{field(pod, 'metadata', 'name') or field(pod, 'metadata', 'generateName') or ''}"


def _claim_name(claim: JsonObject, pod: str) -> str:
    return f"{object_at(claim, 'metadata')['name']}-{pod}"
