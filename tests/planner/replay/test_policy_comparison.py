"""What a replay reports: nothing for the same policy, and otherwise what `mutate` prints."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from placement_planner.replay import policy_comparison as module
from placement_planner.replay.admission import Admission, admission_of
from placement_planner.replay.decision import Change, Decider, Decision
from placement_planner.replay.policy_comparison import OTHERS, Difference, Replay, Report, Tally
from placement_planner.replay_sources import ReplaySources
from tests.golden.case import CASES, load, policy_of
from tests.support.admission import TYPE, USAGE, policy_with
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.clusters import review
from tests.support.programs.command import run_here
from tests.support.programs.recorded_admissions import generated_review, write_recorded
from tests.support.servers.server import review_bytes
from webhook.admission.missed import Scope
from webhook.admission.recorded_pod import RecordedPod
from webhook.cli.output.yaml_text import to_yaml
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import FieldError
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

TRAINING = make_pod("trainer").namespace("team-a").annotate(TYPE, "training").owner("Job", "train")
MARKS = ("~1placement-policy", "~1placement-rules")
WITH_POLICY = [path for path in CASES if "\npolicy:\n" in path.read_text()]


def fail(error: FieldError) -> None:
    raise AssertionError(error)


def replay(
    admissions: Iterable[Admission], new: PolicySet, against: PolicySet, snapshot: Snapshot | None = None
) -> Report:
    made = Replay(new, against, snapshot)
    for each in admissions:
        made.add(each)
    return made.report


def replayed(path: Path, policy: Policy) -> Report:
    """The report on the policy of an audit file against itself."""
    with ExitStack() as stack:
        sources = ReplaySources([str(path)], fail, stack)
        return replay(sources.admissions({}), PolicySet(policy), PolicySet(policy))


def of_pods(*pods: dict[str, Any]) -> list[Admission]:
    return [admission_of(each, each["metadata"].get("namespace") or "default", name="pod") for each in pods]


def compared(admissions: Sequence[Admission], new: Policy, old: Policy | None = None) -> Report:
    return replay(admissions, PolicySet(new), PolicySet(old or policy_with()))


def found(pod: dict[str, Any], new: Policy, old: Policy | None = None) -> list[str]:
    return [str(each) for each, _ in compared(of_pods(pod), new, old).sorted_tallies()]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_policy_of_a_golden_case_against_itself_changes_nothing(path: Path, tmp_path: Path) -> None:
    case = load(path)
    policy = policy_of(case)
    file = write_recorded(tmp_path / "audit.jsonl", [review_bytes(case["pod"])], policy)
    report = replayed(file, policy)

    assert (report.pods, report.tallies) == (1, {})


@pytest.mark.parametrize("path", WITH_POLICY, ids=lambda path: path.stem)
def test_a_policy_of_equal_revision_changes_nothing(path: Path) -> None:
    """The order of maps is not a part of the revision."""
    case = load(path)
    policy = policy_of(case)
    document = policy.document.model_dump(mode="json", by_alias=True)
    other = parse_policy(orjson.dumps({**document, "spec": _reversed(document["spec"])}), "policy")
    pod = {**case["pod"], "metadata": {"namespace": "default", **case["pod"]["metadata"]}}

    assert other.revision == policy.revision
    assert found(pod, other, policy) == []


def _reversed(value: Any) -> Any:
    """Return maps in the reverse order of their keys."""
    if isinstance(value, dict):
        return {key: _reversed(inner) for key, inner in reversed(value.items())}
    return [*map(_reversed, value)] if isinstance(value, list) else value


@pytest.mark.slow
def test_a_policy_against_itself_changes_nothing_in_a_burst_and_in_generated_admissions(tmp_path: Path) -> None:
    burst = write_recorded(tmp_path / "burst.jsonl", (review(number, shape=number % 5) for number in range(500)))
    day = write_recorded(tmp_path / "day.jsonl", map(generated_review, range(examples(10_000))))
    reports = [replayed(path, policy_with()) for path in (burst, day)]

    assert [(each.pods, each.changed) for each in reports] == [(500, 0), (examples(10_000), 0)]
    assert b"secret-" not in (tmp_path / "day.jsonl.pods").read_bytes()


# Half of them, since each runs two commands.
@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_POLICY[::2], ids=lambda path: path.stem)
def test_each_difference_is_what_mutate_prints_with_the_two_policies(path: Path, tmp_path: Path) -> None:
    case = load(path)
    pod = {**case["pod"], "metadata": {"namespace": "default", **case["pod"]["metadata"]}}
    (tmp_path / "pod.json").write_bytes(orjson.dumps(pod))
    new, old = policy_of(case), policy_with()
    difference = Replay(PolicySet(new), PolicySet(old)).add(of_pods(pod)[0])
    patches = []
    for policy in (old, new):
        (tmp_path / "policy.yaml").write_text(to_yaml(policy.document.model_dump(mode="json", by_alias=True)))
        done = run_here(*("mutate", "-f", tmp_path / "pod.json", "--policy", tmp_path / "policy.yaml", "-o", "patch"))
        patches.append([each for each in orjson.loads(done.output) or () if not each["path"].endswith(MARKS)])
        assert done.code in (0, 5), done.errors
    if difference is None:
        assert patches[0] == patches[1]
    else:
        assert [list(each.operations) for each in (difference.old, difference.new)] == patches


def test_a_pod_that_the_new_policy_refuses_is_an_outcome() -> None:
    new = policy_with(workloadTypes={"inference": {"nodeUsage": {"allow": ["inference"]}}})
    report = compared(of_pods(TRAINING.obj()), new)

    assert next(str(each) for each, _ in report.sorted_tallies()) == "outcome: Patched → Denied"
    assert (report.changed, report.refused, report.worse) == (1, 1, 0)


def test_scheduler_rules_and_tolerations_are_changes_of_their_own() -> None:
    new = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "binPacking": True}})

    assert found(TRAINING.obj(), new) == [
        "scheduler: volcano → default-scheduler",
        "rules: NodeUsageAffinity makes other edits",
        "rules: SchedulerName no longer applies",
        f"tolerations: lost: {USAGE}=hybrid:NoSchedule",
        "fields: spec.affinity",
    ]


def test_the_name_and_revision_of_the_policy_are_no_change() -> None:
    assert found(TRAINING.obj(), policy_with(tests=[]), policy_with(requireType="deny")) == []


def test_a_pod_that_is_nested_too_deeply_to_be_patched_is_invalid() -> None:
    pod = TRAINING.obj()
    for _ in range(400):
        pod["status"] = {"status": pod.get("status", {})}
    decider = Decider(PolicySet(policy_with()))

    decision = decider.decide(RecordedPod(pod, None, ()), "team-a", "")

    assert (decision.outcome, decision.message) == ("Invalid", "the pod is nested too deeply")


def test_a_bypass_for_a_new_reason_or_a_warning_is_reported() -> None:
    plain = make_pod("web").gpu(1).obj()

    assert found(plain, policy_with(requireType="deny"))[0] == "outcome: Bypassed → Denied"
    assert "warnings: new:" in "\n".join(found(plain, policy_with(requireType="warn")))


def test_verdicts_are_compared_on_a_view_alone() -> None:
    node = make_node_object("a", labels={USAGE: "hybrid"}, capacity={"nvidia.com/gpu": 8})
    snapshot = snapshot_from_documents([Document("a", node)])
    new = policy_with(
        workloadTypes={
            "training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "volcano", "binPacking": True}
        }
    )
    pod = TRAINING.gpu(1).obj()
    report = replay(of_pods(pod), PolicySet(new), PolicySet(policy_with()), snapshot)

    assert Change("verdict", "Feasible → Infeasible") in report.tallies
    assert report.worse == 1
    assert not any(each.kind == "verdict" for each in compared(of_pods(pod), new).tallies)


def test_the_labels_of_a_namespace_of_the_view_choose_the_policy_of_pods_without_recorded_ones() -> None:
    other = policy_with(requireType="deny", namespaceSelector={"matchLabels": {"team": "a"}})
    other.name = "other"
    metadata = {"name": "team-a", "labels": {"team": "a"}}
    namespace = Document("n", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    pods = [admission_of(make_pod("web").gpu(1).obj(), name, name="p") for name in ("team-a", "team-b")]
    new, old = PolicySet(policy_with(), (other,)), PolicySet(policy_with())

    with_view, without = (replay(pods, new, old, each) for each in (snapshot_from_documents([namespace]), None))

    assert (with_view.changed, with_view.refused, without.changed) == (1, 1, 0)


def test_the_labels_of_the_recorded_namespace_choose_the_policy() -> None:
    other = policy_with(requireType="deny", namespaceSelector={"matchLabels": {"team": "a"}})
    other.name = "other"
    pods = [
        admission_of(make_pod("web").gpu(1).obj(), "team-a", scope=Scope({}, {"team": team}), name=team)
        for team in ("a", "b")
    ]
    report = replay(pods, PolicySet(policy_with(), (other,)), PolicySet(policy_with()))

    assert {each.name for tally in report.tallies.values() for each in tally.examples} == {"a"}
    assert report.changed == 1


def test_a_user_who_is_exempt_is_decided_on_as_such() -> None:
    new = policy_with(exemptions=[{"users": ["jane"], "reason": "she knows"}])
    pod = TRAINING.obj()
    report = compared([admission_of(pod, "team-a", user=user, name=user) for user in ("jane", "joe", "jane")], new)

    assert (report.pods, report.changed) == (3, 2)


def test_equal_pods_are_decided_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    decide = Decider.decide

    def counted(self: Decider, *given: Any) -> Decision:
        calls.append("")
        return decide(self, *given)

    monkeypatch.setattr(Decider, "decide", counted)
    pods = [make_pod(f"worker-{number}").annotate(TYPE, "training").obj() for number in range(50)]
    report = compared(of_pods(*pods), policy_with(requireType="deny"))

    assert (report.pods, len(calls)) == (50, 2)


def test_what_is_counted_by_name_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MOST_NAMES", "_MOST_CHANGES"):
        monkeypatch.setattr(module, name, 3)
    pods = [make_pod("web").namespace(f"team-{number}").annotate(TYPE, f"t{number}").obj() for number in range(9)]
    report = compared(of_pods(*pods), policy_with(requireType="deny", invalidAnnotations="warn"))
    tally = max(report.tallies.values(), key=lambda each: each.pods)

    assert len(report.tallies) <= 3 + 8
    assert (tally.pods, len(tally.namespaces)) == (9, 4)
    assert tally.namespaces[module.OTHERS] == 6


def of_one(name: str, owner: str = "", user: str = "", **facts: str) -> Admission:
    return admission_of(TRAINING.obj(), "team-a", name=name, owner=owner, user=user, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_difference_in_json_has_nulls_for_what_is_not_known(*, is_known: bool) -> None:
    facts = {"owner": "Job/j", "user": "jane", "time": "t", "place": "f:1"} if is_known else {}
    admission = admission_of(TRAINING.obj(), "team-a", name="p", **facts)  # type: ignore[arg-type]
    made = Replay(PolicySet(policy_with(workloadTypes=OTHER_TYPE)), PolicySet(policy_with()))
    found = made.add(admission)

    assert found is not None
    shown = found.to_json()
    assert shown["pod"] == "team-a/p"
    assert {key: shown[key] for key in ("owner", "user", "time", "place")} == (
        facts if is_known else dict.fromkeys(("owner", "user", "time", "place"))
    )
    assert shown["changes"][0] == {"kind": "outcome", "detail": "Patched → Denied"}
    assert (shown["old"]["outcome"], shown["new"]["outcome"]) == ("Patched", "Denied")


OTHER_TYPE = {"inference": {"nodeUsage": {"allow": ["inference"]}}}


def test_a_tally_counts_pods_owners_namespaces_and_the_first_three_pods() -> None:
    admissions = [of_one(f"p{number}", "Job/j" if number < 2 else "") for number in range(5)]
    report = compared(admissions, policy_with(workloadTypes=OTHER_TYPE))
    tally = report.tallies[Change("outcome", "Patched → Denied")]

    assert (report.pods, report.changed, report.refused, tally.pods) == (5, 5, 5, 5)
    assert tally.owners == {"team-a/Job/j": 2, "team-a/p2": 1, "team-a/p3": 1, "team-a/p4": 1}
    assert tally.namespaces == {"team-a": 5}
    assert [each.name for each in tally.examples] == ["p0", "p1", "p2"]


def test_only_pods_that_the_new_policy_alone_refuses_are_counted_as_refused() -> None:
    denying = policy_with(workloadTypes=OTHER_TYPE)
    other = policy_with(workloadTypes=OTHER_TYPE, invalidAnnotations="deny", keyDomain=TYPE.partition("/")[0])
    for new, old, refused in ((denying, policy_with(), 1), (policy_with(), denying, 0), (denying, other, 0)):
        assert compared([of_one("p")], new, old).refused == refused


def test_changes_are_sorted_by_kind_then_by_their_pods_then_by_their_text() -> None:
    report = Report()
    pods = [of_one(f"p{number}") for number in range(3)]
    decision = Decision("p", "Patched")
    many, first, second, outcome = (
        Change("rules", "b"), Change("rules", "a"), Change("rules", "c"), Change("outcome", "z")
    )  # fmt: skip
    for number, kinds in enumerate(((many, second), (many, first), (outcome,))):
        report.count(module.Difference(pods[number], decision, decision, kinds, is_first=True))

    assert [each for each, _ in report.sorted_tallies()] == [outcome, many, first, second]


@pytest.mark.parametrize("exempting", ["new", "old", "none"])
def test_equal_pods_of_two_users_are_two_decisions_if_a_policy_reads_users(exempting: str) -> None:
    jane = policy_with(exemptions=[{"users": ["jane"], "reason": "she knows"}])
    pair = {"new": (jane, policy_with()), "old": (policy_with(), jane), "none": (policy_with(), policy_with())}
    new, old = (PolicySet(each) for each in pair[exempting])
    made = Replay(new, old)
    found = [made.add(of_one(user, user=user)) for user in ("jane", "joe", "jane")]

    assert [each is not None for each in found] == ([True, False, True] if exempting != "none" else [False] * 3)
    assert [each.is_first for each in found if each is not None] == ([True, False] if exempting != "none" else [])


def test_recorded_policies_are_counted() -> None:
    admissions = [of_one("a"), *(replace(of_one("b"), policy=name) for name in ("x@1", "x@1", "y@2"))]

    assert compared(admissions, policy_with()).policies == {"x@1": 2, "y@2": 1}


def test_a_pod_that_cannot_be_keyed_is_decided_on_each_time() -> None:
    admissions = [replace(of_one("p"), key=b"") for _ in range(2)]
    made = Replay(PolicySet(policy_with(workloadTypes=OTHER_TYPE)), PolicySet(policy_with()))
    found = [made.add(each) for each in admissions]

    assert [each is not None and each.is_first for each in found] == [True, True]


def test_only_pods_that_the_old_policy_admits_are_newly_refused() -> None:
    report = Report()
    for old, new in (("Patched", "Denied"), ("Denied", "Invalid"), ("Invalid", "Denied"), ("Denied", "Patched")):
        found = Difference(of_pods(TRAINING.obj())[0], Decision("", old), Decision("", new), (), is_first=True)
        report.count(found)

    assert (report.changed, report.refused) == (4, 1)


def test_names_beyond_a_limit_are_counted_together_and_known_ones_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NAMES", 2)
    tally = Tally()
    for name in ("a", "b", "c", "d", "a"):
        tally.add(replace(of_pods(TRAINING.obj())[0], namespace=name))

    assert dict(tally.namespaces) == {"a": 2, "b": 1, OTHERS: 2}
