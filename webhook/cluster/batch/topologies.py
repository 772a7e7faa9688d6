"""The topologies of Kueue and KAI: the node labels of their levels, from the widest to the closest."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.cluster.batch import fields


class Topology(NamedTuple):
    """A Topology. A domain of a level is one path of the labels from the first level down to it.

    Source: sigs.k8s.io/kueue/apis/kueue/v1beta1/topology_types.go;
    github.com/NVIDIA/KAI-scheduler/pkg/apis/kai/v1alpha1/topology_types.go
    """

    name: str
    levels: tuple[str, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Topology":
        """Return the facts of `content`, a raw API object."""
        levels = (fields.text(each, "nodeLabel") for each in fields.items(content, "spec", "levels"))
        return cls(fields.text(content, "metadata", "name"), tuple(filter(None, levels)))
