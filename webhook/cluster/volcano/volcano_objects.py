"""The objects of Volcano in a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.cluster.batch.queues import PodGroup, VolcanoQueue
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.volcano.hyper_nodes import HyperNodes


@dataclass(frozen=True, slots=True)
class VolcanoObjects:
    """The objects of Volcano by name, or by namespace and name, and the configuration in a cluster file.

    None means not known.
    """

    queues: Mapping[str, VolcanoQueue] | None = None
    groups: Mapping[tuple[str, str], PodGroup] | None = None
    hyper_nodes: HyperNodes | None = None
    configuration: VolcanoConfiguration | None = None


NO_VOLCANO = VolcanoObjects()
