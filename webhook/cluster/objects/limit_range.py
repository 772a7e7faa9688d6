"""LimitRanges: default resources for the containers of a namespace, and limits for the requests of pods."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.kube.pod.amounts import read_quantities
from webhook.kube.reader import Reader, reading

OF_CONTAINERS, OF_PODS = "Container", "Pod"
_PARTS = ("default", "defaultRequest", "min", "max", "maxLimitRequestRatio")
Quantities = Mapping[str, str]


class LimitRangeItem(NamedTuple):
    """One item of a LimitRange. Quantities are as the API server prints them."""

    type: str
    default: Quantities
    default_request: Quantities
    min: Quantities
    max: Quantities
    max_limit_request_ratio: Quantities

    @classmethod
    def read(cls, item: Reader) -> "LimitRangeItem":
        """Read an item, and complete its defaults as the API server does.

        Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem
        """
        default, request, least, most, ratio = (read_quantities(item, each) for each in _PARTS)
        of_type = item.text("type")
        if of_type == OF_CONTAINERS:
            default = {**most, **default}
            request = {**least, **default, **request}
        return cls(of_type, default, request, least, most, ratio)


class LimitRange(NamedTuple):
    """A LimitRange."""

    namespace: str
    name: str
    items: tuple[LimitRangeItem, ...]

    @classmethod
    @reading
    def of(cls, content: Reader) -> "LimitRange":
        """Read a LimitRange."""
        metadata, limits = content.object("metadata"), content.object("spec").objects("limits")
        items = tuple([LimitRangeItem.read(each) for each in limits])
        return cls(metadata.text("namespace"), metadata.text("name"), items)
