"""A plain reference implementation of DynamicResources: try every allocation of devices to a pod's claims."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from tests.oracles.oracle_cluster import Object, OracleCluster, OracleNode
from tests.oracles.oracle_kube import term_matches, tolerates_any
from tests.oracles.oracle_resources import units_of

Device = tuple[str, str, Object]
"""The driver, the pool, and the device as it stands in its slice."""
Way = list[tuple[int, str, Device]]
"""The number of a claim, the name of a request of it, and a device that it gets."""
Asked = list[tuple[int, Object, Object]]
"""The number of a claim, the claim, and a request of it."""

SELECTORS: Mapping[str, Callable[[str, Object], bool]] = {
    'device.driver == "gpu.example.com"': lambda driver, _: driver == "gpu.example.com",
    "true": lambda *_: True,
    'device.attributes["gpu.example.com"].model == "H100"': lambda _, device: value_of(device, "model") == "H100",
    'device.attributes["gpu.example.com"].numa > 0': lambda _, device: value_of(device, "numa") > 0,
}
"""The predicates of selectors by their text; every device of a test has the attributes that they read."""


def value_of(device: Object, attribute: str) -> Any:
    """Return the value of an attribute."""
    return next(iter(device["attributes"][attribute].values()))


def dynamic_resources(pod: Object, node: OracleNode, cluster: OracleCluster) -> list[str]:
    """Return the reasons of DynamicResources to reject the node."""
    if not claims_of(pod, cluster) and not extended_claim(pod, node, cluster):
        return []
    if cluster.is_without_pods and next(allocations(pod, node, cluster, anew=True), None) is not None:
        return []
    if next(allocations(pod, node, cluster), None) is None:
        return ["cannot allocate all claims"]
    if any(not is_reached(claim, node) for claim in claims_of(pod, cluster) if is_allocated(claim)):
        return ["resourceclaim not available on the node"]
    return []


def dynamic_resources_scores(pod: Object, nodes: list[OracleNode], cluster: OracleCluster) -> list[int]:
    """100 for the nodes where the claims come furthest up in their lists."""
    if not claims_of(pod, cluster):
        return [0] * len(nodes)  # the claim for extended resources has no lists
    sums = [sum(worth(pod, name, cluster) for name in names_given(pod, node, cluster)) for node in nodes]
    largest = max(sums)
    return [100 * each // largest if largest else 0 for each in sums]


def names_given(pod: Object, node: OracleNode, cluster: OracleCluster) -> set[str]:
    given = {f"{number} {name}" for number, name, _ in next(allocations(pod, node, cluster))}
    for number, claim in enumerate(claims_of(pod, cluster)):
        if is_allocated(claim):
            results = claim["status"]["allocation"]["devices"]["results"]
            given |= {f"{number} {result['request']}" for result in results}
    return given


def worth(pod: Object, name: str, cluster: OracleCluster) -> int:
    """8 for the first of a list, 7 for the second, …; nothing for a request that is no list."""
    number, _, request = name.partition(" ")
    claims = claims_of(pod, cluster)
    for each in claims[int(number)]["spec"]["devices"]["requests"] if int(number) < len(claims) else ():
        for place, alternative in enumerate(each.get("firstAvailable") or []):
            if request == f"{each['name']}/{alternative['name']}":
                return 8 - place
    return 0


def claims_of(pod: Object, cluster: OracleCluster) -> list[Object]:
    by_name = {claim["metadata"]["name"]: claim for claim in cluster.of_kind("ResourceClaim", "default")}
    return [by_name[use["resourceClaimName"]] for use in pod["spec"].get("resourceClaims") or []]


def class_behind(resource: str, cluster: OracleCluster) -> str:
    """Return the class that backs the extended resource; a test has at most one for each resource."""
    for each in cluster.others:
        if each["kind"] == "DeviceClass":
            name = str(each["metadata"]["name"])
            if resource in (f"deviceclass.resource.kubernetes.io/{name}", each["spec"].get("extendedResourceName")):
                return name
    return ""


def extended_claim(pod: Object, node: OracleNode, cluster: OracleCluster) -> Object | None:
    """Return the claim for the extended resources that a class backs and the node does not offer."""
    init_containers = pod["spec"].get("initContainers") or []
    containers = [*init_containers, *pod["spec"]["containers"]]
    resources = {name for each in containers for name in requests_of(each)}
    requests = []
    for resource in sorted(resources):
        name = class_behind(resource, cluster)
        if not name or node.allocatable(resource):
            continue
        amounts = [requests_of(each).get(resource, 0) for each in containers]
        ends = [
            place < len(init_containers) and each.get("restartPolicy") != "Always"
            for place, each in enumerate(containers)
        ]
        lacking = [
            amounts[place] - sum(amounts[later] for later in range(place, len(containers)) if not ends[later])
            if ends[place]
            else 0
            for place in range(len(containers))
        ]
        for place, container in enumerate(containers):
            is_largest = lacking[place] == max(lacking) and lacking[place] not in lacking[:place]
            count = (max(0, lacking[place]) if is_largest else 0) if ends[place] else amounts[place]
            if count:
                position = sorted(requests_of(container)).index(resource)
                wanted = {"deviceClassName": name, "allocationMode": "ExactCount", "count": count}
                requests.append({"name": f"container-{place}-request-{position}", "exactly": wanted})
    requests.sort(key=lambda request: str(request["name"]))
    return {"spec": {"devices": {"requests": requests}}} if requests else None


def requests_of(container: Object) -> dict[str, int]:
    amounts = (container.get("resources") or {}).get("requests") or {}
    return {name: units_of(amount) for name, amount in amounts.items()}


def is_allocated(claim: Object) -> bool:
    return "status" in claim


def is_reached(claim: Object, node: OracleNode) -> bool:
    terms = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return any(term_matches(term, node.labels, node.name) for term in terms)


def allocations(pod: Object, node: OracleNode, cluster: OracleCluster, *, anew: bool = False) -> Iterator[Way]:
    """Yield the allocations in kube-scheduler's order: the number of the claim, the name of the request, its device.

    `anew`: claims that have got devices look for others.
    """
    requests = [
        (number, claim, request)
        for number, claim in enumerate(claims_of(pod, cluster))
        if anew or not is_allocated(claim)
        for request in claim["spec"]["devices"]["requests"]
    ]
    if extended := extended_claim(pod, node, cluster):
        number = len(claims_of(pod, cluster))
        requests += [(number, extended, request) for request in extended["spec"]["devices"]["requests"]]
    for way in ways(requests, devices_of(node, cluster), cluster):
        if all(agrees(claim, number, way) for number, claim, _ in requests):
            yield way


Held = tuple[int, Device, Asked]


def ways(requests: Asked, devices: list[Device], cluster: OracleCluster, held: tuple[Held, ...] = ()) -> Iterator[Way]:
    """Yield every way to give each of `requests` its devices, beside those that earlier ones hold."""
    if not requests:
        yield []
        return
    (number, _, request), *others = requests
    for name, wanted in alternatives(request):
        suitable = [device for device in devices if takes(wanted, device, cluster)]
        count = len(suitable) if wanted.get("allocationMode") == "All" else wanted["count"]
        usable = [
            device
            for device in suitable
            if is_free(wanted, device, cluster)
            and not any(excludes(own, taken, (number, name, device), after) for own, taken, after in held)
        ]
        for chosen in combinations(usable, count) if count else ():
            now = (*held, *((number, device, others) for device in chosen))
            for rest in ways(others, devices, cluster, now):
                yield [*((number, name, device) for device in chosen), *rest]


def excludes(number: int, taken: Device, later: tuple[int, str, Device], others: Asked) -> bool:
    """Return whether a later request loses its device to the claim `number`. Administrative access allocates none."""
    own, name, device = later
    looks = any((own, name) == (each, request["name"]) and is_of_administrator(request) for each, _, request in others)
    return device is taken and (own == number or not looks)


def is_of_administrator(request: Object) -> bool:
    return bool(request.get("exactly", {}).get("adminAccess"))


def alternatives(request: Object) -> list[tuple[str, Object]]:
    if "exactly" in request:
        return [(request["name"], request["exactly"])]
    return [(f"{request['name']}/{each['name']}", each) for each in request["firstAvailable"]]


def takes(wanted: Object, device: Device, cluster: OracleCluster) -> bool:
    driver, _, content = device
    device_class = next(
        each
        for each in cluster.others
        if each["kind"] == "DeviceClass" and each["metadata"]["name"] == wanted["deviceClassName"]
    )
    selectors = [*device_class["spec"]["selectors"], *wanted.get("selectors", [])]
    return all(SELECTORS[selector["cel"]["expression"]](driver, content) for selector in selectors)


def is_free(wanted: Object, device: Device, cluster: OracleCluster) -> bool:
    if cluster.is_without_pods:
        return True
    driver, pool, content = device
    bad = [taint for taint in content.get("taints") or [] if taint["effect"] in ("NoSchedule", "NoExecute")]
    if not all(tolerates_any(wanted.get("tolerations") or [], taint) for taint in bad):
        return False
    if wanted.get("adminAccess"):
        return True
    results = [
        result
        for claim in cluster.of_kind("ResourceClaim", "default")
        if "status" in claim
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    return (driver, pool, content["name"]) not in [(each["driver"], each["pool"], each["device"]) for each in results]


def agrees(claim: Object, number: int, way: Way) -> bool:
    for constraint in claim["spec"]["devices"].get("constraints") or []:
        _, _, attribute = constraint["matchAttribute"].partition("/")
        concerned = constraint.get("requests")
        values = {
            value_of(device[2], attribute)
            for of_claim, name, device in way
            if of_claim == number and (not concerned or name in concerned or name.partition("/")[0] in concerned)
        }
        if len(values) > 1:
            return False
    return True


def devices_of(node: OracleNode, cluster: OracleCluster) -> list[Device]:
    """Return the devices that the node reaches, pool by pool; each slice of a test is a pool of its own."""
    slices = [
        each["spec"]
        for each in cluster.others
        if each["kind"] == "ResourceSlice"
        and (each["spec"].get("nodeName") == node.name or each["spec"].get("allNodes"))
    ]
    slices.sort(key=lambda spec: (spec["driver"], spec["pool"]["name"]))
    return [(spec["driver"], spec["pool"]["name"], device) for spec in slices for device in spec["devices"]]
