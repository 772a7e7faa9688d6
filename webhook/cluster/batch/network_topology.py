"""The request of a group of Volcano to run within one HyperNode, and the keys of such domains."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.cluster.batch import fields
from webhook.documents.documents import field
from webhook.kube.names import VOLCANO_SOFT, VOLCANO_TIER, VOLCANO_TOPOLOGY

UNKNOWN_DOMAIN = "its networkTopology"
"""The key that stands for the HyperNodes of a request whose tier or HyperNodes are not known. No label has it."""
_KEY = "HyperNodes up to tier "


def key_of_tier(tier: int) -> str:
    """Return the key that stands for the label of a domain: the HyperNodes of `tier` and below. No label has it."""
    return f"{_KEY}{tier}"


def tier_of_key(key: str) -> int | None:
    """Return the tier of a key of `key_of_tier`, or None if `key` is that of a label."""
    return int(key.removeprefix(_KEY)) if key.startswith(_KEY) else None


class NetworkTopology(NamedTuple):
    """The request that a group runs within one HyperNode, of a tier that is at most `tier`, or that of `tier_name`.

    If `is_hard` is false, it is a preference. If `part` is not 0, the group has parts of so many pods, which each run
    within a HyperNode of their own. `subgroups` is the field by which parts of the group have other requests of their
    own, or empty.

    Source: volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go, NetworkTopologySpec and SubGroupPolicySpec
    """

    is_hard: bool
    tier: int | None
    tier_name: str = ""
    subgroups: str = ""
    part: int = 0

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "NetworkTopology | None":
        """Return the request in `spec`, that of a PodGroup or a Job of Volcano, or None if it has none."""
        written = field(spec, "networkTopology")
        parts = [field(each, "networkTopology") for each in fields.items(spec, "subGroupPolicy")]
        is_hard = any(isinstance(each, Mapping) and each.get("mode") != VOLCANO_SOFT for each in (written, *parts))
        if not isinstance(written, Mapping) and not is_hard:
            return None
        tier = fields.number(written, "highestTierAllowed")
        name = fields.text(written, "highestTierName")
        return cls(is_hard, None if tier is None else int(tier), name, "subGroupPolicy" if any(parts) else "")

    @classmethod
    def of_job(cls, spec: Mapping[str, Any]) -> "NetworkTopology | None":
        """Return the request in `spec`, that of a Job of Volcano, or of the partitions of its only task with pods.

        Source: volcano.sh/volcano/pkg/controllers/job/job_controller_actions.go, getSubGroupPolicy
        """
        whole, tasks = cls.of(spec), [each for each in fields.items(spec, "tasks") if field(each, "replicas") != 0]
        policies = [policy for each in tasks if isinstance(policy := field(each, "partitionPolicy"), Mapping)]
        parts = [part for each in policies if (part := cls.of(each)) is not None and part.is_hard]
        if not parts:
            return whole
        size = fields.count(policies[0], "partitionSize")
        if len(tasks) == 1 and size and (whole is None or not whole.is_hard):
            return parts[0]._replace(part=size)
        return (whole or parts[0])._replace(is_hard=True, subgroups="partitionPolicy")

    @classmethod
    def of_annotations(cls, annotations: Mapping[str, Any]) -> "NetworkTopology | None":
        """Return the request in the `annotations` of a pod, or None if they have none.

        Source: volcano.sh/volcano/pkg/controllers/podgroup/pg_controller_handler.go, parseNetworkTopologyFromPod
        """
        if annotations.keys().isdisjoint((VOLCANO_TOPOLOGY, VOLCANO_TIER)):
            return None
        tier = str(annotations.get(VOLCANO_TIER))
        is_soft = str(annotations.get(VOLCANO_TOPOLOGY)).lower() == VOLCANO_SOFT
        return cls(not is_soft, int(tier) if tier.isascii() and tier.isdigit() and len(tier) <= 9 else None)
