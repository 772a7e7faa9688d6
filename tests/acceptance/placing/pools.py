"""Node pools with the labels and taints of the built-in policy, and a training and an inference pod for them."""

from typing import Any

import yaml

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod

CARD = "nvidia.com/gpu.product"
H20, A100 = "NVIDIA-H20", "NVIDIA-A100-SXM4-80GB"


def pool_node(name: str, usage: str, product: str = H20, gpus: int = 8) -> dict[str, Any]:
    """A node of a pool: labelled and tainted by usage and product."""
    return make_node_object(
        name,
        labels={USAGE: usage, CARD: product, "kubernetes.io/hostname": name},
        taints=[f"{USAGE}={usage}:NoSchedule", f"{CARD}={product}:NoSchedule"],
        capacity={"cpu": "64", "memory": "512Gi", "pods": 110, "nvidia.com/gpu": gpus},
    )


def control_plane_node(name: str = "control-plane-1") -> dict[str, Any]:
    """A node that no workload may use."""
    return make_node_object(
        name, labels={"kubernetes.io/hostname": name}, taints=[f"{DOMAIN}/control-plane=:NoSchedule"]
    )


def training_pod(name: str, gpus: int = 1, product: str = H20) -> PodBuilder:
    """A training task as its user annotates it."""
    return (
        make_pod(name)
        .annotate(TYPE, "training")
        .annotate(PRODUCT, product)
        .requests(cpu="1", memory="1Gi")
        .limits(cpu="1", memory="1Gi")
        .gpu(gpus)
    )


def inference_pod(name: str, gpus: int = 1, product: str = H20) -> PodBuilder:
    """An inference replica as its user annotates it."""
    return training_pod(name, gpus, product).annotate(TYPE, "inference")


def by_hand(usage: str, product: str = H20) -> dict[str, Any]:
    """Affinity and tolerations as users write them by hand into the spec of a pod."""
    written: dict[str, Any] = yaml.safe_load(f"""
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {{key: {USAGE}, operator: In, values: [{usage}, hybrid]}}
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
        - {{key: {USAGE}, operator: In, values: [{usage}]}}
tolerations:
- {{key: {USAGE}, operator: Equal, value: {usage}, effect: NoSchedule}}
- {{key: {USAGE}, operator: Equal, value: hybrid, effect: NoSchedule}}
- {{key: {CARD}, operator: Equal, value: {product}, effect: NoSchedule}}
""")
    terms = written["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    # The webhook adds what users often leave to the taint: a toleration permits, only affinity attracts.
    terms[0]["matchExpressions"].append({"key": CARD, "operator": "In", "values": [product]})
    return written
