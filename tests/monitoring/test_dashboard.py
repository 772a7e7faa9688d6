"""The structure of the Grafana dashboard."""

from itertools import combinations
from typing import Any

import pytest

from tests.monitoring.monitored import dashboard, dashboard_queries, metrics_in
from tests.support.objects.manifests import read_one

DASHBOARD = dashboard()
PANELS = DASHBOARD["panels"]
WITH_QUERIES = [panel for panel in PANELS if panel["type"] != "row"]
COLUMNS = 24

Object = dict[str, Any]


def test_ids_of_panels_are_distinct() -> None:
    ids = [panel["id"] for panel in PANELS]

    assert len(set(ids)) == len(ids)
    assert all(isinstance(each, int) and each > 0 for each in ids)


def test_panels_do_not_overlap_and_fit_into_the_grid() -> None:
    def overlap(one: Object, other: Object) -> bool:
        a, b = one["gridPos"], other["gridPos"]
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        return not beside and not (a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"])

    assert [(a["title"], b["title"]) for a, b in combinations(PANELS, 2) if overlap(a, b)] == []
    assert all(0 <= panel["gridPos"]["x"] <= COLUMNS - panel["gridPos"]["w"] for panel in PANELS)


@pytest.mark.parametrize("panel", WITH_QUERIES, ids=lambda panel: panel["title"])
def test_a_panel_asks_the_chosen_data_source(panel: Object) -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    letters = [target["refId"] for target in panel["targets"]]

    assert panel["datasource"] == chosen
    assert all(target["datasource"] == chosen for target in panel["targets"])
    assert letters == sorted(set(letters))
    assert panel["description"].endswith(".")


def test_variables_are_those_of_the_queries() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}

    assert list(variables) == ["datasource", "job", "pool"]
    assert variables["datasource"]["type"] == "datasource"
    assert variables["pool"]["multi"] is variables["pool"]["includeAll"] is True


def test_dashboard_is_imported_as_a_new_one() -> None:
    assert "id" not in DASHBOARD
    assert DASHBOARD["uid"] == "placement-webhook"
    assert DASHBOARD["schemaVersion"] >= 36


@pytest.mark.parametrize(
    "metric",
    [
        "placement_webhook_admission_requests_total",
        "placement_webhook_admission_duration_seconds_bucket",
        "placement_webhook_placement_verdicts_total",
        "placement_webhook_predictions_total",
        "placement_webhook_cluster_age_seconds",
        "placement_webhook_audit_records_total",
        "placement_webhook_certificate_not_after_timestamp_seconds",
        "placement_webhook_policy_info",
        "placement_webhook_policy_reloads_total",
        "placement_webhook_missed_pods",
        "placement_webhook_free_cards",
        "placement_webhook_nodes_by_free_cards",
        "placement_webhook_unusable_free_cards_share",
        "placement_webhook_held_cards",
        "placement_webhook_held_pods",
        "placement_webhook_largest_gang",
    ],
)
def test_what_an_operator_watches_is_on_the_dashboard(metric: str) -> None:
    assert metric in set().union(*(metrics_in(query) for _, query in dashboard_queries()))


def test_sidecar_of_grafana_finds_the_dashboard() -> None:
    (generator,) = read_one("monitoring/kustomization.yaml")["configMapGenerator"]

    assert generator["files"] == ["dashboard.json"]
    assert generator["options"]["labels"]["grafana_dashboard"] == "1"
