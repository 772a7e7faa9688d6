"""ResourceSlices: the devices that drivers publish, in pools."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from webhook.cluster.dra.device import Device, NodeAccess, read_counters, read_device, read_node_access
from webhook.cluster.dra.device_class import DEVICES_V1BETA1
from webhook.kube.cel.expression import compiled
from webhook.kube.reader import Reader, reading

PoolName = tuple[str, str]
"""A driver and the name of one of its pools."""

# The number of selectors whose results are cached for a slice.
_MOST_ANSWERS = 64


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """The facts of a ResourceSlice. `access` is None if each device has its own.

    `counter_sets` are the shared counters of the pool, by set. `consumes_counters` is true if a device of the slice
    consumes counters. `has_conditions` is true if a device of the slice has binding conditions, which must be met
    before a pod with the device is bound. A pool is complete if it has `slice_count` slices of its newest `generation`.
    """

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    access: NodeAccess | None
    devices: tuple[Device, ...]
    device_names: frozenset[str]
    counter_sets: tuple[tuple[str, Mapping[str, int]], ...]
    consumes_counters: bool
    has_conditions: bool
    _answers: dict[str, tuple[bool | None, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    @reading
    def of(cls, resource_slice: Reader) -> "ResourceSlice":
        """Read a ResourceSlice."""
        metadata, spec = resource_slice.object("metadata"), resource_slice.object("spec")
        pool, driver = spec.object("pool"), spec.text("driver")
        is_per_device = spec.boolean("perDeviceNodeSelection")
        is_nested = resource_slice.raw.get("apiVersion") == DEVICES_V1BETA1
        devices = tuple([read_device(each, driver, is_nested=is_nested) for each in spec.objects("devices")])
        return cls(
            name=metadata.text("name"),
            driver=driver,
            pool=pool.text("name"),
            generation=pool.integer("generation"),
            slice_count=pool.integer("resourceSliceCount"),
            access=None if is_per_device else read_node_access(spec),
            devices=devices,
            device_names=frozenset([each.name for each in devices]),
            counter_sets=tuple([(each.text("name"), read_counters(each)) for each in spec.objects("sharedCounters")]),
            consumes_counters=any(each.counters for each in devices),
            has_conditions=any(each.has_conditions for each in devices),
        )

    @property
    def pool_name(self) -> PoolName:
        """Return the name of the pool."""
        return self.driver, self.pool

    def has_cached(self, expression: str) -> bool:
        """Return true if the result of `expression` is cached."""
        return expression in self._answers

    def matches(self, expression: str) -> tuple[bool | None, ...]:
        """Return for each device whether the selector `expression` matches it, or None if that is not known."""
        answers = self._answers.get(expression)
        if answers is None:
            holds = compiled(expression).holds
            answers = tuple(
                [None if each.variables is None else holds({"device": each.variables}) for each in self.devices]
            )
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            self._answers[expression] = answers
        return answers


@dataclass(frozen=True, slots=True)
class Slices:
    """All ResourceSlices: the slices of single nodes by node name, the other slices, and the slices of each pool.

    `ambiguous_pools` are pool names that several drivers use for devices that consume counters. kube-scheduler confuses
    the counters of such pools.
    """

    of_node: Mapping[str, tuple[ResourceSlice, ...]]
    shared: tuple[ResourceSlice, ...]
    of_pool: Mapping[PoolName, tuple[ResourceSlice, ...]]
    ambiguous_pools: frozenset[str]

    @classmethod
    def of(cls, slices: Iterable[ResourceSlice]) -> "Slices":
        """Return the tables of `slices`, in the order of their names."""
        of_node: dict[str, list[ResourceSlice]] = {}
        of_pool: dict[PoolName, list[ResourceSlice]] = {}
        shared = []
        consuming: set[PoolName] = set()
        for each in sorted(slices, key=lambda each: each.name):
            of_pool.setdefault(each.pool_name, []).append(each)
            if each.consumes_counters:
                consuming.add(each.pool_name)
            if each.access is not None and each.access.node_name and not each.counter_sets:
                of_node.setdefault(each.access.node_name, []).append(each)
            else:
                shared.append(each)
        return cls(
            {name: tuple(found) for name, found in of_node.items()},
            tuple(shared),
            {name: tuple(found) for name, found in of_pool.items()},
            frozenset([pool for pool, count in Counter([pool for _, pool in consuming]).items() if count > 1]),
        )
