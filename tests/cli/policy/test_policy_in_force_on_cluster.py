"""On a real installation, commands use the policy of its ConfigMap and the namespace of the context."""

import json
from pathlib import Path

from tests.doctor.installed import POLICY, Installed, installation
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from webhook.kube.api.kubeconfig import read_kubeconfig

__all__ = ["installation"]


def test_check_uses_the_policy_of_the_config_map(run: Run, installation: Installed) -> None:
    config, pod = installation.cluster.control_plane.kubeconfig, make_pod("p").annotate(TYPE, "research")
    types = {"research": {"nodeUsage": {"allow": ["training"]}}}

    with installation.policy(workloadTypes=types):
        outcome = run("check", "-f", "-", "--kubeconfig", config, "-o", "json", stdin=as_list(pod))

    (answer,) = lines(outcome.output)
    assert answer["policy"]["place"] == f"ConfigMap {POLICY}, in force"
    assert answer["verdict"] != "Refused"
    assert "not known: the policy" not in outcome.errors


def test_explain_reads_a_pod_that_the_webhook_has_admitted(run: Run, installation: Installed, tmp_path: Path) -> None:
    """The namespace is that of the context; the Events are those of kube-scheduler."""
    cluster = installation.cluster
    pod = make_pod("big").gpu(64).annotate(TYPE, "training").annotate("maip.mxsf.io/scheduler", "default-scheduler")
    cluster.create(pod)
    content = read_kubeconfig(cluster.control_plane.kubeconfig).content
    for each in content["contexts"]:
        each["context"]["namespace"] = cluster.namespace
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(content))

    outcome = run("explain", "pod/big", "--kubeconfig", config, "--no-audit", "-o", "json")

    (found,) = lines(outcome.output)
    assert (found["pod"], found["phase"]) == (f"{cluster.namespace}/big", "Pending")
    assert found["injected"]["policy"] == found["injected"]["policyInForce"]
    assert found["injected"]["rules"][0]["name"] == "NodeUsageAffinity"
    assert found["check"]["verdict"] == "Infeasible"
    reasons = found["check"]["nodes"]["reasons"]
    assert any(text.startswith("wants 64 nvidia.com/gpu, ") for text in reasons)
