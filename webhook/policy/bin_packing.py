"""Settings of bin-packing."""

from typing import Literal

from webhook.kube import wellknown
from webhook.policy.fields import LabelKey, LabelValue, StrictModel, Weight


class BinPacking(StrictModel):
    """Settings of bin-packing: a label, and a preferred podAffinity for it."""

    label_key: LabelKey = "jobtype"
    """Key of the label of packed pods."""

    label_value: LabelValue = "binpacked"
    """Value of the label of packed pods."""

    weight: Weight = 100
    """Weight of the preferred podAffinity, 1 to 100."""

    topology_key: LabelKey = wellknown.HOSTNAME_LABEL
    """The topology domain that is filled before the next one is used."""

    namespaces: Literal["all", "same"] = "all"
    """The packed pods that a pod prefers to join. `all`: those of every namespace. `same`: those of its own namespace;
    for clusters whose ResourceQuotas of scope CrossNamespacePodAffinity would reject the pod."""
