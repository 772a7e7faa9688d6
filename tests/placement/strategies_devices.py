"""Random devices on three nodes, claims that have got some, and a pod with claims."""

from typing import Any

from hypothesis import strategies as st

from tests.builders import make_pod
from tests.placement.device_objects import (
    DRIVER,
    allocated,
    claiming,
    constrained,
    exactly,
    first_of,
    make_claim,
    make_class,
    make_device,
    make_slice,
)
from tests.placement.oracle_devices import SELECTORS

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
    device_class = draw(st.sampled_from(("gpu", "any", "h100")))
    return exactly(name, draw(st.integers(0, 3)), *expressions, device_class=device_class, **fields)


@st.composite
def _claim(draw: st.DrawFn, name: str) -> Object:
    requests = [draw(_request(f"r{number}")) for number in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        requests.append(first_of("list", x=draw(_request("x")), y=draw(_request("y"))))
    claim = make_claim(name, *requests)
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
        allocated(make_claim(f"other-{number}", exactly()), pool, f"card-{card}")
        for number, (pool, card) in enumerate(taken)
    ]
    claims = [draw(_claim(f"own-{number}")) for number in range(draw(st.integers(1, 2)))]
    if draw(st.integers(0, 3)) == 0:
        claims[0] = allocated(claims[0], draw(st.sampled_from((*NODES, "gone"))), "card-9")
    classes = (
        make_class("gpu"),
        make_class("any", "true"),
        make_class("h100", f'device.attributes["{DRIVER}"].model == "H100"'),
    )
    pod = make_pod().spec(resourceClaims=claiming(*(claim["metadata"]["name"] for claim in claims)))
    return [*classes, *slices, *others, *claims], pod.obj()
