"""Random devices on three nodes, claims that have got some, and a pod with claims."""

from typing import Any

from hypothesis import strategies as st

from tests.oracles.oracle_devices import SELECTORS
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.devices import (
    DRIVER,
    allocated,
    claiming,
    constrained,
    exactly,
    first_of,
    make_counters,
    make_device,
    make_device_class,
    make_part,
    make_resource_claim,
    make_shared_device,
    make_slice,
)

Object = dict[str, Any]

NODES = ("a", "b", "c")
_SELECTORS = tuple(SELECTORS)
_TAINT = {"key": "health", "value": "bad", "effect": "NoSchedule"}
_TOLERATION = {"key": "health", "operator": "Exists"}


@st.composite
def _devices(draw: st.DrawFn) -> list[Object]:
    count = draw(st.integers(0, 4))
    return [
        make_device(
            f"card-{number}",
            model=draw(st.sampled_from(("H100", "A100"))),
            numa=draw(st.integers(0, 1)),
            taints=[_TAINT] if draw(st.integers(0, 5)) == 0 else [],
        )
        for number in range(count)
    ]


@st.composite
def _request(draw: st.DrawFn, name: str) -> Object:
    expressions = draw(st.lists(st.sampled_from(_SELECTORS), max_size=2))
    fields: Object = {"tolerations": [_TOLERATION]} if draw(st.booleans()) else {}
    if draw(st.integers(0, 5)) == 0:
        fields["adminAccess"] = True
    device_class = draw(st.sampled_from(("gpu", "any", "h100")))
    return exactly(name, draw(st.integers(0, 3)), *expressions, device_class=device_class, **fields)


