"""The quickstart, as far as it needs neither docker nor kind: its nodes, policy and pod on the real API server."""

import re
import subprocess
from pathlib import Path

import yaml

from tests.controlplane.cluster import Cluster
from tests.support.objects.manifests import DEPLOY, ROOT
from tests.support.on_cluster.registered import registered_as_shipped
from webhook.policy.loader import built_in_policy, parse_policy

FOLDER = DEPLOY / "quickstart"
SCRIPT = FOLDER / "quickstart.sh"
POLICY = FOLDER / "policy.yaml"
NOT_READY = "node.kubernetes.io/not-ready"


def test_a_training_pod_runs_on_a_training_node(cluster: Cluster, tmp_path: Path) -> None:
    """kube-scheduler binds it to one of the simulated nodes, which it would not reach as it was written."""
    assert cluster.kubectl("apply", "-f", str(FOLDER / "nodes.yaml")).stderr == ""
    for node in yaml.safe_load_all((FOLDER / "nodes.yaml").read_text()):
        # KWOK makes them ready; then the taint goes that the API server sets on a new node.
        cluster.kubectl("taint", "node", node["metadata"]["name"], f"{NOT_READY}-", check=False)
    with registered_as_shipped(cluster, tmp_path) as webhook:
        webhook.world.policy = parse_policy(POLICY.read_bytes(), "policy.yaml")
        webhook.look_at(cluster)
        pod = yaml.safe_load((FOLDER / "pod.yaml").read_text())
        pod["metadata"]["namespace"] = cluster.namespace
        done = cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    assert done.stderr == ""
    assert cluster.wait_bound(pod).startswith("training-")


def test_the_policy_is_the_built_in_one_but_for_the_scheduler() -> None:
    own, built_in = parse_policy(POLICY.read_bytes(), "policy.yaml").spec, built_in_policy().spec
    types = {name: each.model_copy(update={"scheduler_name": None}) for name, each in built_in.workload_types.items()}
    assert own == built_in.model_copy(update={"workload_types": types, "allowed_schedulers": ("default-scheduler",)})


def test_the_script_is_valid_and_its_files_exist() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    named = re.findall(r"\bdeploy/[\w./-]+", SCRIPT.read_text())
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []
