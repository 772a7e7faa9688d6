"""Sums over topology domains."""

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.index.pod_rows import Codes
from webhook.cluster.snapshot import Column, Rows


class DomainCounts:
    """The weight of running pods in each topology domain; a node has the sum of its domains over all keys."""

    __slots__ = ("_labels", "_sums")

    def __init__(self, labels: LabelColumns) -> None:
        self._labels = labels
        self._sums: dict[str, Column] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether no pod was counted in any domain."""
        return not self._sums

    def add(self, topology_key: str, pods: Codes, weight: int | NDArray[np.int64]) -> None:
        """Count `pods`, given as the rows of their nodes, with one `weight` or one each.

        Pods on nodes without the label are not counted.
        """
        codes, size = self._labels.domains(topology_key)
        domains = codes[pods]
        is_somewhere = domains >= 0
        if not is_somewhere.any():
            return
        if isinstance(weight, int):
            added = np.bincount(domains[is_somewhere], minlength=size + 1) * weight
        else:
            weighed = np.bincount(domains[is_somewhere], weights=weight[is_somewhere], minlength=size + 1)
            added = weighed.astype(np.int64)
        known = self._sums.get(topology_key)
        self._sums[topology_key] = added if known is None else known + added

    def add_one(self, topology_key: str, row: int, weight: int) -> None:
        """Count one more pod on the node in `row`; a negative `weight` removes one."""
        codes, size = self._labels.domains(topology_key)
        domain = int(codes[row])
        if domain < 0:
            return
        known = self._sums.get(topology_key)
        if known is None:
            known = self._sums[topology_key] = np.zeros(size + 1, dtype=np.int64)
        known[domain] += weight

    def sums(self, rows: Rows) -> Column:
        """Return the weight of each node in `rows`."""
        total = np.zeros(len(rows), dtype=np.int64)
        for topology_key, sums in self._sums.items():
            # The last sum stands for nodes without the label; it is 0.
            total += sums[self._labels.domains(topology_key).codes[rows]]
        return total