@st.composite
def _claim(draw: st.DrawFn, name: str) -> Object:
    requests = [draw(_request(f"r{number}")) for number in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        alternatives = {each: draw(_request(each)) for each in ("x", "y")}
        for each in alternatives.values():
            each["exactly"].pop("adminAccess", None)
        requests.append(first_of("list", **alternatives))
    claim = make_resource_claim(name, *requests)
    # To ask for all devices and to bar some of them is an error of the claim.
    takes_all = any('"All"' in str(request).replace("'", '"') for request in requests)
    if not takes_all and draw(st.booleans()):
        of_list = (("list/x",), ("list", "r0")) if len(requests) > 1 and requests[-1]["name"] == "list" else ()
        concerned = draw(st.sampled_from(((), ("r0",), *of_list)))
        claim = constrained(claim, f"{DRIVER}/numa", *concerned)
    return claim


@st.composite
def device_worlds(draw: st.DrawFn) -> tuple[list[Object], Object]:
    """Device objects for the nodes NODES, and a pod that claims some."""
    slices = [make_slice(name, *draw(_devices())) for name in NODES if draw(st.integers(0, 4))]
    if draw(st.booleans()):
        slices.append(make_slice("", *draw(_devices()), pool="beside", allNodes=True))
    slices.append(make_slice("elsewhere"))
    taken = draw(st.lists(st.tuples(st.sampled_from(NODES), st.integers(0, 3)), max_size=4, unique=True))
    others = [
        allocated(make_resource_claim(f"other-{number}", exactly()), pool, f"card-{card}")
        for number, (pool, card) in enumerate(taken)
    ]
    is_extended = draw(st.integers(0, 2)) == 0
    # The oracle tries every way: more requests would take it too long.
    count = draw(st.just(0) if is_extended else st.integers(1, 2))
    claims = [draw(_claim(f"own-{number}")) for number in range(count)]
    requests = [request for claim in claims for request in claim["spec"]["devices"]["requests"]]
    for request in requests if len(requests) > 2 else ():
        request.get("exactly", {}).pop("adminAccess", None)
    if claims and draw(st.integers(0, 3)) == 0:
        claims[0] = allocated(claims[0], draw(st.sampled_from((*NODES, "gone"))), "card-9")
    classes = (
        make_device_class("gpu", extended_resource="example.com/gpu"),
        make_device_class("any", "true"),
        make_device_class(
            "h100", f'device.attributes["{DRIVER}"].model == "H100"', extended_resource="example.com/h100"
        ),
    )
    pod = draw(_extended_pod()) if is_extended else make_pod()
    pod = pod.spec(resourceClaims=claiming(*(claim["metadata"]["name"] for claim in claims)))
    return [*classes, *slices, *others, *claims], pod.obj()


@st.composite
def _extended_pod(draw: st.DrawFn) -> PodBuilder:
    """A pod that requests devices by extended resources."""
    resources = ("example.com/gpu", "example.com/h100", "deviceclass.resource.kubernetes.io/any")
    pod = make_pod()
    for place in range(draw(st.integers(0, 2))):
        add = draw(st.sampled_from((PodBuilder.container, PodBuilder.init_container, PodBuilder.sidecar)))
        pod = add(pod, f"c{place}", **{draw(st.sampled_from(resources)): 1})
    return pod.gpu(draw(st.integers(1, 2)), draw(st.sampled_from(resources)))


_POLICIES: tuple[Object | None, ...] = (
    None,
    {"default": "2", "validValues": ["2", "4"]},
    {"default": "1", "validRange": {"min": "1", "max": "5", "step": "2"}},
    {"default": "3", "validRange": {"min": "2"}},
)


@st.composite
def _parts(draw: st.DrawFn) -> list[Object]:
    """Devices that are handed out whole or in parts, some of them tainted."""
    devices = []
    for number in range(draw(st.integers(1, 5))):
        fields: Object = {
            "model": draw(st.sampled_from(("H100", "A100"))),
            "numa": draw(st.integers(0, 2)),
            "taints": [_TAINT] if draw(st.integers(0, 4)) == 0 else [],
        }
        kind = draw(st.sampled_from(("whole", "part", "part", "shared")))
        if kind == "whole":
            devices.append(make_device(f"card-{number}", {"memory": "4"}, **fields))
        elif kind == "part":
            memory, cores = draw(st.integers(0, 3)), draw(st.integers(0, 3))
            devices.append(make_part(f"card-{number}", {"memory": str(memory), "cores": str(cores)}, **fields))
        else:
            policy = draw(st.sampled_from(_POLICIES))
            devices.append(make_shared_device(f"card-{number}", {"memory": "6"}, policy, **fields))
    return devices


@st.composite
def _pool(draw: st.DrawFn, node: str) -> list[Object]:
    amounts = {"memory": str(draw(st.integers(2, 6))), "cores": str(draw(st.integers(2, 6)))}
    return [make_slice(node, *draw(_parts()), count=2), make_counters(node, amounts, count=2)]


@st.composite
def _request_of_parts(draw: st.DrawFn, name: str) -> Object:
    fields: Object = {"tolerations": [_TOLERATION]} if draw(st.booleans()) else {}
    if draw(st.integers(0, 3)) == 0:
        fields["capacity"] = {"requests": {"memory": str(draw(st.integers(1, 5)))}}
    elif draw(st.integers(0, 4)) == 0:
        fields["adminAccess"] = True
    expressions = draw(st.lists(st.sampled_from(_SELECTORS), max_size=1))
    return exactly(name, draw(st.sampled_from((1, 1, 1, 2, 3, 0))), *expressions, device_class="gpu", **fields)


@st.composite
def _claim_of_parts(draw: st.DrawFn, name: str) -> Object:
    requests = [draw(_request_of_parts(f"r{number}")) for number in range(draw(st.integers(1, 2)))]
    if draw(st.integers(0, 2)) == 0:
        alternatives = {each: draw(_request_of_parts(each)) for each in ("x", "y")}
        for each in alternatives.values():
            each["exactly"].pop("adminAccess", None)
        requests.append(first_of("list", **alternatives))
    claim = make_resource_claim(name, *requests)
    if any("All" in str(request) for request in requests):
        return claim
    for distinct in draw(st.sampled_from(((), (True,), (False,), (True, False), (False, True)))):
        attribute = draw(st.sampled_from(("numa", "model")))
        concerned = draw(st.sampled_from(((), ("r0",))))
        claim = constrained(claim, f"{DRIVER}/{attribute}", *concerned, distinct=distinct)
    return claim


@st.composite
def parted_worlds(draw: st.DrawFn) -> tuple[list[Object], Object]:
    """Objects of devices that are handed out in parts, for the nodes NODES, and a pod that claims some."""
    slices = [each for name in NODES for each in draw(_pool(name))]
    by_name = {
        (each["spec"]["pool"]["name"], device["name"]): device
        for each in slices
        for device in each["spec"].get("devices", [])
    }
    others = []
    taken = draw(st.lists(st.sampled_from(sorted(by_name)), max_size=3, unique=True)) if by_name else []
    for number, (pool, card) in enumerate(taken):
        fields: Object = {}
        if by_name[pool, card].get("allowMultipleAllocations"):
            share = f"00000000-0000-4000-8000-{number:012}"
            fields = {"shareID": share, "consumedCapacity": {"memory": str(draw(st.integers(1, 5)))}}
        others.append(allocated(make_resource_claim(f"other-{number}", exactly()), pool, card, **fields))
    if not others:
        others.append(allocated(make_resource_claim("other-0", exactly()), "gone", "card-9"))
    claims = [draw(_claim_of_parts(f"own-{number}")) for number in range(draw(st.integers(1, 2)))]
    pod = make_pod().spec(resourceClaims=claiming(*(claim["metadata"]["name"] for claim in claims)))
    return [make_device_class("gpu"), *slices, *others, *claims], pod.obj()
