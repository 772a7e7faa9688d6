"""Random storage: classes, limits of nodes, volumes and claims, bound, waiting and broken ones."""

from collections.abc import Callable, Mapping, Sequence

from tests.controlplane.build import pinned_minor
from tests.differential.random_objects.constraints import HOSTNAME, POD_LABELS, ZONE, Object
from tests.differential.random_objects.dice import Dice
from tests.support.objects.storage import (
    make_attachment,
    make_capacity,
    make_csi_driver,
    make_csi_node,
    make_pv,
    make_pvc,
    make_storage_class,
)

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONES = ("z1", "z2", "z3")
_SIZES = ("1Gi", "1500Mi", "4e9")
_FREE = ("1Gi", "3Gi", "10Gi", "7e10")
_MODES = (["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"])
_CLASSES = ("made", "made", "zonal", "zonal", "local", "local", "local", "local", "at-once", "absent")
_CLAIMS = tuple(f"data-{number}" for number in range(5))


def random_storage(dice: Dice, namespaces: Sequence[str], node_names: Sequence[str]) -> tuple[Object, ...]:
    """Classes, limits, volumes, and claims in each namespace; some of the volumes are bound to these."""
    classes = [
        make_storage_class("made", provisioner="disk.example.com"),
        make_storage_class("zonal", topologies=_topologies(dice)),
        make_storage_class("local", provisioner=_NO_PROVISIONER),
        make_storage_class("at-once", waits=False),
    ]
    percent_limited = dice.choice((0, 40, 90))
    limits = [make_csi_node(name, disk=dice.randint(0, 3)) for name in node_names if dice.chance(percent_limited)]
    free = [_free_volume(dice, f"free-{number}", namespaces, node_names) for number in range(dice.randint(0, 6))]
    claims: list[Object] = []
    for namespace in namespaces:
        for name in dice.some(_CLAIMS, 3):
            claims += dice.choice(_STATES)(dice, namespace, name, node_names)
    # With one object of each, these kinds are known; the attachment changes nothing.
    known = [make_attachment(node_names[0], "gone"), make_capacity("of-another", "another", "1Gi", on={})]
    return (*classes, *_driver(dice), *known, *limits, *free, *claims)


def _driver(dice: Dice) -> list[Object]:
    """Draw the driver of all volumes, and what it has free for a class in each zone, once at most."""
    driver = make_csi_driver(tracks_capacity=dice.chance(50))
    if dice.chance(15) and pinned_minor() >= 37:
        driver["spec"]["preventPodSchedulingIfMissing"] = True
    reported = [(each, zone) for each in ("made", "zonal") for zone in _ZONES if dice.chance(80)]
    capacities = [make_capacity(f"{each}-{zone}", each, dice.choice(_FREE), on={ZONE: zone}) for each, zone in reported]
    return [driver, *capacities]


def _topologies(dice: Dice) -> list[Mapping[str, list[str]]]:
    zones = dice.some(_ZONES, 1, 2)
    return [{ZONE: zones}] if dice.chance(50) else [{ZONE: [zone]} for zone in zones]


def use_storage(dice: Dice, pods: Sequence[Object], storage: Sequence[Object], percent: float) -> None:
    """Let that many of `pods` use claims of `storage`, or some that are not there."""
    known: dict[str, list[str]] = {}
    for obj in storage:
        if obj["kind"] == "PersistentVolumeClaim":
            known.setdefault(obj["metadata"]["namespace"], []).append(obj["metadata"]["name"])
    for pod in pods:
        if dice.chance(percent):
            names = dice.some(known[pod["metadata"]["namespace"]], 1, 2 if dice.chance(30) else 1)
            names += ["missing"] if dice.chance(5) else []
            pod["spec"]["volumes"] = [
                {"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(names)
            ]


def _volume(dice: Dice, name: str, storage_class: str, node_names: Sequence[str]) -> Object:
    on = dice.choice(({}, {}, {HOSTNAME: dice.some(node_names, 1, 3)}, {ZONE: dice.some(_ZONES, 1, 2)}))
    labels = {ZONE: dice.choice((*_ZONES, "z1__z2"))} if dice.chance(20) else {}
    labels |= {"app": dice.choice(POD_LABELS["app"])} if dice.chance(50) else {}
    return make_pv(
        name, storage_class, on=on, labels=labels, storage=dice.choice(_SIZES), accessModes=dice.choice(_MODES)
    )


def _free_volume(dice: Dice, name: str, namespaces: Sequence[str], node_names: Sequence[str]) -> Object:
    """Return a volume that is not bound, or is reserved for a claim."""
    volume = _volume(dice, name, dice.choice(("local", "local", "made")), node_names)
    if dice.chance(15):
        volume["spec"]["claimRef"] = {"namespace": dice.choice(namespaces), "name": dice.choice(_CLAIMS)}
    return volume | {"status": {"phase": dice.choice(("Available", "Available", "Available", "Released"))}}


def _claim(dice: Dice, namespace: str, name: str, storage_class: str = "", volume: str = "") -> Object:
    claim = make_pvc(
        name, storage_class, volume, storage=dice.choice(_SIZES), accessModes=dice.choice((*_MODES[:2], *_MODES))
    )
    claim["metadata"]["namespace"] = namespace
    return claim


def _bound(dice: Dice, namespace: str, name: str, node_names: Sequence[str]) -> list[Object]:
    volume = _volume(dice, f"{namespace}-{name}", "", node_names)
    volume["spec"]["claimRef"] = {"namespace": namespace, "name": name}
    return [volume, _claim(dice, namespace, name, volume=volume["metadata"]["name"])]


def _waiting(dice: Dice, namespace: str, name: str, node_names: Sequence[str]) -> list[Object]:
    claim = _claim(dice, namespace, name, dice.choice(_CLASSES))
    if dice.chance(15):
        claim["spec"]["selector"] = {"matchLabels": {"app": dice.choice(POD_LABELS["app"])}}
    if dice.chance(15):
        claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = dice.choice(node_names)
    return [claim]


def _broken(dice: Dice, namespace: str, name: str, node_names: Sequence[str]) -> list[Object]:
    """Draw a bound claim with an object that is missing or is being deleted."""
    volume, claim = _bound(dice, namespace, name, node_names)
    form = dice.randint(0, 3)
    if form == 0:
        return [claim]
    if form == 1:
        return [claim | {"status": {"phase": "Lost"}}]
    if form == 2:
        claim["metadata"] |= {"finalizers": ["example.com/kept"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    else:
        claim["metadata"]["annotations"] = {}
    return [volume, claim]


_State = Callable[[Dice, str, str, Sequence[str]], list[Object]]
_STATES: tuple[_State, ...] = (*[_bound] * 5, *[_waiting] * 6, _broken)
