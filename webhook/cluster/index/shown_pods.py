"""The table of the pods that a working snapshot shows. It is changed in place."""

from webhook.cluster.index.layered_pod_classes import LayeredPodClasses
from webhook.cluster.index.pod_classes import PodIdentity
from webhook.cluster.index.pod_rows import PodRows
from webhook.cluster.index.running_pods import RunningPods

_MOST_NUMBERED = 1024


class ShownPods(RunningPods):
    """The pods of `base` and added pods, whose classes are kept separate from those of `base`. Not thread-safe.

    The arrays are updated when they are read, because for most pods no plugin reads them.
    """

    classes: LayeredPodClasses
    __slots__ = ("_carrier_changes", "_carrier_count", "_changes", "_is_any_terminating", "_numbers")

    def __init__(self, base: RunningPods) -> None:
        classes = LayeredPodClasses(base.classes, base.class_count)
        super().__init__(classes, base.class_count, base.pods, base.carriers)
        # The number of pods of a class that a row has more than the arrays.
        self._changes: dict[tuple[int, int], int] = {}
        self._carrier_changes: dict[tuple[int, int], int] = {}
        self._carrier_count = len(base.carriers)
        self._is_any_terminating = base.is_any_terminating
        # By the identity of the labels, which pods of one template share.
        self._numbers: dict[int, tuple[PodIdentity, int]] = {}

    @property
    def pods(self) -> PodRows:
        """Return the pods."""
        if self._changes:
            self._pods = self._pods.changed(self._changes)
            self._changes.clear()
        return self._pods

    @property
    def carriers(self) -> PodRows:
        """Return the pods with pod affinity terms of their own."""
        if self._carrier_changes:
            self._carriers = self._carriers.changed(self._carrier_changes)
            self._carrier_changes.clear()
        return self._carriers

    @property
    def has_terms(self) -> bool:
        """Return true if a pod has pod affinity terms of its own."""
        return self._carrier_count > 0

    @property
    def is_any_terminating(self) -> bool:
        """Return whether pods of a class are being deleted."""
        return self._is_any_terminating

    def add(self, pod: PodIdentity, row: int) -> int:
        """Add `pod` on the node in `row`, and return the number of its class."""
        return self._change(pod, row, 1)

    def remove(self, pod: PodIdentity, row: int) -> int:
        """Remove `pod`, which is on the node in `row`, and return the number of its class."""
        return self._change(pod, row, -1)

    def _change(self, pod: PodIdentity, row: int, count: int) -> int:
        number = self._number(pod)
        _add(self._changes, (number, row), count)
        if pod.terms:
            _add(self._carrier_changes, (number, row), count)
            self._carrier_count += count
        self._last_selected.clear()
        return number

    def _number(self, pod: PodIdentity) -> int:
        labels, terms = pod.labels, pod.terms
        known = self._numbers.get(id(labels))
        if known is not None:
            like, number = known
            is_same = like.labels is labels and like.terms is terms and like.namespace == pod.namespace
            if is_same and like.is_terminating == pod.is_terminating:
                return number
        if len(self._numbers) >= _MOST_NUMBERED:
            self._numbers.clear()
        number = self.classes.number(pod)
        self._numbers[id(labels)] = pod, number
        self.class_count = len(self.classes)
        self._is_any_terminating = self._is_any_terminating or pod.is_terminating
        return number


def _add(counts: dict[tuple[int, int], int], place: tuple[int, int], count: int) -> None:
    if left := counts.get(place, 0) + count:
        counts[place] = left
    else:
        del counts[place]
