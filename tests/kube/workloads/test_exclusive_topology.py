"""The terms that LeaderWorkerSet and JobSet add to pods with exclusive topology domains, as their sources have them."""

import hashlib
from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import jobset, leader_worker_set
from webhook.kube.workloads.pod_set import PodSet

LWS, JOBSET = "leaderworkerset.sigs.k8s.io", "alpha.jobset.sigs.k8s.io"
GROUP, JOB = f"{LWS}/group-key", "jobset.sigs.k8s.io/job-key"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def annotated(content: dict[str, Any], key: str, value: str = "rack") -> list[PodSet]:
    content["metadata"]["annotations"] = {key: value}
    return list(sets_of(content))


def led(pods: PodSet, index: int, priority: int = 0) -> dict[str, Any]:
    """Return the affinity of the leader number `index`."""
    (rule,) = pods.exclusive
    found: dict[str, Any] = rule.leading(pods.pod_at(index), pods.group_of(rule, index), priority)["spec"]["affinity"]
    return found


def test_the_leader_of_a_group_gets_the_terms_of_leader_worker_set() -> None:
    """Source: sigs.k8s.io/lws/pkg/webhooks/pod_webhook.go, SetExclusiveAffinities, genGroupUniqueKey."""
    leaders, workers = annotated(leader_worker_set(), f"{LWS}/exclusive-topology")
    group = sha1("team-a/web-1")

    own = {"key": GROUP, "operator": "In", "values": [group]}
    others = [{"key": GROUP, "operator": "Exists"}, {"key": GROUP, "operator": "NotIn", "values": [group]}]
    assert led(leaders, 1) == {
        "podAffinity": {REQUIRED: [{"labelSelector": {"matchExpressions": [own]}, "topologyKey": "rack"}]},
        "podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchExpressions": others}, "topologyKey": "rack"}]},
    }
    (rule,) = workers.exclusive
    assert (leaders.follows, workers.follows, leaders.caveat, workers.caveat) == (False, True, "", "")
    assert [workers.group_of(rule, index) for index in range(4)] == [sha1("team-a/web-0")] * 2 + [group] * 2


