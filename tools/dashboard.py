"""Make the Grafana dashboard from a list of panels."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tools import DEPLOY

FILE = DEPLOY / "monitoring" / "dashboard.json"

Object = dict[str, Any]

# Grafana's grid has 24 columns.
_COLUMNS = 24
_ROW_HEIGHT = 1
_WEBHOOKS = 'name=~"(pods|workloads|namespaces|policies)[.]placement[.]maip[.]mxsf[.]io"'
_JOB = 'job="$job"'
_CARDS = 'job="$job",pool=~"$pool"'
_NODES_BY_FREE_CARDS = f"max by (pool, product, free) (placement_webhook_nodes_by_free_cards{{{_CARDS}}})"
_DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its queries by legend, the unit of its values, and its size in the grid."""

    title: str
    queries: tuple[tuple[str, str], ...]
    description: str
    unit: str = "short"
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    width: int = 8
    height: int = 7
    stacked: bool = False


def _rate(metric: str, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (rate(placement_webhook_{metric}{{{_JOB}{selector}}}[$__rate_interval]))"


def _quantiles(metric: str, selector: str, by: str = "") -> tuple[tuple[str, str], ...]:
    legend = f"p{{}} {{{{{by}}}}}" if by else "p{}"
    labels = f"le, {by}" if by else "le"
    rate = f"sum by ({labels}) (rate({metric}_bucket{{{selector}}}[$__rate_interval]))"
    return tuple((legend.format(percent), f"histogram_quantile({percent / 100}, {rate})") for percent in (50, 99))


def _stat(title: str, expression: str, description: str, unit: str = "short") -> Panel:
    return Panel(title, (("", expression),), description, unit, kind="stat", width=4, height=4)


ROWS: Sequence[tuple[str, Sequence[Panel]]] = (
    (
        "Overview",
        (
            _stat("Replicas up", f"sum(up{{{_JOB}}})", "Replicas that Prometheus reaches."),
            _stat(
                "Admissions",
                f"sum(rate(placement_webhook_admission_requests_total{{{_JOB}}}[$__rate_interval]))",
                "Pods admitted in a second.",
                "reqps",
            ),
            _stat(
                "View age",
                f"max(placement_webhook_cluster_age_seconds{{{_JOB}}})",
                "Age of the stalest watch. Above maxViewAgeSeconds of the policy, no placement is checked.",
                "s",
            ),
            _stat(
                "Certificate expires in",
                f"min(placement_webhook_certificate_not_after_timestamp_seconds{{{_JOB}}}) - time()",
                "Time until the first replica serves an expired certificate.",
                "s",
            ),
            _stat(
                "Missed pods",
                f"max(placement_webhook_missed_pods{{{_JOB}}})",
                "Pods with a workload type that were stored without the webhook.",
            ),
            _stat(
                "Policy rejected",
                f"max(placement_webhook_policy_rejected{{{_JOB}}})",
                "1 while the newest policy is invalid and the last valid one stays in force.",
            ),
            _stat(
                "Exported policy in step",
                f"min(placement_webhook_exported_policy_in_step{{{_JOB}}})",
                "1 while the exported policy in the API server equals the policy in force; no value without an export.",
            ),
        ),
    ),
    (
        "Admissions",
        (
            Panel(
                "Admissions by outcome",
                (("{{outcome}}", _rate("admission_requests_total", "outcome")),),
                "Pods. Error: an internal error, for which failurePolicy decides.",
                "reqps",
                stacked=True,
            ),
            Panel(
                "Admissions by workload type",
                (("{{workload_type}}", _rate("admission_requests_total", "workload_type", ',workload_type!=""')),),
                "Pods that have a workload type of the policy.",
                "reqps",
                stacked=True,
            ),
            Panel(
                "Other objects",
                (("{{kind}} {{outcome}}", _rate("object_admission_requests_total", "kind, outcome")),),
                "Workload objects and Namespaces.",
                "reqps",
                stacked=True,
            ),
            Panel(
                "Latency",
                _quantiles("placement_webhook_admission_duration_seconds", _JOB),
                "Time from the body of a request to its answer.",
                "s",
            ),
            Panel(
                "Latency for API servers",
                _quantiles("apiserver_admission_webhook_admission_duration_seconds", _WEBHOOKS, "name"),
                "The same with network and TLS, as API servers measure it.",
                "s",
            ),
            Panel(
                "Calls that failed",
                (
                    (
                        "stored without an answer {{name}}",
                        (
                            "sum by (name) (rate(apiserver_admission_webhook_fail_open_count{"
                            f"{_WEBHOOKS}}}[$__rate_interval]))"
                        ),
                    ),
                    (
                        "refused {{name}}",
                        (
                            "sum by (name) (rate(apiserver_admission_webhook_rejection_count{"
                            f'{_WEBHOOKS},error_type!="no_error"}}[$__rate_interval]))'
                        ),
                    ),
                    ("HTTP {{code}}", _rate("http_refused_requests_total", "code")),
                ),
                "Calls of API servers without an answer, and requests that the webhook rejected, by HTTP status.",
                "reqps",
            ),
            Panel(
                "In flight and waiting",
                (
                    ("in flight {{instance}}", f"placement_webhook_admissions_in_flight{{{_JOB}}}"),
                    ("waiting {{instance}}", f"placement_webhook_admissions_waiting{{{_JOB}}}"),
                ),
                "Requests in progress, and large or costly ones that wait for the worker thread.",
            ),
            Panel(
                "Shadow mode",
                (("{{outcome}}", _rate("shadowed_admissions_total", "outcome")),),
                "Admissions that the policy decided and did not enforce, by the outcome that enforcing had given.",
                "reqps",
                stacked=True,
            ),
            Panel(
                "Edits by rule",
                (("{{rule}}", _rate("rule_edits_total", "rule")),),
                "Edits made to pods.",
                "ops",
                stacked=True,
            ),
        ),
    ),
    (
        "Placement",
        (
            Panel(
                "Verdicts",
                (("{{verdict}}", _rate("placement_verdicts_total", "verdict")),),
                "Placement checks. A check that is not made counts as Unknown.",
                "ops",
                stacked=True,
            ),
            Panel(
                "Predictions",
                (("{{result}}", _rate("predictions_total", "result")),),
                "Bound pods, by the result of comparing the node with the prediction.",
                "ops",
                stacked=True,
            ),
            Panel(
                "Wrong predictions",
                (
                    (
                        "share",
                        (
                            f'sum(increase(placement_webhook_predictions_total{{{_JOB},result=~"predicted_.*"}}[1h]))'
                            f" / sum(increase(placement_webhook_predictions_total{{{_JOB}}}[1h]))"
                        ),
                    ),
                ),
                "Share of the predictions of the last hour that contradict what became of the pod.",
                "percentunit",
            ),
            Panel(
                "Duration of a placement check",
                _quantiles("placement_webhook_placement_duration_seconds", _JOB),
                "Without the checks that are answered from the cache, which count as 0.",
                "s",
            ),
            Panel(
                "Scheduler extender",
                (("{{verb}} {{result}}", _rate("extender_requests_total", "verb, result")),),
                "Calls of kube-scheduler for the profile of the extender.",
                "reqps",
            ),
            Panel(
                "Pods that wait",
                (("{{state}}", f"max by (state) (placement_webhook_waiting_pods{{{_JOB}}})"),),
                "Pods that wait for a node: with reserved room, or without room.",
            ),
            Panel(
                "View of the cluster",
                (
                    ("nodes", f"max(placement_webhook_cluster_nodes{{{_JOB}}})"),
                    ("running pods", f"max(placement_webhook_cluster_pods{{{_JOB}}})"),
                    ("age in seconds {{instance}}", f"placement_webhook_cluster_age_seconds{{{_JOB}}}"),
                ),
                "Nodes and running pods in the view, and the age of its stalest watch.",
            ),
        ),
    ),
    (
        "Cards",
        (
            Panel(
                "Free cards",
                (("{{pool}} {{product}}", f"max by (pool, product) (placement_webhook_free_cards{{{_CARDS}}})"),),
                "Free cards on nodes that take pods.",
                stacked=True,
            ),
            Panel(
                "Free cards that typical pods cannot use",
                (
                    (
                        "{{pool}} {{product}}",
                        f"max by (pool, product) (placement_webhook_unusable_free_cards_share{{{_CARDS}}})",
                    ),
                ),
                "Share of the free cards that typical pods cannot use, because the node has too few free cards, CPU or "
                "memory.",
                "percentunit",
            ),
            Panel(
                "Nodes by free cards",
                (
                    (
                        "{{free}} free",
                        f"sum by (free) ({_NODES_BY_FREE_CARDS})",
                    ),
                ),
                "Free blocks by size: the number of nodes with this number of free cards.",
                stacked=True,
            ),
            Panel(
                "Cards held and not used",
                (
                    (
                        "{{reason}} {{resource}}",
                        f"max by (reason, resource) (placement_webhook_held_cards{{{_JOB}}})",
                    ),
                ),
                "Cards of pods that should have ended, whose node is down or whose containers do not start. "
                "placement-webhook reclaim names them.",
                stacked=True,
            ),
            Panel(
                "Pods that hold cards and do not use them",
                (("{{reason}}", f"max by (reason) (placement_webhook_held_pods{{{_JOB}}})"),),
                "The pods that hold these cards, by reason.",
                stacked=True,
            ),
            Panel(
                "Largest gang of whole nodes in one domain",
                (("{{domain_key}}", f"max by (domain_key) (placement_webhook_largest_gang{{{_JOB}}})"),),
                "The most pods, each with all cards of a node, that one domain such as a rack could start now.",
            ),
            Panel(
                "Free blocks now",
                (
                    (
                        "",
                        f"sort_desc({_NODES_BY_FREE_CARDS} > 0)",
                    ),
                ),
                "Nodes by pool, product and number of free cards.",
                kind="table",
                width=24,
            ),
        ),
    ),
    (
        "Policy, certificate and records",
        (
            Panel(
                "Policies in force",
                (("", f"count by (name, revision) (placement_webhook_policy_info{{{_JOB}}})"),),
                "Replicas in which a policy is in force, by its name and revision.",
                kind="table",
            ),
            Panel(
                "Reloads",
                (
                    (
                        "policy {{result}}",
                        f"sum by (result) (increase(placement_webhook_policy_reloads_total{{{_JOB}}}[1h]))",
                    ),
                    (
                        "certificate {{result}}",
                        f"sum by (result) (increase(placement_webhook_certificate_reloads_total{{{_JOB}}}[1h]))",
                    ),
                ),
                "Reloads of the policy and of the certificate in the last hour.",
            ),
            Panel(
                "Expiry",
                (
                    (
                        "certificate {{instance}}",
                        f"placement_webhook_certificate_not_after_timestamp_seconds{{{_JOB}}} - time()",
                    ),
                    ("CA", "min(placement_webhook_ca_not_after_timestamp_seconds) - time()"),
                ),
                "Time until the certificate of each replica and the CA expire.",
                "s",
            ),
            Panel(
                "Audit records",
                (
                    ("{{result}}", _rate("audit_records_total", "result")),
                    ("dropped because of {{reason}}", _rate("audit_dropped_records_total", "reason")),
                ),
                "Audit records written, failed (they went to standard error), and dropped with old files.",
                "ops",
            ),
            Panel(
                "Events",
                (("{{result}}", _rate("events_total", "result")),),
                "Kubernetes Events about pods.",
                "ops",
            ),
            Panel(
                "Memory",
                (
                    ("process {{instance}}", f"process_resident_memory_bytes{{{_JOB}}}"),
                    ("caches {{instance}}", f"sum by (instance) (placement_webhook_cache_bytes{{{_JOB}}})"),
                ),
                "Resident memory of each replica, and the maximum memory of its caches.",
                "bytes",
            ),
            Panel(
                "Connections",
                (
                    ("open {{port}} {{instance}}", f"placement_webhook_connections{{{_JOB}}}"),
                    ("closed {{port}} {{result}}", _rate("connections_closed_total", "port, result")),
                ),
                "Open connections by port, and connections closed in a second, by reason.",
            ),
            Panel(
                "Processor time",
                (("{{instance}}", f"rate(process_cpu_seconds_total{{{_JOB}}}[$__rate_interval])"),),
                "Processor time of each replica, in cores.",
            ),
        ),
    ),
)


def dashboard() -> Object:
    """Return the dashboard in Grafana's JSON model."""
    return {
        "uid": "placement-webhook",
        "title": "placement-webhook",
        "description": "Admissions, placement checks, cards, certificate and records of placement-webhook.",
        "tags": ["kubernetes", "admission", "gpu"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [*_variables()]},
        "panels": [*_panels()],
    }


def _variables() -> Iterator[Object]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0}
    yield _label_variable("job", "Job", "label_values(placement_webhook_policy_info, job)", several=False)
    yield _label_variable("pool", "Pool", 'label_values(placement_webhook_free_cards{job="$job"}, pool)', several=True)


