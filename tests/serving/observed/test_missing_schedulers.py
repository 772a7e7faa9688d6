"""The server logs the schedulers of its policies that do not run: once, and again when they are missing again."""

from dataclasses import replace

import structlog

from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object
from tests.support.views import made_anew
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.policy.policy_set import PolicySet
from webhook.serving.observed.missing_schedulers import MissingSchedulers

NODES = made_anew([make_node_object("a")])
VOLCANO = SchedulerEvidence(frozenset({"scheduling.volcano.sh"}), "")


def nothing() -> SchedulerEvidence:
    """Return new evidence of no scheduler, as each reading of the signs gives it."""
    return SchedulerEvidence(frozenset(), "")


def logged(*signs: SchedulerEvidence | None) -> list[str]:
    """Return the fields of the log in which the scheduler is named, after each of these readings of signs."""
    policies = PolicySet(policy_with())
    missing = MissingSchedulers(lambda: policies)
    with structlog.testing.capture_logs() as logs:
        for each in signs:
            missing.look(replace(NODES, scheduler_evidence=each))
    assert {each["log_level"] for each in logs} <= {"error"}
    return [each["error"].partition(": no sign")[0] for each in logs]


def test_a_missing_scheduler_is_logged_with_the_field_that_names_it() -> None:
    assert logged(nothing()) == ["spec.workloadTypes.training.schedulerName: scheduler volcano"]


def test_a_scheduler_that_stays_missing_is_logged_once() -> None:
    assert len(logged(nothing(), nothing(), nothing())) == 1


def test_a_scheduler_that_goes_missing_again_is_logged_again() -> None:
    assert len(logged(nothing(), VOLCANO, nothing())) == 2


def test_nothing_is_logged_while_the_signs_are_not_known_or_there() -> None:
    assert logged(None, VOLCANO) == []


def test_schedulers_of_all_policies_are_looked_for_with_the_policy_that_names_them() -> None:
    own = policy_with(keyDomain="example.com", namespaceSelector={"matchLabels": {"team": "a"}})
    policies = PolicySet.of(policy_with(), [own])
    missing = MissingSchedulers(lambda: policies)

    with structlog.testing.capture_logs() as logs:
        missing.look(replace(NODES, scheduler_evidence=nothing()))

    assert [each["policy"] for each in logs] == [own.identity]
