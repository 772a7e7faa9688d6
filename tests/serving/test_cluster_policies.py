"""PlacementPolicy objects: what is in force while they change, and the status that each gets."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import structlog

from tests.support.live import until
from tests.support.server import policies_of
from webhook.metrics import Metrics
from webhook.policy.document import API_VERSION, KIND
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_object import policy_text
from webhook.policy_cases import parse_tested_policy
from webhook.serving import cluster_policies
from webhook.serving.cluster_policies import ClusterPolicies
from webhook.serving.policies import Policies
from webhook.serving.policy_status import status_of
from webhook.watch.api_errors import UnreachableError
from webhook.watch.api_server import ApiServer

Object = dict[str, Any]
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def policy(name: str, generation: int = 1, uid: str = "u", **spec: Any) -> Object:
    metadata = {"name": name, "uid": uid, "generation": generation}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"namespaceSelector": {}} | spec}


class Followed:
    """The policies of a cluster, judged after each change."""

    def __init__(self, validated: Callable[[bytes, str], Policy] = parse_tested_policy) -> None:
        def connect() -> ApiServer:
            raise UnreachableError("connection refused")

        self.metrics, self.faults = Metrics(), list[str]()
        self.policies: Policies = policies_of(built_in_policy(), self.metrics)
        self.source = ClusterPolicies(connect, self.policies, validated, lambda: NOW, None, self._note_fault)

    def _note_fault(self) -> None:
        self.faults.append("fault")

    def see(self, event: str, content: Object) -> list[str]:
        """Apply an event; return the names and card weights of the policies in force."""
        self.source.store.apply(KIND, event, content)
        return self.judged()

    def applied(self) -> float:
        """Return how many contents of the sources were applied."""
        value = self.metrics.registry.get_sample_value("placement_webhook_policy_reloads_total", {"result": "applied"})
        return value or 0.0

    def missing(self) -> float | None:
        """Return the metric of objects that other replicas have in force, but not this one."""
        return self.metrics.registry.get_sample_value("placement_webhook_policies_missing")

    def rows(self) -> set[tuple[str, str]]:
        """Return the names and revisions of the metric `policy_info`."""
        (family,) = (each for each in self.metrics.registry.collect() if each.name == "placement_webhook_policy_info")
        assert all(sample.value == 1 for sample in family.samples)
        return {(sample.labels["name"], sample.labels["revision"]) for sample in family.samples}

    def judged(self) -> list[str]:
        asyncio.run(self.source.judge())
        return [f"{each.name} {each.spec.priority}" for each in self.policies.in_force().others]


@pytest.fixture
def followed() -> Followed:
    found = Followed()
    found.source.store.replace({})
    return found


def test_a_bad_generation_leaves_the_last_good_one_in_force(followed: Followed) -> None:
    assert followed.see("ADDED", policy("a", priority=1)) == ["a 1"]
    assert followed.see("MODIFIED", policy("a", 2, priority=2, keyDomain="no domain")) == ["a 1"]
    assert "spec.keyDomain" in followed.policies.note()
    assert followed.see("MODIFIED", policy("a", 3, priority=3)) == ["a 3"]
    assert followed.policies.note() == ""


def test_an_object_that_was_made_anew_has_no_last_good_generation(followed: Followed) -> None:
    followed.see("ADDED", policy("a", priority=1))
    assert followed.see("MODIFIED", policy("a", 1, "other", keyDomain="no domain")) == []


def test_a_deleted_object_is_not_in_force(followed: Followed) -> None:
    followed.see("ADDED", policy("a", keyDomain="no domain"))
    assert followed.see("DELETED", policy("a")) == []
    assert followed.policies.note() == ""


def test_above_the_limit_the_newest_objects_are_left_out(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_policies, "_MOST_OBJECTS", 1)
    older, newer = policy("b", priority=1), policy("a", priority=2)
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    newer["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    followed.see("ADDED", older)

    assert followed.see("ADDED", newer) == ["b 1"]
    assert "left out" in followed.policies.note()


def test_only_the_default_policy_has_no_selector(followed: Followed) -> None:
    followed.see("ADDED", policy("default", priority=7))
    assert followed.policies.current().spec.priority == 0
    assert "spec.namespaceSelector" in followed.policies.note()
    followed.see("MODIFIED", policy("default", 2, priority=7, namespaceSelector=None))
    assert followed.policies.current().spec.priority == 7


def test_the_metric_has_a_row_for_each_policy_in_force(followed: Followed) -> None:
    built_in = ("default", built_in_policy().revision)
    followed.see("ADDED", policy("a", queueing="kueue"))
    followed.see("ADDED", policy("b"))
    (a, b) = ((each.name, each.revision) for each in followed.policies.in_force().others)
    assert followed.rows() == {built_in, a, b}
    followed.see("MODIFIED", policy("a", 2))
    followed.see("DELETED", policy("b"))
    assert followed.rows() == {built_in, ("a", b[1])}


def test_a_file_is_not_applied_while_an_object_is_the_default_policy(followed: Followed) -> None:
    followed.see("ADDED", policy("default", namespaceSelector=None, priority=7))
    told: list[str] = []
    followed.policies.follow(lambda default: told.append(default.identity))
    count = followed.applied()
    file = parse_tested_policy(policy_text(policy("file", queueing="kueue")), "policy.yaml")
    with structlog.testing.capture_logs() as logs:
        followed.policies.replace(file)
        assert (followed.policies.current().name, followed.applied(), told) == ("default", count, [])
        followed.see("DELETED", policy("default"))

    assert [log["event"] for log in logs] == [
        "policy read, but a PlacementPolicy is in force instead",
        "policies of the cluster applied",
    ]
    assert (followed.policies.current(), followed.applied(), told) == (file, count + 1, [file.identity])


def test_followers_learn_of_each_change_of_the_policies_in_force(followed: Followed) -> None:
    told: list[str] = []
    followed.policies.follow(lambda default: told.append(default.name))
    followed.see("ADDED", policy("a", priority=1))
    followed.see("MODIFIED", policy("a", 2, keyDomain="no domain"))
    assert told == ["default"]
    followed.see("DELETED", policy("a"))
    assert told == ["default", "default"]


BAD = {"keyDomain": "no domain"}


def rejected(name: str, generation: int = 2, revision: str = "r1") -> Object:
    """Return an object that is not valid, of which `revision` is in force in other replicas."""
    return policy(name, generation, **BAD) | {"status": {"revision": revision} if revision else {}}


def test_a_replica_waits_for_a_rejected_object_that_is_in_force_in_others(followed: Followed) -> None:
    with structlog.testing.capture_logs() as logs:
        followed.see("ADDED", rejected("a"))
    reason = followed.source.unready_reason()
    assert reason.startswith("a@r1 is in force in other replicas and not known here")
    assert reason.endswith("PlacementPolicy a is rejected: correct or delete it")
    assert followed.policies.note().startswith("the newest policy is rejected and no earlier one is known: ")
    assert followed.policies.describe()["missingPolicies"] == {"a": "r1"}
    assert followed.missing() == 1
    assert ("a PlacementPolicy is rejected, and its last good generation is not known here", "a@r1") in [
        (log["event"], log["policy"]) for log in logs
    ]

    followed.see("MODIFIED", rejected("a", 3))
    assert followed.source.unready_reason()


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_the_wait_ends_when_the_object_is_corrected_or_deleted(followed: Followed, event: str) -> None:
    followed.see("ADDED", rejected("a"))
    followed.see(event, policy("a", 3))
    assert followed.source.unready_reason() == ""
    assert followed.policies.describe()["missingPolicies"] == {}
    assert followed.missing() == 0


def test_an_object_that_was_never_in_force_keeps_no_replica_waiting(followed: Followed) -> None:
    followed.see("ADDED", rejected("a", revision=""))
    assert followed.source.unready_reason() == ""
    assert followed.policies.note()


def test_a_replica_with_a_last_good_generation_stays_ready(followed: Followed) -> None:
    followed.see("ADDED", policy("a"))
    followed.see("MODIFIED", rejected("a"))
    assert (followed.source.unready_reason(), followed.missing()) == ("", 0)


def test_a_replica_that_was_ready_stays_ready(followed: Followed) -> None:
    """It decides as before; without it, there may be no replica left."""
    followed.judged()
    followed.see("ADDED", rejected("a"))
    assert (followed.source.unready_reason(), followed.missing()) == ("", 1)


def test_an_object_is_judged_again_after_an_internal_error() -> None:
    errors = [MemoryError(), MemoryError()]

    def validated(text: bytes, place: str) -> Policy:
        if errors:
            raise errors.pop()
        return parse_tested_policy(text, place)

    followed = Followed(validated)
    followed.source.store.replace({"a": rejected("a") | {"spec": {"namespaceSelector": {}}}})
    for _ in range(2):
        assert followed.judged() == []
        assert followed.policies.note().endswith("internal error: MemoryError()")
        # Other replicas decide by the object, and the error says nothing of the policy.
        assert followed.source.unready_reason()
        asyncio.run(followed.source.write_status())
    assert followed.judged() == ["a 0"]
    assert (followed.source.unready_reason(), followed.policies.note()) == ("", "")


def test_objects_that_cannot_be_read_stay_in_force_and_are_reported(followed: Followed) -> None:
    followed.see("ADDED", policy("a", priority=1))
    followed.source.store.mark_unknown(KIND)
    assert followed.judged() == ["a 1"]
    assert "cannot be read" in followed.policies.note()
    followed.source.store.replace({})
    assert followed.judged() == []
    assert followed.policies.note() == ""


def test_errors_end_nothing(followed: Followed) -> None:
    """The objects are followed although one cannot be processed, and although no status can be written."""
    store = followed.source.store

    async def follow(logs: list[Any]) -> None:
        async with followed.source.polled(poll_seconds=60):
            store.replace({"a": {}})
            await until(lambda: any(log["event"] == "the PlacementPolicies cannot be followed" for log in logs))
            store.replace({"a": policy("a")})
            await until(lambda: any(log["event"].startswith("the status of a PlacementPolicy") for log in logs))
            store.apply(KIND, "ADDED", policy("b"))
            await until(lambda: [each.name for each in followed.policies.in_force().others] == ["a", "b"])

    with structlog.testing.capture_logs() as logs:
        asyncio.run(follow(logs))
    assert followed.faults == ["fault"]


def test_the_source_is_ready_once_the_objects_are_judged_or_cannot_be_read() -> None:
    followed = Followed()
    followed.judged()
    assert followed.source.unready_reason()
    followed.source.store.mark_unknown(KIND)
    followed.judged()
    assert followed.source.unready_reason() == ""


def test_the_status_is_the_same_for_every_replica_and_is_written_once() -> None:
    content = policy("a", 2)
    first = status_of(content, "r1", (), NOW)
    assert first is not None
    assert first["revision"] == "r1"
    assert status_of(content | {"status": first}, "r1", (), LATER) is None

    never_used = status_of(content, "r1", (), NOW, "a: b comes first")
    assert never_used is not None
    assert "revision" not in never_used
    assert [(each["type"], each["status"]) for each in never_used["conditions"]] == [
        ("Accepted", "True"),
        ("InForce", "False"),
    ]

    rejected = status_of(policy("a", 3) | {"status": first}, "", ("wrong",), LATER)
    assert rejected is not None
    assert rejected["revision"] == "r1"
    assert [(each["type"], each["status"], each["lastTransitionTime"]) for each in rejected["conditions"]] == [
        ("Accepted", "False", LATER),
        ("InForce", "False", LATER),
    ]
    shadowed = status_of(policy("a", 3) | {"status": first}, "r1", ("wrong",), LATER, "a: b comes first")
    assert shadowed is not None
    assert "revision" not in shadowed
    # The status of the good generation was not written before the next one came.
    unwritten = status_of(policy("a", 3), "r1", ("wrong",), LATER)
    assert unwritten is not None
    assert unwritten["revision"] == "r1"
    again = status_of(policy("a", 4) | {"status": rejected}, "", ("still wrong",), "2026-01-01T02:00:00Z")
    assert again is not None
    assert {each["lastTransitionTime"] for each in again["conditions"]} == {LATER}