def test_the_terms_are_added_to_those_of_the_user() -> None:
    term = {"labelSelector": {}, "topologyKey": "zone"}
    content = leader_worker_set()
    affinity = {"nodeAffinity": {}, "podAffinity": {REQUIRED: [term], "preferred": 1}}
    leader = content["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    content["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = {
        **leader,
        "spec": {**leader["spec"], "affinity": affinity},
    }

    found = led(annotated(content, f"{LWS}/exclusive-topology")[0], 0)

    assert found["nodeAffinity"] == {}
    assert (found["podAffinity"][REQUIRED][0], found["podAffinity"]["preferred"]) == (term, 1)
    assert len(found["podAffinity"][REQUIRED]) == 2


@pytest.mark.parametrize(("key", "number"), [("rack", 1), ("zone", 2)])
def test_leader_worker_set_keeps_own_terms_of_both_kinds_for_the_key(key: str, number: int) -> None:
    """Source: sigs.k8s.io/lws/pkg/webhooks/pod_webhook.go, exclusiveAffinityApplied."""
    terms = {REQUIRED: [{"labelSelector": {}, "topologyKey": key}]}
    content = leader_worker_set()
    leader = content["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    spec = {**leader["spec"], "affinity": {"podAffinity": terms, "podAntiAffinity": terms}}
    content["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = {**leader, "spec": spec}

    found = led(annotated(content, f"{LWS}/exclusive-topology")[0], 0)

    assert [len(each[REQUIRED]) for each in found.values()] == [number, number]


def test_the_first_pod_of_each_job_leads_and_has_terms_for_its_priority() -> None:
    """Source: sigs.k8s.io/jobset/pkg/webhooks/pod_webhook.go; pkg/controllers/jobset_controller.go, jobHashKey."""
    leaders, followers = annotated(jobset(), f"{JOBSET}/exclusive-topology")
    (rule,) = leaders.exclusive
    job = sha1("team-a/web-node-1")

    assert [(each.role, each.replicas) for each in (leaders, followers)] == [
        ("node (leaders)", 2),
        ("node (followers)", 4),
    ]
    pods = [*map(leaders.pod_at, range(2)), *map(followers.pod_at, range(4))]
    names = [pod["metadata"]["generateName"] for pod in pods]
    assert names == [f"web-node-{at}-" for at in ("0-0", "1-0", "0-1", "0-2", "1-1", "1-2")]
    assert [followers.group_of(rule, index) == job for index in range(4)] == [False, False, True, True]
    affinity = led(leaders, 1, priority=1000)
    assert affinity["podAntiAffinity"][REQUIRED] == [
        {
            "labelSelector": {
                "matchExpressions": [
                    {"key": JOB, "operator": "Exists"},
                    {"key": JOB, "operator": "NotIn", "values": [job]},
                    {"key": "jobset.sigs.k8s.io/priority", "operator": "In", "values": ["1000"]},
                ]
            },
            "topologyKey": "rack",
            "namespaceSelector": {},
        }
    ]
    assert affinity["podAffinity"][REQUIRED][0]["namespaceSelector"] == {}
    labels = rule.labelled(leaders.pod, "x", 1000)["metadata"]["labels"]
    assert (labels[JOB], labels["jobset.sigs.k8s.io/priority"]) == ("x", "1000")


def test_the_annotation_of_a_job_takes_precedence_over_that_of_the_job_set() -> None:
    content = jobset()
    (first,) = content["spec"]["replicatedJobs"]
    metadata = {"annotations": {f"{JOBSET}/exclusive-topology": "zone"}}
    one = {"name": "b", "template": {"metadata": metadata, "spec": {**first["template"]["spec"], "parallelism": 1}}}
    content["spec"]["replicatedJobs"].append(one)

    alone = [(each.role, *(rule.topology_key for rule in each.exclusive)) for each in sets_of(content)]
    both = annotated(content, f"{JOBSET}/exclusive-topology")

    assert alone == [("node",), ("b (leaders)", "zone")]
    assert [each.exclusive[0].topology_key for each in both] == ["rack", "rack", "zone"]


def test_the_node_selectors_of_a_script_are_not_known() -> None:
    content = jobset()
    content["metadata"]["annotations"] = {f"{JOBSET}/exclusive-topology": "rack", f"{JOBSET}/node-selector": "true"}

    assert all("a script labels" in each.caveat for each in sets_of(content))


@pytest.mark.parametrize(
    ("size", "subgroup", "groups"),
    [(6, 2, "001122"), (5, 2, "00011"), (7, 3, "0000111"), (4, 4, "0000"), (3, 3, "000")],
)
def test_pods_are_in_the_subgroups_of_leader_worker_set(size: int, subgroup: int, groups: str) -> None:
    """Source: sigs.k8s.io/lws/pkg/webhooks/pod_webhook.go, getSubGroupIndex."""
    content = leader_worker_set()
    content["spec"]["leaderWorkerTemplate"] |= {"size": size, "subGroupPolicy": {"subGroupSize": subgroup}}

    leaders, workers = annotated(content, f"{LWS}/subgroup-exclusive-topology")

    found = [leaders.group_of(leaders.exclusive[0], 1)]
    found += [workers.group_of(workers.exclusive[0], size - 1 + index) for index in range(size - 1)]
    assert found == [sha1(f"web-1/{each}") for each in groups]
    assert not workers.follows


def test_a_leader_that_is_excluded_is_in_no_subgroup() -> None:
    content = leader_worker_set()
    policy = {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}
    content["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = policy

    leaders, workers = annotated(content, f"{LWS}/subgroup-exclusive-topology")

    assert (leaders.exclusive, len(workers.exclusive)) == ((), 1)


def test_subgroups_without_a_size_have_no_terms() -> None:
    assert [each.exclusive for each in annotated(leader_worker_set(), f"{LWS}/subgroup-exclusive-topology")] == [(), ()]


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize(("parallelism", "shares"), [(0, [0]), (1, [1]), (2, [1, 1]), (5, [1, 4])])
def test_each_job_has_a_leader_and_the_others_follow_also_if_it_has_one_pod_or_none(
    jobs: int, parallelism: int, shares: list[int]
) -> None:
    content = jobset()
    (group,) = content["spec"]["replicatedJobs"]
    spec = {**group["template"]["spec"], "parallelism": parallelism, "completions": None}
    content["spec"]["replicatedJobs"] = [{**group, "replicas": jobs, "template": {**group["template"], "spec": spec}}]

    found = annotated(content, f"{JOBSET}/exclusive-topology")

    assert [(each.role, each.replicas) for each in found] == [
        (f"node ({role})", jobs * share) for role, share in zip(("leaders", "followers"), shares, strict=False)
    ]
    assert [each.follows for each in found] == [False, True][: len(shares)]


@pytest.mark.parametrize("together", [(), ("zone",), ("rack",), ("zone", "rack")])
@pytest.mark.parametrize("apart", [(), ("zone",), ("rack",), ("zone", "rack")])
def test_a_leader_with_own_terms_of_both_kinds_over_the_key_keeps_only_these(
    together: tuple[str, ...], apart: tuple[str, ...]
) -> None:
    """Source: sigs.k8s.io/lws/pkg/webhooks/pod_webhook.go, exclusiveAffinityApplied. JobSet always adds its terms."""
    own = {
        kind: {REQUIRED: [{"labelSelector": {}, "topologyKey": key} for key in keys]}
        for kind, keys in (("podAffinity", together), ("podAntiAffinity", apart))
    }
    leader_of_set, *_ = annotated(leader_worker_set(), f"{LWS}/exclusive-topology")
    leader_of_job, *_ = annotated(jobset(), f"{JOBSET}/exclusive-topology")
    for pods, keeps_own in ((leader_of_set, True), (leader_of_job, False)):
        (rule,) = pods.exclusive
        pod = {**pods.pod, "spec": {**pods.pod["spec"], "affinity": own}}

        found = rule.leading(pod, "value", 0)["spec"]["affinity"]

        is_kept = keeps_own and "rack" in together and "rack" in apart
        added = {kind: [each for each in found[kind][REQUIRED] if each not in own[kind][REQUIRED]] for kind in own}
        assert {kind: len(each) for kind, each in added.items()} == dict.fromkeys(own, 0 if is_kept else 1)
        for kind, each in own.items():
            assert found[kind][REQUIRED][: len(each[REQUIRED])] == each[REQUIRED]
