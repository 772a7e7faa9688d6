"""DeviceTaintRules: taints that an administrator adds to devices of any driver."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.cluster.dra.device import DeviceId
from webhook.kube.pod.taints import Taint
from webhook.kube.reader import Reader

Object = Mapping[str, Any]


class DeviceTaintRule(NamedTuple):
    """The facts of a DeviceTaintRule: its taint, and the devices that it selects.

    An empty text of `selected` matches every driver, pool or device. None selects no device.

    Source: k8s.io/api/resource/v1/types.go, DeviceTaintRuleSpec, and
    k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go, applyPatches
    """

    taint: Taint
    selected: DeviceId | None

    @classmethod
    def of(cls, rule: Object) -> "DeviceTaintRule":
        """Return the facts of `rule`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        spec = reader.object(rule.get("spec"), "spec")
        taint = reader.object(spec.get("taint"), "spec.taint")
        where = "spec.deviceSelector"
        selector = reader.object(spec.get("deviceSelector"), where)
        names = [reader.text(selector.get(key), f"{where}.{key}") for key in ("driver", "pool", "device")]
        facts = cls(
            Taint(*[reader.text(taint.get(key), f"spec.taint.{key}") for key in ("key", "value", "effect")]),
            None if spec.get("deviceSelector") is None else DeviceId(*names),
        )
        reader.finish()
        return facts

    def selects(self, device: DeviceId) -> bool:
        """Return whether the rule taints `device`."""
        return self.selected is not None and all(
            not wanted or wanted == name for wanted, name in zip(self.selected, device, strict=True)
        )
