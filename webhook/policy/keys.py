"""The annotation and label keys under a policy's key domain."""

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Keys:
    """What users write on a pod or its namespace, every key with its domain."""

    workload_type: str
    gpu_product: str
    gpu_memory: str
    gpu_count: str
    gpu_driver: str
    bin_packing: str
    spread: str
    scheduler: str
    queue: str
    gang: str
    gang_size: str
    placement_check: str
    inject: str

    def __iter__(self) -> Iterator[str]:
        return (getattr(self, field.name) for field in fields(self))


def keys_of(domain: str) -> Keys:
    """The keys under `domain`: `maip.mxsf.io/workload-type` and so on."""
    return Keys(**{field.name: f"{domain}/{field.name.replace('_', '-')}" for field in fields(Keys)})
