"""The pods of an audit log as arrivals."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import orjson

from webhook.analysis.simulation.arrival import Arrival, JsonObject
from webhook.documents.field import InvalidInput
from webhook.placement.scorer import PodSignature

_METADATA = ("labels", "annotations", "ownerReferences", "namespace")


class CreatedPods:
    """Makes arrivals of the pods that were created; equal pods share one object. `is_card` knows the resources."""

    def __init__(self, is_card: Callable[[str], bool]) -> None:
        self._is_card = is_card
        self._shared: dict[bytes, JsonObject] = {}

    def arrival(self, at_seconds: float, namespace: str, pod: JsonObject, place: str) -> Arrival:
        """Return the arrival of a pod, a raw API object that has a spec; it never ends.

        Raises:
            InvalidInput: the pod is malformed.
        """
        kept = {key: value for key, value in (pod.get("metadata") or {}).items() if key in _METADATA}
        content = {"metadata": {"name": "trace", **kept, "namespace": namespace}, "spec": pod["spec"]}
        content = self._shared.setdefault(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), content)
        try:
            requests = PodSignature.of(content).info.requests
        except InvalidInput as error:
            raise InvalidInput(each.prefixed(place) for each in error.errors) from error
        cards = sum(amount for name, amount in requests if self._is_card(name))
        return Arrival(at_seconds, None, content, cards, place)


def from_first(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return the arrivals, at least one, with times from the first one on."""
    found = list(arrivals)
    first = min(each.at_seconds for each in found)
    return [replace(each, at_seconds=round(each.at_seconds - first, 6)) for each in found]
