"""The order of the webhooks, their conditions and their timeouts."""

import pytest

from placement_doctor.source import Source
from tests.doctor.healthy import CONFIGURATION, commands_of, configuration, found, named, read_of, with_webhooks

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


@pytest.mark.parametrize(("seconds", "is_long"), [(None, False), (10, False), (11, True)])
def test_a_timeout_above_the_default_of_ten_seconds_is_long(seconds: int | None, is_long: bool) -> None:
    findings = found(with_webhooks(timeoutSeconds=seconds), "timeouts")

    assert [each.what.partition(":")[0] for each in findings] == ["11 s"] * is_long
    command = ["kubectl", "patch", "mutatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p"]
    operations = '[{"op":"add","path":"/webhooks/0/timeoutSeconds","value":5}]'
    assert [commands_of(each.remedy) for each in findings] == [[[*command, operations]]] * is_long
