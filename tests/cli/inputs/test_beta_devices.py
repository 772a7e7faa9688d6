"""Claims, classes and slices of a beta version mean what those of `resource.k8s.io/v1` mean."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    DRIVER,
    claiming,
    exactly,
    first_of,
    make_device,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

Object = dict[str, Any]


def as_v1beta1(content: Object) -> Object:
    """Return a ResourceClaimTemplate, DeviceClass or ResourceSlice of v1 with the fields of v1beta1."""
    content = as_version("v1beta1")(content)
    if content["kind"] == "ResourceClaimTemplate":
        devices = content["spec"]["spec"]["devices"]
        requests = [{**each, **each.pop("exactly", {})} for each in map(dict, devices["requests"])]
        return {**content, "spec": {"spec": {"devices": {**devices, "requests": requests}}}}
    if content["kind"] == "ResourceSlice":
        devices = [{"name": each.pop("name"), "basic": each} for each in map(dict, content["spec"]["devices"])]
        return {**content, "spec": {**content["spec"], "devices": devices}}
    return content


def as_version(version: str) -> Callable[[Object], Object]:
    return lambda content: {**content, "apiVersion": f"resource.k8s.io/{version}"}


CHOSEN = f'device.attributes["{DRIVER}"].model == "h"'
CARDS = [make_device(f"card-{number}", model="h") for number in range(2)]
OTHER = make_device("other", model="l")


@pytest.mark.parametrize("convert", [as_v1beta1, as_version("v1beta2"), as_version("v1")])
@pytest.mark.parametrize(
    ("request_", "verdict"),
    [
        pytest.param(exactly("r", 2, CHOSEN), "Feasible", id="enough"),
        pytest.param(exactly("r", 3, CHOSEN), "Infeasible", id="too many"),
        pytest.param(first_of("r", a=exactly("a", 3, CHOSEN), b=exactly("b", 2, CHOSEN)), "Feasible", id="alternative"),
    ],
)
def test_objects_of_a_beta_version_count(
    run: Run, tmp_path: Path, convert: Callable[[Object], Object], request_: Object, verdict: str
) -> None:
    template = make_resource_claim("t", request_, template=True)
    cluster = tmp_path / "cluster.json"
    of_cluster = map(convert, (make_device_class("gpu"), make_slice("a", *CARDS, OTHER)))
    cluster.write_text(as_list(make_node_object("a"), *of_cluster))
    pod = make_pod("p").spec(resourceClaims=claiming("t", template=True))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(convert(template), pod))

    (line,) = lines(outcome.output)
    assert (line["verdict"], "passed over" in outcome.errors) == (verdict, False)
