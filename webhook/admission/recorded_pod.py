"""The part of a new pod that is kept for a replay: what policies and the scorer read of it, and no more.

Values that neither reads are left out: images, environments, commands, volumes without a place, and the values of
annotations of other programs, which can repeat all of these (`kubectl.kubernetes.io/last-applied-configuration`). Their
keys stay, because a policy compares them with its own.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson

from webhook.admission.missed import Scope
from webhook.admission.pod_content import JsonObject, fields_read
from webhook.backends import kai, kueue, volcano
from webhook.kube.names import KAI_SHARE_DEVICES, KAI_SHARES
from webhook.kube.pod.volumes import RESTRICTING
from webhook.policy.spec.document import PolicySpec

# The annotations that schedulers read, beside those of the policy.
_OF_SCHEDULERS = frozenset(
    (
        *(volcano.QUEUE, volcano.GROUP, volcano.PREEMPTABLE),
        *(kai.GROUP, *KAI_SHARES, KAI_SHARE_DEVICES),
        kueue.TOTAL_COUNT,
    )
)
_DEFAULT_DOMAIN = PolicySpec().key_domain
_NO_POD = "it holds no pod with its namespace and groups"
_METADATA = ("namespace", "labels", "annotations", "ownerReferences")
_OWNER = ("apiVersion", "kind", "name", "uid", "controller")
_SPEC = (
    *("affinity", "hostNetwork", "hostUsers", "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy"),
    *("priority", "priorityClassName", "resourceClaims", "resources", "restartPolicy", "schedulerName"),
    *("schedulingGates", "schedulingGroup", "tolerations", "topologySpreadConstraints"),
)
_CONTAINER = ("name", "ports", "resources", "restartPolicy", "restartPolicyRules")


class RecordedPod(NamedTuple):
    """A pod as it was recorded.

    `scope` is its namespace at its admission, None if that was not known; `groups` are those of the user.
    """

    pod: JsonObject
    scope: Scope | None = None
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: JsonObject, scope: Scope | None, groups: Sequence[str], domains: Collection[str]) -> "RecordedPod":
        """Return the part of `pod` to record; annotations of other domains than `domains` have empty values.

        Raises:
            ValueError: its metadata or its spec is no object.
        """
        if not (isinstance(pod.get("metadata"), dict) and isinstance(pod.get("spec"), dict)):
            raise ValueError(_NO_POD)  # noqa: TRY004 - of a client, not of the code
        if scope is not None:
            read = {key: value for key, value in scope.annotations.items() if _domain(key) in domains}
            scope = Scope(read, dict(scope.labels))
        return cls(read_part(pod, domains), scope, tuple(groups))

    @classmethod
    def parse(cls, content: bytes) -> "RecordedPod":
        """Return the pod in the `content` that `serialised` returned.

        Raises:
            ValueError: it is something else.
        """
        try:
            found = orjson.loads(content)
            namespace, pod = found["namespace"], found["pod"]
            scope = None if namespace is None else Scope(dict(namespace["annotations"]), dict(namespace["labels"]))
            if isinstance(pod["metadata"], dict) and isinstance(pod["spec"], dict):
                return cls(pod, scope, tuple(found["groups"]))
        except (KeyError, TypeError) as error:
            raise ValueError(_NO_POD) from error
        raise ValueError(_NO_POD)

    def serialised(self) -> bytes:
        """Return the pod as JSON that is the same for equal ones.

        Raises:
            ValueError: it is nested too deeply.
        """
        scope = None if self.scope is None else {"annotations": self.scope.annotations, "labels": self.scope.labels}
        content = {"groups": self.groups, "namespace": scope, "pod": self.pod}
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def kept_domains(spec: PolicySpec) -> set[str]:
    """Return the domains of the annotations that are kept with their values under a policy."""
    return {_DEFAULT_DOMAIN, spec.key_domain, *spec.former_key_domains}


def read_part(pod: JsonObject, domains: Collection[str]) -> JsonObject:
    """Return what policies and the scorer read of `pod`, whose metadata and spec are objects."""
    read = fields_read(pod)
    metadata = _some(read.policy["metadata"], _METADATA)
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {
            key: value if key in _OF_SCHEDULERS or _domain(key) in domains else "" for key, value in annotations.items()
        }
    if isinstance(owners := metadata.get("ownerReferences"), list):
        metadata["ownerReferences"] = [_some(each, _OWNER) if isinstance(each, dict) else each for each in owners]
    spec = _some(read.policy["spec"], _SPEC)
    for key in ("containers", "initContainers"):
        if isinstance(found := read.containers.get(key), list):
            spec[key] = [_container(each) if isinstance(each, dict) else each for each in found]
    if volumes := read.containers.get("volumes"):
        spec["volumes"] = [_placed(each) for each in volumes]
    return {"metadata": metadata, "spec": spec}


def _container(container: JsonObject) -> JsonObject:
    return {key: container[key] for key in _CONTAINER if container.get(key) is not None}


def _placed(volume: Any) -> Any:
    """Return a volume with the parts that decide on its place; a driver can get secrets in the other ones."""
    if not isinstance(volume, dict):
        return volume
    return {key: value for key, value in volume.items() if key == "name" or key in RESTRICTING}


def _some(found: JsonObject, keys: Sequence[str]) -> JsonObject:
    return {key: found[key] for key in keys if key in found}


def _domain(key: str) -> str:
    return key.partition("/")[0]
