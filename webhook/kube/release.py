"""The release of a cluster, and the changes of kube-scheduler between releases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.documents.field import InvalidInput, invalid

# The oldest and the newest release 1.N that are modelled.
OLDEST, NEWEST = 35, 37

_VERSION = re.compile(r"v?1\.(?P<minor>\d{1,3})(?:\.\d{1,6})?(?:[-+][\w.+-]{1,100})?", re.ASCII)
_PLUGINS = "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
_ALLOCATOR = "k8s.io/dynamic-resource-allocation/structured/internal/incubating"
_GATES = "k8s.io/kubernetes/pkg/features/kube_features.go"


class _Facts(NamedTuple):
    """The release 1.N that introduced a change, a description of the change, and its source."""

    since: int
    what: str
    source: str


class Change(_Facts, Enum):
    """A change of kube-scheduler's rules or messages. That of a feature gate is its being on by default."""

    ALLOCATED_CLAIMS_SCORE = _Facts(
        36,
        "A pod with allocated and unallocated claims is scored; in 1.35, kube-scheduler fails: `Unknown`.",
        f"{_PLUGINS}/dynamicresources/dynamicresources.go, computeScore",
    )
    DEVICES_BACK_EXTENDED_RESOURCES = _Facts(
        36,
        "A DeviceClass can back an extended resource.",
        f"{_GATES}, DRAExtendedResource",
    )
    BALANCE_IS_COMPARED = _Facts(
        36,
        "`NodeResourcesBalancedAllocation` scores how much the pod improves the balance of a node; before, the "
        "balance with the pod.",
        f"{_PLUGINS}/noderesources/balanced_allocation.go, balancedResourceScorer",
    )
    PREEMPTION_NAMES_NODE = _Facts(
        37,
        "The message of a pod that evicts others ends with `preemption: found a potential placement for pod on node "
        "NODE, preempting N victims`.",
        "k8s.io/kubernetes/pkg/scheduler/framework/preemption/preemption.go, Preempt",
    )
    NO_CLAIM_IS_NO_REASON = _Facts(
        37,
        "The message of a pod without claims whose devices are released goes on with `preemption:`; before, with "
        "`no new claims to deallocate, preemption:`, or `still not schedulable, preemption:` if it has claims.",
        f"{_PLUGINS}/dynamicresources/dynamicresources.go, PostFilter",
    )
    IMAGE_VOLUMES_SCORE = _Facts(
        36,
        "`ImageLocality` counts the images of image volumes.",
        f"{_PLUGINS}/imagelocality/image_locality.go, sumImageScores",
    )
    EVERY_IN_TREE_VOLUME_IS_MIGRATED = _Facts(
        36,
        "`NodeVolumeLimits` counts in-tree volumes for their CSI driver on every node with a CSINode; before, "
        "on nodes whose CSINode lists the plugin as migrated.",
        f"{_PLUGINS}/nodevolumelimits/utils.go, isCSIMigrationOn",
    )
    NODE_DECLARED_FEATURES = _Facts(
        36,
        "`NodeDeclaredFeatures` runs.",
        f"{_GATES}, NodeDeclaredFeatures",
    )
    NODE_NAME_IS_A_PRE_FILTER = _Facts(
        37,
        "A pod with `spec.nodeName` is evaluated only on that node, and the message about the others is "
        "`node(s) didn't satisfy plugin(s) [NodeName]`; before, `NodeUnschedulable` comes first, then "
        "`node(s) didn't match the requested node name`.",
        f"{_PLUGINS}/nodename/node_name.go, PreFilter",
    )
    NAMESPACES_MATCH_BY_LABELS = _Facts(
        37,
        "A `namespaceSelector` of a pod's own terms that requires no label, such as a single `NotIn`, selects "
        "namespaces by their labels; before, every namespace.",
        f"{_PLUGINS}/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty",
    )
    IMAGE_VOLUMES_COUNT = _Facts(
        37,
        "`ImageLocality` gives 100 for 1000 MiB for each container and each image volume; before, for each container.",
        f"{_PLUGINS}/imagelocality/image_locality.go, calculatePriority",
    )
    STORAGE_CAPACITY_SCORES = _Facts(
        37,
        "`VolumeBinding` scores nodes by the share of their volumes, or of the capacity of their provisioner, that "
        "unbound claims of the pod request: the smaller, the better.",
        f"{_GATES}, StorageCapacityScoring; {_PLUGINS}/volumebinding/volume_binding.go, Score",
    )
    DRIVER_IS_INSTALLED = _Facts(
        37,
        "A CSIDriver with `preventPodSchedulingIfMissing` keeps pods with its volumes from nodes whose CSINode "
        "does not list the driver: `DRIVER CSI driver is not installed on the node`.",
        f"{_GATES}, VolumeLimitScaling; {_PLUGINS}/nodevolumelimits/csi.go, checkCSIDriverOnNode",
    )
    DEVICE_TAINT_RULES = _Facts(
        37,
        "A DeviceTaintRule taints the devices that it selects.",
        f"{_GATES}, DRADeviceTaintRules; k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go",
    )
    COUNTERS_HAVE_A_DRIVER = _Facts(
        37,
        "Pools of several drivers with the same name have their own counters; before, kube-scheduler confuses "
        "them: `Unknown`.",
        f"{_ALLOCATOR}/allocator_incubating.go, checkAvailableCounters",
    )
    SKIPPED_DEVICES_RELEASE_COUNTERS = _Facts(
        37,
        "A device that the search skips for a taint or a constraint gives its counters back; before, it keeps them "
        "until the end of the search.",
        f"{_ALLOCATOR}/allocator_incubating.go, rollbackDevice",
    )
    EVERY_DEVICE_IS_DISTINCT = _Facts(
        37,
        "`distinctAttribute` compares a device with all others of the constraint; before, with the last one of "
        "each request.",
        f"{_ALLOCATOR}/constraint.go, distinctAttributeConstraint",
    )
    ALL_DEVICES_NEED_CAPACITY = _Facts(
        37,
        "A request for all devices fails if one of them has too little capacity left; before, it leaves that "
        "device out.",
        f"{_ALLOCATOR}/allocator_incubating.go, validateDeviceRequest",
    )


