"""Names in the documents exist in the code: annotations, metrics, flags, fields of the record, events of the log."""

import re
from dataclasses import fields
from pathlib import Path

import orjson
import pytest
from pydantic.alias_generators import to_camel

from certs.controller.admin import ControllerMetrics
from tests.docs.markdown import DOCUMENTS, MONITORING, OPERATIONS, ROOT, blocks, name_of, rows, span_of, spans, spans_of
from tests.support.programs.audit_records import encode
from webhook.audit.record import AuditRecord, parse_line
from webhook.cli.commands.serve import serve
from webhook.cluster.cache.resources import OPTIONAL_RESOURCES
from webhook.placement.config.extension_points import DEFAULT_PLUGINS
from webhook.policy.loader import built_in_policy
from webhook.runtime.metrics import Metrics

CERTIFICATES, SCORER = ROOT / "docs" / "certificates.md", ROOT / "docs" / "scorer.md"
AUDIT, ANNOTATIONS = ROOT / "docs" / "audit.md", ROOT / "docs" / "annotations.md"
DOMAIN = "maip.mxsf.io"
_KEY = re.compile(r"(?<![\w.-])maip\.mxsf\.io/[a-z.-]*[a-z]")
_EVENT = re.compile(r"\b_?(?:log|get_logger\(\))\.(?:debug|info|warning|error|exception|critical)\(\s*\"([^\"]+)\"")
_METRIC = re.compile(r"placement_webhook_[a-z_]*[a-z]")


def annotation_keys() -> set[str]:
    policy = built_in_policy()
    return {*policy.keys, policy.policy_annotation, policy.rules_annotation}


def metric_names() -> set[str]:
    endings = {"counter": "_total", "info": "_info"}
    return {metric.name + endings.get(metric.type, "") for metric in Metrics().registry.collect()}


def controller_metrics() -> dict[str, tuple[str, ...]]:
    """Return the labels of each metric of the certs controller."""
    return {
        metric.name + ("_total" if metric.type == "counter" else ""): tuple(
            dict.fromkeys(label for sample in metric.samples for label in sample.labels)
        )
        for metric in ControllerMetrics().registry.collect()
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_keys_under_our_domain_are_ours(document: Path) -> None:
    others = ("control-plane", "spread-group", "gang-group")
    known = annotation_keys() | {built_in_policy().node_usage_key, *(f"{DOMAIN}/{name}" for name in others)}

    assert set(_KEY.findall(document.read_text())) - known == set()


def sources() -> str:
    folders = (ROOT / name for name in ("webhook", "certs", "packages"))
    return "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))


def test_every_annotation_is_documented() -> None:
    assert annotation_keys() - set(_KEY.findall(ANNOTATIONS.read_text())) == set()


def test_classes_and_private_functions_of_the_architecture_exist() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w*|_[a-z_]+)(?:\(\))?`", (ROOT / "docs" / "design.md").read_text()))
    defined = set(re.findall(r"\b(?:class|def) (\w+)", sources()))

    assert len(named) > 10
    assert named - defined == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_metrics_exist(document: Path) -> None:
    assert set(_METRIC.findall(document.read_text())) - metric_names() - controller_metrics().keys() == set()


def test_every_metric_is_documented() -> None:
    assert {span_of(row[0]) for row in rows(OPERATIONS, "Metrics")} == metric_names()


def test_metrics_of_the_certs_controller_are_documented_with_their_labels() -> None:
    documented = {span_of(row[0]): tuple(spans_of(row[1])) for row in rows(CERTIFICATES, "Observe it")}
    assert documented == controller_metrics()


def test_labels_of_metrics_are_documented() -> None:
    documented = {span_of(row[0]): tuple(spans_of(row[1])) for row in rows(OPERATIONS, "Metrics")}
    labels = {row.metadata["name"]: row.metadata["labels"] for row in fields(Metrics) if row.metadata}

    assert documented == labels | {
        "placement_webhook_admission_requests_total": ("outcome", "workload_type"),
        "placement_webhook_object_admission_requests_total": ("kind", "outcome"),
        "placement_webhook_shadowed_admissions_total": ("outcome",),
        "placement_webhook_rule_edits_total": ("rule",),
        "placement_webhook_placement_verdicts_total": ("verdict",),
        "placement_webhook_waiting_verdicts_total": ("waits_for",),
    }


def test_flags_of_serve_are_documented_with_their_defaults() -> None:
    documented = {span_of(row[0]) or row[0]: row[1] for row in rows(OPERATIONS, "Flags of `serve`")}
    flags = {option.opts[0]: option for option in serve.params}

    assert set(documented) == set(flags)
    for flag, default in documented.items():
        if exact := span_of(default):
            assert str(flags[flag].default) == exact, flag
        else:
            assert (default == "required") == flags[flag].required, flag


def test_fields_of_the_record_are_documented() -> None:
    (example,) = blocks(AUDIT, "json")
    record = parse_line(orjson.dumps(orjson.loads(example.text)))
    written = orjson.loads(encode(record, record.sequence, record.previous))
    documented = {name.strip("` ") for row in rows(AUDIT, "The record") for name in row[0].split(",")}

    assert orjson.loads(example.text) == written
    assert set(written) <= documented
    assert documented == {to_camel(field.name) for field in fields(AuditRecord)} | {"hash"}


def logged() -> set[str]:
    """Return the events that the code logs by their names; others pass a variable."""
    return set(_EVENT.findall(sources()))


@pytest.mark.slow
def test_every_event_of_the_log_is_documented() -> None:
    documented = {span_of(row[0]) or row[0] for row in rows(MONITORING, "Logs")}

    assert len(logged()) > 30
    assert logged() - documented == set()


def test_every_default_plugin_is_listed_in_the_order_of_kube_scheduler() -> None:
    assert [span_of(row[0]) for row in rows(SCORER, "Plugins")] == [plugin.name for plugin in DEFAULT_PLUGINS]


def test_every_optional_kind_of_a_view_is_listed() -> None:
    table = rows(SCORER, "What a view of the cluster holds")
    listed = {kind for row in table for kinds in spans_of(row[0]) for kind in kinds.split(",")}

    assert {each.plural for each in OPTIONAL_RESOURCES} - listed == set()


def test_tests_that_the_limits_name_exist() -> None:
    named = {span for span in spans(ROOT / "docs" / "limits.md") if span.startswith("test_")}
    defined = re.findall(r"def (test_\w+)", "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py")))

    assert len(named) > 10
    assert named - set(defined) == set()
