"""The order of the webhooks, their conditions and their timeouts."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from placement_doctor.source import Source
from tests.doctor.healthy import (
    CONFIGURATION,
    admitted,
    commands_of,
    configuration,
    found,
    make_installation,
    named,
    objects,
    read_of,
    with_webhooks,
)

PODS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]


def test_a_configuration_that_is_called_too_late_is_made_again_under_a_new_name_before_the_old_one_is_deleted() -> None:
    kueue = {**named("0-kueue"), "webhooks": [{"name": "mpod.kb.io", "rules": PODS}]}

    (finding,) = found(read_of(Source.CONFIGURATIONS, configuration(), kueue), "order")

    assert finding.remedy.startswith("with a NAME that sorts before 0-kueue: ")
    assert commands_of(finding.remedy) == [
        ["placement-webhook", "certs", "register", "--configuration=NAME"],
        ["kubectl", "delete", "mutatingwebhookconfiguration", CONFIGURATION],
    ]


def test_conditions_are_missing_added_or_have_another_expression() -> None:
    first, second, *others = configuration()["webhooks"][0]["matchConditions"]
    mine = {"name": "mine", "expression": "true"}
    held = [{**first, "expression": "true"}, mine, *others]

    (finding,) = found(with_webhooks(matchConditions=held), "match-conditions")

    assert finding.what == (
        f"not as the policy generates them: missing {second['name']}; added mine; changed {first['name']}"
    )


def test_a_webhook_that_the_policy_does_not_generate_is_compared_with_nothing() -> None:
    changed = configuration()
    changed["webhooks"].append({"name": "mine.example.com", "matchConditions": [{"name": "a", "expression": "true"}]})

    assert found(read_of(Source.CONFIGURATIONS, changed), "match-conditions") == []


@pytest.mark.parametrize(("seconds", "is_found"), [(5, True), (4, False)])
def test_timeouts_that_add_up_to_a_minute_are_found(seconds: int, is_found: bool) -> None:
    """The own webhook has 5 s; a request ends after 60 s."""
    peers = [(f"peer-{n}", 10) for n in range(5)] + [("last", seconds)]
    others = [
        {**named(name), "webhooks": [{"name": "a.example.com", "rules": PODS, "timeoutSeconds": limit}]}
        for name, limit in peers
    ]

    findings = found(read_of(Source.CONFIGURATIONS, configuration(), *others), "timeouts")

    assert ["add up to 60 s" in each.what for each in findings] == [True] * is_found


@pytest.mark.parametrize(("labels", "selects"), [({"placed": "yes"}, True), ({"placed": "no"}, False), ({}, False)])
def test_a_selector_by_labels_selects_the_namespaces_that_have_them(labels: dict[str, str], selects: bool) -> None:
    changed = configuration()
    changed["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"placed": "yes"}}
    namespaces = (named("team-a", labels=labels), named("team-b"))
    read = {**objects(), Source.CONFIGURATIONS: (changed,), Source.NAMESPACES: namespaces}

    findings = found(make_installation(objects=read), "selectors")

    assert ["selects no namespace" in each.what for each in findings] == [True] * (not selects)


@pytest.mark.parametrize(("seconds", "is_found"), [(2.5, False), (2.6, True)])
def test_an_answer_that_takes_more_than_half_of_the_timeout_is_found(seconds: float, is_found: bool) -> None:
    findings = found(make_installation(trial=admitted()._replace(seconds=seconds)), "answer")

    assert ["takes 2.6 s" in each.what for each in findings] == [True] * is_found


@pytest.mark.parametrize(("seconds", "is_long"), [(None, False), (10, False), (11, True)])
def test_a_timeout_above_the_default_of_ten_seconds_is_long(seconds: int | None, is_long: bool) -> None:
    findings = found(with_webhooks(timeoutSeconds=seconds), "timeouts")

    assert [each.what.partition(":")[0] for each in findings] == ["11 s"] * is_long
    command = ["kubectl", "patch", "mutatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p"]
    operations = '[{"op":"add","path":"/webhooks/0/timeoutSeconds","value":5}]'
    assert [commands_of(each.remedy) for each in findings] == [[[*command, operations]]] * is_long


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({}, True),
        ({"reinvocationPolicy": "Never"}, True),
        ({"reinvocationPolicy": "IfNeeded"}, False),
        ({"reinvocationPolicy": "IfNeeded", "matchConditions": []}, False),
        ({"reinvocationPolicy": "IfNeeded", "objectSelector": {}}, False),
        ({"reinvocationPolicy": "IfNeeded", "matchConditions": [{"name": "a", "expression": "true"}]}, True),
        ({"reinvocationPolicy": "IfNeeded", "objectSelector": {"matchLabels": {"a": "b"}}}, True),
    ],
)
def test_a_peer_is_called_again_only_if_it_was_called_for_every_pod_before(
    fields: dict[str, Any], is_found: bool
) -> None:
    """A condition or a selector can first be met by what is injected."""
    kueue = {**named("0-kueue"), "webhooks": [{"name": "mpod.kb.io", "rules": PODS, **fields}]}

    assert bool(found(read_of(Source.CONFIGURATIONS, configuration(), kueue), "order")) is is_found


def test_the_remedy_of_a_selector_keeps_all_that_it_has() -> None:
    expression = {"key": "team", "operator": "Exists"}
    selector = {"matchLabels": {"placed": "yes"}, "matchExpressions": [expression]}
    labels = {"placed": "yes", "team": "a"}
    installation = with_webhooks(namespaceSelector=selector)
    caught = tuple(named(name, labels=labels) for name in ("kube-system", "team-a"))
    installation = replace(installation, objects={**installation.objects, Source.NAMESPACES: caught})

    (finding,) = found(installation, "selectors")

    (command,) = commands_of(finding.remedy)
    excluded = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "placement-webhook"],
    }
    assert orjson.loads(command[-1]) == [
        {
            "op": "add",
            "path": "/webhooks/0/namespaceSelector",
            "value": {"matchLabels": {"placed": "yes"}, "matchExpressions": [expression, excluded]},
        }
    ]