@dataclass(frozen=True, slots=True)
class Release:
    """The release 1.`minor` of a cluster. `version` is its full version, or empty if the release is assumed."""

    minor: int = NEWEST
    version: str = ""

    @classmethod
    def of(cls, version: Any, path: str) -> "Release":
        """Return the release of `version`, such as `1.36`, `v1.36.3-eks-1234` or `v1.35.5+k3s1`.

        Raises:
            InvalidInput: `version` is not a version of Kubernetes; `path` is the path of the error.
        """
        found = _VERSION.fullmatch(version) if isinstance(version, str) else None
        if found is None:
            valid = f"must be a version of Kubernetes, such as 1.36 or v1.36.3; 1.{OLDEST} to 1.{NEWEST} are modelled"
            raise InvalidInput([invalid(path, version, valid)])
        return cls(int(found["minor"]), version)

    def has(self, change: Change) -> bool:
        """Return whether kube-scheduler has `change`; newer releases than the modelled ones have all, older none."""
        return self.minor >= change.since

    @property
    def note(self) -> str:
        """Return a text that names the release whose rules are used, or "" for the newest modelled release."""
        if self.minor == NEWEST:
            return ""
        modelled = min(max(self.minor, OLDEST), NEWEST)
        used = f"release {self.version}: plugins and messages are those of kube-scheduler 1.{modelled}"
        if modelled == self.minor:
            return used
        return f"{used}, the {'oldest' if self.minor < OLDEST else 'newest'} that is modelled"


ASSUMED = Release()
"""The release of a cluster that is not known to have another one."""


def is_server_version(content: Mapping[str, Any]) -> bool:
    """Return whether `content` is the output of `kubectl version -o json` with the version of the API server."""
    return "kind" not in content and "serverVersion" in content


def read_server_version(content: Mapping[str, Any]) -> Release:
    """Return the release in the output of `kubectl version -o json`.

    Raises:
        InvalidInput: the output has no valid version.
    """
    return Release.of(field(content, "serverVersion", "gitVersion"), "serverVersion.gitVersion")
