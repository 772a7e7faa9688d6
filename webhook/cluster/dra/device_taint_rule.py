"""DeviceTaintRules: taints that an administrator adds to devices of any driver."""

from typing import NamedTuple

from webhook.cluster.dra.device import DeviceId
from webhook.kube.pod.taints import Taint
from webhook.kube.reader import Reader, reading


class DeviceTaintRule(NamedTuple):
    """The facts of a DeviceTaintRule: its taint, and the devices that it selects.

    An empty text of `selected` matches every driver, pool or device. None selects no device.

    Source: k8s.io/api/resource/v1/types.go, DeviceTaintRuleSpec, and
    k8s.io/dynamic-resource-allocation/resourceslice/tracker/tracker.go, applyPatches
    """

    taint: Taint
    selected: DeviceId | None

    @classmethod
    @reading
    def of(cls, rule: Reader) -> "DeviceTaintRule":
        """Read a DeviceTaintRule."""
        spec = rule.object("spec")
        selects_any = spec.raw.get("deviceSelector") is not None
        selected = DeviceId.read(spec.object("deviceSelector")) if selects_any else None
        return cls(Taint.read(spec.object("taint")), selected)

    def selects(self, device: DeviceId) -> bool:
        """Return whether the rule taints `device`."""
        return self.selected is not None and all(
            not wanted or wanted == name for wanted, name in zip(self.selected, device, strict=True)
        )
