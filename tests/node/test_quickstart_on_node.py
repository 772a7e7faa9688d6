"""The script of the quickstart, with the real node in place of a kind cluster.

docker and kind do nothing here: the node has the image. kubectl leaves out what belongs to kind, and the manifests of
KWOK, whose program the test runs.
"""

from collections.abc import Iterator

import pytest

from tests.node.installation import Installation
from tests.node.running.node import Node

NAME = "placement-quickstart"
IMAGE = "docker.io/library/placement-webhook"
STAND_INS = {
    "docker": "exit 0",
    "kind": f'if [ "$1 $2" = "get clusters" ]; then echo {NAME}; fi',
    "kubectl": f"""
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --context) [ "$2" = kind-{NAME} ] || exit 9; shift 2 ;;
    https://*/kwok/*|crd/stages.kwok.x-k8s.io) exit 0 ;;
    *) arguments+=("$1"); shift ;;
  esac
done
exec $KUBECTL "${{arguments[@]}}"
""",
}


@pytest.fixture
def simulated_nodes(real_node: Node) -> Iterator[None]:
    """KWOK keeps the nodes ready that have its annotation, and says that their pods run."""
    selector = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
    real_node.start("kwok", f"--kubeconfig={real_node.kubeconfig}", "--manage-all-nodes=false", selector)
    yield
    real_node.stop("kwok")


def test_the_quickstart_binds_a_training_pod(installation: Installation, simulated_nodes: None) -> None:
    shell, node = installation.shell, installation.node
    for name, script in STAND_INS.items():
        program = shell.folder / "bin" / name
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)
    node.tag_image(f"{IMAGE}:0.1.0", f"{IMAGE}:quickstart")
    kubectl = node.programs["kubectl"]
    printed = shell(f"KUBECTL={kubectl} bash deploy/quickstart/quickstart.sh").stdout
    bound = [line for line in printed.splitlines() if line.startswith("trainer ")]
    assert "training-" in bound[0]
    assert "maip.mxsf.io/placement-rules" in printed
    for name in STAND_INS:
        (shell.folder / "bin" / name).unlink()
    shell("kubectl delete pod trainer --force && kubectl delete -f deploy/quickstart/nodes.yaml")
    shell.run_block("deploy/README.md", "Removal", replaced={"deploy/overlays/self-managed": "deploy/quickstart"})
    installation.wait_removed()
