"""Sums over topology domains."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.index.pod_rows import Codes
from webhook.cluster.snapshot import Column


class _Domains(NamedTuple):
    """The domain of each node, or -1 for a node without one, and whether each domain has only one node."""

    codes: NDArray[np.intp]
    size: int
    are_nodes: bool


class DomainCounts:
    """The weight of running pods in topology domains. `of_nodes` is, for each node, the sum over its domains.

    `is_empty` is true if no pod was counted in any domain.
    """

    __slots__ = ("_domains", "_labels", "is_empty", "of_nodes")

    def __init__(self, labels: LabelColumns) -> None:
        self._labels = labels
        self._domains: dict[str, _Domains] = {}
        self.is_empty = True
        self.of_nodes: Column = np.zeros(labels.count, dtype=np.int64)

    def add(self, topology_key: str, pods: Codes, weight: int | NDArray[np.int64]) -> None:
        """Count `pods`, by the rows of labelled nodes, with `weight`: a number for all, or one for each."""
        codes, size, _ = self._of(topology_key)
        domains = codes[pods]
        is_somewhere = domains >= 0
        if not is_somewhere.any():
            return
        if isinstance(weight, int):
            added = np.bincount(domains[is_somewhere], minlength=size + 1) * weight
        else:
            weighed = np.bincount(domains[is_somewhere], weights=weight[is_somewhere], minlength=size + 1)
            added = weighed.astype(np.int64)
        # The last sum stands for nodes without the label; it is 0.
        self.of_nodes += added[codes]
        self.is_empty = False

    def add_one(self, topology_key: str, row: int, weight: int) -> None:
        """Count one more pod on the node in `row`. A negative `weight` removes a pod."""
        codes, _, are_nodes = self._of(topology_key)
        domain = codes.item(row)
        if domain < 0:
            return
        if are_nodes:
            self.of_nodes[row] = self.of_nodes.item(row) + weight
        else:
            self.of_nodes[codes == domain] += weight
        self.is_empty = False

    def _of(self, topology_key: str) -> _Domains:
        found = self._domains.get(topology_key)
        if found is None:
            codes, size = self._labels.domains(topology_key)
            most = int(np.bincount(codes + 1, minlength=2)[1:].max()) if len(codes) else 0
            found = self._domains[topology_key] = _Domains(codes, size, most <= 1)
        return found
