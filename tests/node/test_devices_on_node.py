"""The devices of dra-example-driver: a claim that is predicted to be allocated is the one that runs."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.controlplane.client import Object
from tests.controlplane.polling import wait_for
from tests.node.installation import TEAM, Installation, pod
from tests.node.running.configuration import NODE_NAME
from tests.node.running.node import Node

DRIVER = "gpu.example.com"
DEVICES = 8
API = "resource.k8s.io/v1"


@pytest.fixture
def devices(real_node: Node, installation: Installation) -> Iterator[None]:
    """Eight devices of the driver, and their DeviceClass."""
    flags = (
        f"--node-name={NODE_NAME}",
        f"--kubeconfig={real_node.kubeconfig}",
        f"--num-devices={DEVICES}",
        "--cdi-root=/run/cdi",
    )
    real_node.start("dra-example-kubeletplugin", *flags)
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    device_class = {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [selector]},
    }
    installation.create(device_class)
    wait_for(lambda: installation.client.list("ResourceSlice", api_version=API), "the devices", deadline_seconds=60)
    yield
    real_node.stop("dra-example-kubeletplugin")
    installation.shell(f"kubectl delete deviceclass {DRIVER}; kubectl delete resourceslices --all")


def claim_template(count: int) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    metadata = {"name": f"gpus-{count}", "namespace": TEAM}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def claiming(name: str, count: int) -> Object:
    made = pod(name)
    made["metadata"]["annotations"] = {}
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{count}"}]
    (container,) = made["spec"]["containers"]
    container["resources"] = {"limits": {"cpu": "10m", "memory": "16Mi"}, "claims": [{"name": "gpu"}]}
    return made


def verdict(installation: Installation, made: Object) -> str:
    file = installation.shell.folder / "checked.yaml"
    file.write_text(yaml.safe_dump(made))
    command = f"placement-webhook check -f {file} --kubeconfig {installation.node.kubeconfig} -o json"
    found: str = json.loads(installation.shell(command, check=False).stdout)["verdict"]
    return found


def test_claims_are_allocated_as_predicted(installation: Installation, devices: None) -> None:
    """Five of eight devices are free for the first pod; the second one waits for as many."""
    with installation.team():
        installation.create(claim_template(5))
        assert verdict(installation, claiming("first", 5)) == "Feasible"
        installation.create(claiming("first", 5))
        installation.wait_running("first")
        (claim,) = installation.client.list("ResourceClaim", TEAM, api_version=API)
        allotted = claim["status"]["allocation"]["devices"]["results"]
        assert len({each["device"] for each in allotted}) == 5
        assert claim["status"]["reservedFor"][0]["name"] == "first"

        assert verdict(installation, claiming("second", 5)) == "Waiting"
        installation.create(claim_template(9))
        assert verdict(installation, claiming("third", 9)) == "Infeasible"
        installation.create(claiming("second", 5))
        installation.wait_unschedulable("second")
        installation.client.delete("Pod", "first", namespace=TEAM)
        installation.wait_running("second")
