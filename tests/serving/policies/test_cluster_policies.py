"""PlacementPolicy objects: what is in force while they change, and the status that each gets."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

import orjson
import pytest
import structlog

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.live import until
from tests.support.servers.server import Clock, World, policies_of, review_bytes
from webhook.admission.policy_cases import parse_tested_policy
from webhook.documents.field import InvalidInput
from webhook.objects.policy_object import validated_policy
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import accepted_policies, policy_text
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.runtime.metrics import Metrics
from webhook.serving.policies import cluster_policies
from webhook.serving.policies.cluster_policies import ClusterPolicies
from webhook.serving.policies.in_force import Policies
from webhook.serving.policies.policy_status import GoodGeneration, JudgedObject, StatusWriter, status_of
from webhook.watch.api_errors import UnreachableError
from webhook.watch.api_server import ApiServer

Object = dict[str, Any]
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def policy(name: str, generation: int = 1, uid: str = "u", **spec: Any) -> Object:
    metadata = {"name": name, "uid": uid, "generation": generation}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"namespaceSelector": {}} | spec}


class Followed:
    """The policies of a cluster, judged after each change."""

    def __init__(self, validated: Callable[[bytes, str], Policy] = validated_policy) -> None:
        def connect() -> ApiServer:
            raise UnreachableError("connection refused")

        self.metrics, self.faults, self.clock = Metrics(), list[str](), Clock()
        self.policies: Policies = policies_of(built_in_policy(), self.metrics)
        self.source = ClusterPolicies(
            connect, self.policies, validated, lambda: NOW, None, self._note_fault, self.clock
        )

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


def test_a_policy_is_in_conflict_only_while_an_equal_one_comes_before_it(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []

    async def keep(judged: Sequence[JudgedObject]) -> None:
        found.append([each.name for each in judged if each.conflict])

    monkeypatch.setattr(followed.source._writer, "write", keep)
    for event, content in (
        ("ADDED", policy("b", priority=1)),
        ("ADDED", policy("a", uid="a", priority=1)),
        ("MODIFIED", policy("a", 2, "a", priority=2)),
        ("MODIFIED", policy("a", 3, "a", priority=1)),
        ("MODIFIED", policy("a", 4, "a", priority=1, keyDomain="no domain")),
        ("DELETED", policy("a", 4, "a")),
    ):
        followed.see(event, content)
        asyncio.run(followed.source.write_status())
    # The rejected generation leaves the one before it in force.
    assert found == [[], ["b"], [], ["b"], ["b"], []]


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
    followed_defaults: list[str] = []
    followed.policies.follow(lambda default: followed_defaults.append(default.identity))
    count = followed.applied()
    file = parse_tested_policy(policy_text(policy("file", queueing="kueue")), "policy.yaml")
    with structlog.testing.capture_logs() as logs:
        followed.policies.replace(file)
        assert (followed.policies.current().name, followed.applied(), followed_defaults) == ("default", count, [])
        followed.see("DELETED", policy("default"))

    assert [log["event"] for log in logs] == [
        "policy read, but a PlacementPolicy is in force instead",
        "policies of the cluster applied",
    ]
    assert (followed.policies.current(), followed.applied(), followed_defaults) == (file, count + 1, [file.identity])


def test_followers_learn_of_each_change_of_the_policies_in_force(followed: Followed) -> None:
    followed_defaults: list[str] = []
    followed.policies.follow(lambda default: followed_defaults.append(default.name))
    followed.see("ADDED", policy("a", priority=1))
    followed.see("MODIFIED", policy("a", 2, keyDomain="no domain"))
    assert followed_defaults == ["default"]
    followed.see("DELETED", policy("a"))
    assert followed_defaults == ["default", "default"]


BAD = {"keyDomain": "no domain"}


def rejected(name: str, generation: int = 2, revision: str = "r1") -> Object:
    """Return an object that is not valid, of which `revision` was in force."""
    return policy(name, generation, **BAD) | {"status": {"revision": revision} if revision else {}}


def test_a_replica_waits_for_a_rejected_object_that_was_in_force(followed: Followed) -> None:
    with structlog.testing.capture_logs() as logs:
        followed.see("ADDED", rejected("a"))
    reason = followed.source.unready_reason()
    assert reason.startswith("a@r1 was in force and is not known here")
    assert "PlacementPolicy a is rejected: correct or delete it" in reason
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


def test_the_wait_ends_after_ten_minutes(followed: Followed) -> None:
    """There may be no other replica."""
    followed.see("ADDED", rejected("a"))
    followed.clock.seconds += 599.9
    followed.judged()
    assert followed.source.unready_reason()
    followed.clock.seconds += 0.1
    assert followed.judged() == []
    assert (followed.source.unready_reason(), followed.missing()) == ("", 1)
    assert followed.policies.describe()["missingPolicies"] == {"a": "r1"}
    assert followed.policies.note()


def rejected_with_last_good(name: str, *, revision: str = "", **spec: Any) -> Object:
    """Return a rejected object whose status has a last good generation, with this revision if it is given."""
    good = {"namespaceSelector": {}, "queueing": "kueue"} | spec
    try:
        of_spec = parse_tested_policy(policy_text(policy(name) | {"spec": good}), "good").revision
    except InvalidInput:
        of_spec = "r1"
    return policy(name, 2, **BAD) | {"status": {"revision": revision or of_spec, "inForceSpec": good}}


def test_a_replica_that_starts_takes_the_last_good_generation_from_the_status(followed: Followed) -> None:
    content = rejected_with_last_good("a", priority=7)
    with structlog.testing.capture_logs() as logs:
        assert followed.see("ADDED", content) == ["a 7"]
    (in_force,) = followed.policies.in_force().others
    assert (in_force.spec.queueing, in_force.revision) == ("kueue", content["status"]["revision"])
    assert (followed.source.unready_reason(), followed.missing()) == ("", 0)
    assert followed.policies.note().startswith("the newest policy is rejected and the last good one stays in force: ")
    restored = "the last good generation of a PlacementPolicy is read from its status"
    assert (restored, in_force.identity) in [(log["event"], log.get("policy")) for log in logs]

    assert followed.see("MODIFIED", policy("a", 3, priority=3)) == ["a 3"]
    assert followed.see("MODIFIED", rejected_with_last_good("a", priority=7) | rejected("a", 4)) == ["a 3"]


def test_commands_take_the_last_good_generation_from_the_status(followed: Followed) -> None:
    content = rejected_with_last_good("a")
    followed.see("ADDED", content)
    of_commands = accepted_policies(built_in_policy(), [content])
    assert [each.identity for each in of_commands] == [each.identity for each in followed.policies.in_force()]
    assert accepted_policies(built_in_policy(), [rejected_with_last_good("a", revision="other")]).others == ()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (rejected_with_last_good("a", revision="other"), "status.revision"),
        (rejected_with_last_good("a", keyDomain="still none"), "status.inForceSpec: spec.keyDomain"),
        (rejected_with_last_good("a", namespaceSelector=None), "spec.namespaceSelector"),
        (rejected_with_last_good("a", tests=[{"name": "fails"}]), "spec.tests[0]"),
    ],
    ids=["revision", "schema", "selector", "test"],
)
def test_a_last_good_generation_that_is_not_valid_is_ignored(followed: Followed, content: Object, error: str) -> None:
    with structlog.testing.capture_logs() as logs:
        assert followed.see("ADDED", content) == []
        followed.judged()
    ignored = "the last good generation in the status of a PlacementPolicy cannot be used"
    (log,) = (log for log in logs if log["event"] == ignored)
    assert (log["policy"], error in log["errors"][0]) == ("a", True), log["errors"]
    assert followed.source.unready_reason()


def test_a_last_good_generation_that_another_replica_stores_later_is_taken(followed: Followed) -> None:
    content = rejected_with_last_good("a", priority=7)
    followed.see("ADDED", content | {"status": {"revision": content["status"]["revision"]}})
    assert followed.source.unready_reason()
    assert followed.see("MODIFIED", content) == ["a 7"]
    assert followed.source.unready_reason() == ""


def test_an_object_that_was_made_anew_has_its_own_last_good_generation(followed: Followed) -> None:
    followed.see("ADDED", rejected_with_last_good("a", priority=7))
    anew = rejected_with_last_good("a", priority=7)
    anew["metadata"]["uid"] = "other"
    assert followed.see("MODIFIED", anew) == ["a 7"]
    assert followed.see("MODIFIED", policy("a", 1, "third", **BAD)) == []


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
    assert "it is judged again" in followed.source.unready_reason()
    assert followed.judged() == ["a 0"]
    assert (followed.source.unready_reason(), followed.policies.note()) == ("", "")


def test_after_an_internal_error_the_last_good_generation_is_in_force() -> None:
    errors = [MemoryError(), MemoryError(), MemoryError()]

    def validated(text: bytes, place: str) -> Policy:
        if errors and (len(errors) == 2 or "status" not in place):
            raise errors.pop()
        return parse_tested_policy(text, place)

    followed = Followed(validated)
    content = rejected_with_last_good("a", priority=7) | {"spec": {"namespaceSelector": {}}}
    followed.source.store.replace({"a": content})
    assert followed.judged() == [], "both fail"
    assert followed.judged() == ["a 7"], "only the newest fails"
    assert followed.source.unready_reason() == ""
    assert followed.judged() == ["a 0"]


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


def good(revision: str, number: int, **spec: Any) -> GoodGeneration:
    return GoodGeneration(revision, spec, number)


def last_good(content: Object, known: GoodGeneration | None) -> tuple[str, Object | None]:
    """Write the status of a rejected object; return what it has of the last good generation."""
    content["status"] = status_of(content, known, ("wrong",), NOW) or content["status"]
    return content["status"].get("revision", ""), content["status"].get("inForceSpec")


def test_the_status_is_the_same_for_every_replica_and_is_written_once() -> None:
    content = policy("a", 2)
    first = status_of(content, good("r1", 2), (), NOW)
    assert first is not None
    assert (first["revision"], "inForceSpec" in first) == ("r1", False)
    assert status_of(content | {"status": first}, good("r1", 2), (), LATER) is None

    never_used = status_of(content, good("r1", 2), (), NOW, "a: b comes first")
    assert never_used is not None
    assert "revision" not in never_used
    assert [(each["type"], each["status"]) for each in never_used["conditions"]] == [
        ("Accepted", "True"),
        ("InForce", "False"),
    ]

    rejected = status_of(policy("a", 3) | {"status": first}, None, ("wrong",), LATER)
    assert rejected is not None
    assert rejected["revision"] == "r1"
    assert [(each["type"], each["status"], each["lastTransitionTime"]) for each in rejected["conditions"]] == [
        ("Accepted", "False", LATER),
        ("InForce", "False", LATER),
    ]
    shadowed = status_of(policy("a", 3) | {"status": first}, good("r1", 2), ("wrong",), LATER, "a: b comes first")
    assert shadowed is not None
    assert not {"revision", "inForceSpec"} & shadowed.keys()
    again = status_of(policy("a", 4) | {"status": rejected}, None, ("still wrong",), "2026-01-01T02:00:00Z")
    assert again is not None
    assert {each["lastTransitionTime"] for each in again["conditions"]} == {LATER}


def test_the_status_of_a_rejected_object_has_the_spec_in_force() -> None:
    content = policy("a", 2)
    content["status"] = status_of(content, good("r1", 2), (), NOW)
    content["metadata"]["generation"] = 3
    assert last_good(content, None) == ("r1", None), "of a replica that started"
    assert last_good(content, good("r1", 2, mode="shadow")) == ("r1", {"mode": "shadow"})
    assert last_good(content, None) == ("r1", {"mode": "shadow"})
    assert last_good(content, good("r1", 1, queueing="kueue")) == ("r1", {"mode": "shadow"}), "written once"
    assert last_good(content, good("r0", 1, queueing="kueue")) == ("r1", {"mode": "shadow"}), "older"

    accepted = status_of(content | policy("a", 4), good("r4", 4), (), NOW)
    assert accepted is not None
    assert (accepted["revision"], "inForceSpec" in accepted) == ("r4", False)


def test_a_good_generation_whose_status_was_not_written_is_stored() -> None:
    assert last_good(policy("a", 3), good("r2", 2)) == ("r2", {})
    content = policy("a", 3) | {"status": {"observedGeneration": 1, "revision": "r1", "inForceSpec": {"old": 1}}}
    assert last_good(content, good("r2", 2, mode="shadow")) == ("r2", {"mode": "shadow"})


def test_a_spec_that_etcd_may_not_take_twice_is_not_stored() -> None:
    assert last_good(policy("a", 2), good("r1", 1, text="a" * 300_000)) == ("r1", None)


_STRICT = {"matchLabels": {"team": "a"}}


def denying(followed: Followed) -> list[str]:
    """Return the names of the policies in force that deny every pod."""
    return [each.name for each in followed.policies.in_force().others if each.withheld is not None]


def test_an_object_that_was_never_valid_denies_its_namespaces_where_the_default_policy_says_so(
    followed: Followed,
) -> None:
    followed.see("ADDED", policy("strict", namespaceSelector=_STRICT, priority=5, workloadTypes={}))
    assert denying(followed) == []
    followed.see("ADDED", policy("default", uid="d", namespaceSelector=None, missingPolicy="deny"))
    assert denying(followed) == ["strict"]
    in_force = followed.policies.in_force()
    assert in_force.of_namespace("x", {"team": "a"}).withheld is not None
    assert in_force.of_namespace("x", {}).withheld is None
    applied = followed.applied()
    followed.judged()
    assert followed.applied() == applied
    followed.see("MODIFIED", policy("strict", 2, namespaceSelector=_STRICT, priority=5))
    assert denying(followed) == []


@pytest.mark.parametrize("trial", [{"mode": "shadow"}, {"canaryPercent": 10}], ids=str)
def test_an_object_that_was_never_valid_denies_though_the_default_policy_is_on_trial(
    followed: Followed, trial: dict[str, Any]
) -> None:
    """The trial is that of the default policy, and another policy would be in force."""
    followed.see("ADDED", policy("default", uid="d", namespaceSelector=None, missingPolicy="deny", **trial))
    followed.see("ADDED", policy("strict", namespaceSelector=_STRICT, workloadTypes={}))

    answering = World(policy=followed.policies.in_force().of_namespace("x", {"team": "a"})).admissions()
    bodies = [review_bytes(make_pod(f"p{number}").annotate(TYPE, "training").obj()) for number in range(20)]

    assert not any(orjson.loads(answering.answer(body, 0.0, None).body)["response"]["allowed"] for body in bodies)


@pytest.mark.parametrize("priority", ["9", None, True, 2.5])
def test_a_rejected_object_without_a_valid_priority_has_the_default_one(followed: Followed, priority: object) -> None:
    followed.see("ADDED", policy("default", uid="d", namespaceSelector=None, missingPolicy="deny"))
    followed.see("ADDED", policy("strict", namespaceSelector=_STRICT, priority=priority, workloadTypes={}))

    [stand_in] = followed.policies.in_force().others
    assert (stand_in.name, stand_in.spec.priority) == ("strict", 0)


@pytest.mark.parametrize("selector", [None, {"matchLabel": {"team": "a"}}, {"matchLabels": "a"}])
def test_a_rejected_object_without_a_valid_selector_denies_what_no_other_policy_selects(
    followed: Followed, selector: object
) -> None:
    followed.see("ADDED", policy("default", uid="d", namespaceSelector=None, missingPolicy="deny"))
    followed.see("ADDED", policy("a", uid="a", namespaceSelector=_STRICT, priority=-1000000))
    followed.see("ADDED", policy("typo", uid="t", namespaceSelector=selector, priority=9))

    in_force = followed.policies.in_force()
    assert in_force.of_namespace("x", {"team": "a"}).name == "a"
    assert in_force.of_namespace("x", {}).withheld is not None


def test_an_object_named_default_that_was_never_valid_leaves_no_namespace_to_the_file(followed: Followed) -> None:
    followed.policies.replace(policy_with(missingPolicy="deny"))
    followed.see("ADDED", policy("default", namespaceSelector=_STRICT))

    in_force = followed.policies.in_force()
    assert denying(followed) == ["default"]
    assert in_force.of_namespace("x", {}).withheld is not None


def test_an_object_with_a_last_good_generation_denies_nothing(followed: Followed) -> None:
    followed.see("ADDED", policy("default", uid="d", namespaceSelector=None, missingPolicy="deny"))
    followed.see("ADDED", policy("strict", namespaceSelector=_STRICT))
    assert followed.see("MODIFIED", policy("strict", 2, namespaceSelector=_STRICT, workloadTypes={})) == ["strict 0"]
    assert denying(followed) == []


class ServerOfStatuses:
    """An API server that takes each status, and whose watch is slow to report it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Keep no connection."""

    async def patch(self, path: str, *_: Any) -> None:
        self.paths.append(path)


def test_a_status_is_written_again_after_a_minute_at_the_earliest() -> None:
    server, clock = ServerOfStatuses(), Clock()

    def connect() -> Any:
        return server

    writer, judged = StatusWriter(connect, "/policies", lambda: NOW, clock), JudgedObject(policy("a"), errors=("no",))
    counts = []
    for seconds in (0, 59, 1):
        clock.seconds += seconds
        asyncio.run(writer.write([judged]))
        counts.append(len(server.paths))

    assert (counts, set(server.paths)) == ([1, 1, 2], {"/policies/a/status"})
