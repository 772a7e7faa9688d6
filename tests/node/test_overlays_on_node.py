"""Each overlay, installed on a real node by the commands of the pages, used, and removed."""

import time

from tests.node.installation import (
    CARD,
    CARDS,
    CERTS_NAMESPACE,
    DOMAIN,
    NAMESPACE,
    Installation,
    pod,
)
from tests.node.running.configuration import NODE_NAME

DEPLOY_PAGE = "deploy/README.md"


def install_self_managed(installation: Installation) -> None:
    installation.shell.run_block(DEPLOY_PAGE, "Self-managed certificates")


def use(installation: Installation) -> None:
    """A GPU pod is injected, bound where it was predicted, and runs; one that fits nowhere has a warning and an Event."""
    with installation.team(), installation.pool():
        assert installation.create(pod("trainer")) == ""
        running = installation.wait_running("trainer")
        assert running["spec"]["nodeName"] == NODE_NAME
        annotations = running["metadata"]["annotations"]
        assert "NodeUsageAffinity" in annotations[f"{DOMAIN}/placement-rules"].split(",")
        tolerated = {each["key"] for each in running["spec"]["tolerations"]}
        assert {f"{DOMAIN}/node.usage", f"{CARD}.product"} <= tolerated

        warning = installation.create(pod("too-large", CARDS + 1))
        assert f"Insufficient {CARD}" in warning
        installation.wait_event("too-large", "PlacementInfeasible")

        (record,) = installation.records("trainer")
        assert record["outcome"] in ("Patched", "Unchanged")
        assert record["placement"]["verdict"] == "Feasible"
        assert record["placement"]["node"] == NODE_NAME
        (record,) = installation.records("too-large")
        assert record["placement"]["verdict"] == "Infeasible"
        outcome = 'placement_webhook_admission_requests_total{outcome="'
        assert installation.metric(outcome) >= 2
        assert installation.metric('placement_webhook_placement_verdicts_total{verdict="Infeasible"}') >= 1
        assert installation.metric("placement_webhook_audit_records_total{") >= 2
        assert "no fault" in installation.doctor()


def test_self_managed(installation: Installation) -> None:
    installation.choose_default_scheduler()
    began = time.monotonic()
    install_self_managed(installation)
    installation.wait_for_rollout(began, NAMESPACE, CERTS_NAMESPACE)
    installation.assert_pod_security()
    use(installation)
    installation.shell.run_block(DEPLOY_PAGE, "Removal")
    installation.wait_removed()