def _label_variable(name: str, label: str, query: str, *, several: bool) -> Object:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATA_SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "multi": several,
        "includeAll": several,
        **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if several else {}),
    }


def _panels() -> Iterator[Object]:
    """Yield the panels from left to right, each row below the one before."""
    number, x, y, lowest = 0, 0, 0, 0
    for title, panels in ROWS:
        number, x, y = number + 1, 0, lowest
        grid = {"x": 0, "y": y, "w": _COLUMNS, "h": _ROW_HEIGHT}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": grid, "panels": []}
        y = lowest = y + _ROW_HEIGHT
        for panel in panels:
            if x + panel.width > _COLUMNS:
                x, y = 0, lowest
            number += 1
            yield _panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height})
            x, lowest = x + panel.width, max(lowest, y + panel.height)


def _panel(panel: Panel, number: int, grid: Object) -> Object:
    custom = {"fillOpacity": 20 if panel.stacked else 0, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    options: dict[str, Object] = {
        "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "area"},
        "table": {"showHeader": True},
    }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATA_SOURCE,
        "gridPos": grid,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "custom": custom if panel.kind == "timeseries" else {}},
            "overrides": [],
        },
        "options": options[panel.kind],
        "targets": [*_targets(panel)],
        **(
            {"transformations": [{"id": "organize", "options": {"excludeByName": {"Time": True}}}]}
            if panel.kind == "table"
            else {}
        ),
    }


def _targets(panel: Panel) -> Iterator[Object]:
    is_table = panel.kind == "table"
    for letter, (legend, expression) in zip("ABCDEF", panel.queries, strict=False):
        yield {
            "refId": letter,
            "datasource": _DATA_SOURCE,
            "expr": expression,
            "legendFormat": legend,
            "instant": is_table,
            "range": not is_table,
            **({"format": "table"} if is_table else {}),
        }


def files() -> Mapping[Path, str]:
    """Return the dashboard as JSON."""
    return {FILE: json.dumps(dashboard(), indent=2) + "\n"}
