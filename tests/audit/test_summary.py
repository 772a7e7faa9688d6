from typing import Any

import orjson
import pytest

from tests.support.programs.audit_records import INFEASIBLE, at, make_record
from webhook.audit.record import AuditRecord, PolicyName, RuleEntry, ShadowEntry
from webhook.audit.summary import summarise


def denied(error: str, **fields: Any) -> AuditRecord:
    return make_record(outcome="Denied", error=error, **fields)


def test_no_records_make_an_empty_summary() -> None:
    summary = summarise([], slowest=5)
    assert (summary.total, summary.first, summary.last, summary.duration_ms, summary.slowest) == (0, None, None, {}, [])


def test_counts_by_type_outcome_and_verdict() -> None:
    records = [
        make_record(1),
        make_record(2, workload_type="inference", dry_run=True, placement=INFEASIBLE),
        make_record(3, workload_type=None, outcome="Bypassed", error="no workload type", placement=None),
    ]
    summary = summarise(records, slowest=0)
    assert (summary.total, summary.dry_runs) == (3, 1)
    assert (summary.first, summary.last) == (at(1), at(3))
    assert summary.workload_types == {"training": 1, "inference": 1, "(none)": 1}
    assert summary.outcomes == {"Patched": 2, "Bypassed": 1}
    assert summary.verdicts == {"Feasible": 1, "Infeasible": 1}
    assert summary.bypasses == {"no workload type": 1}
    assert summary.slowest == []


def test_counts_by_user_namespace_policy_and_answer_that_was_not_given() -> None:
    policies = PolicyName("default", "1a"), PolicyName("team", "1a"), None
    records = [
        make_record(1, user="", policy=policies[0]),
        make_record(2, user="ann", namespace="team-b", policy=policies[1], shadow=ShadowEntry("Denied")),
        make_record(3, user="ann", policy=policies[2], shadow=ShadowEntry("Patched")),
    ]
    summary = summarise(records, slowest=0)
    assert summary.users == {"(none)": 1, "ann": 2}
    assert summary.namespaces == {"team-a": 2, "team-b": 1}
    assert summary.policies == {"default@1a": 1, "team@1a": 1}
    assert summary.shadowed == {"Denied": 1, "Patched": 1}


def test_counts_what_each_rule_did() -> None:
    rules = [
        (RuleEntry("A", ("one", "two")), RuleEntry("B", (), "not wanted")),
        (RuleEntry("A", ("one",)), RuleEntry("B", ("one",))),
    ]
    summary = summarise((make_record(rules=each) for each in rules), slowest=0)
    counts = {name: (rule.edited, rule.edits, rule.skipped) for name, rule in summary.rules.items()}
    assert counts == {"A": (2, 3, 0), "B": (1, 1, 1)}


TYPE = 'metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "{}"; supported values: "training"'
MEMORY = 'metadata.annotations[maip.mxsf.io/gpu-memory]: Invalid value: "{}"; must be a Quantity'


class TestReasonsOfRefusal:
    @pytest.mark.parametrize(
        ("records", "reasons"),
        [
            (
                [denied(TYPE.format("trainng")), denied(TYPE.format("inferense"))],
                {"metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value": 2},
            ),
            (
                [denied("; ".join((TYPE.format("x"), MEMORY.format("y")))), denied(MEMORY.format("z"))],
                {
                    "metadata.annotations[maip.mxsf.io/gpu-memory]: Invalid value": 2,
                    "metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value": 1,
                },
            ),
            (
                [denied("no node of this cluster can take this pod as it is: 0/12 nodes …", placement=INFEASIBLE)] * 2,
                {"Infeasible: Insufficient nvidia.com/gpu, node(s) had untolerated taint(s)": 2},
            ),
            ([denied("at most 8 pods"), denied("at most 16 pods")], {"at most N pods": 2}),
            ([make_record(outcome="Denied", error=None)], {"no reason recorded": 1}),
        ],
        ids=["other values of one field", "several fields of one pod", "placement", "other numbers", "none"],
    )
    def test_are_equal_where_only_values_differ(self, records: list[AuditRecord], reasons: dict[str, int]) -> None:
        assert summarise(records, slowest=0).refusals == reasons

    def test_of_one_pod_count_once_each_and_in_the_order_of_their_fields(self) -> None:
        errors = [
            f"spec.{field}: Required value: give one; spec.{field}: Required value: or two" for field in "hcagebdf"
        ]
        refusals = summarise([denied("; ".join(errors))], slowest=0).refusals
        assert list(refusals.items()) == [(f"spec.{field}: Required value", 1) for field in "abcdefgh"]

    def test_are_those_of_refused_pods_alone(self) -> None:
        summary = summarise([make_record(error="KeyError: 17", outcome="Error"), make_record()], slowest=0)
        assert summary.refusals == {}
        assert summary.errors == {"KeyError: N": 1}


def test_the_slowest_come_first_and_of_equal_ones_the_earlier() -> None:
    records = [make_record(number, duration_ms=float(number % 3)) for number in range(9)]
    assert [record.decision for record in summarise(records, slowest=4).slowest] == ["d0002", "d0005", "d0008", "d0001"]


def test_percentiles_are_by_nearest_rank() -> None:
    records = (make_record(number, duration_ms=float(number)) for number in range(100, 0, -1))
    assert summarise(records, slowest=0).duration_ms == {"p50": 50, "p90": 90, "p99": 99, "max": 100}


@pytest.mark.parametrize(
    ("records", "p50", "p90", "p99"),
    [(1, 1, 1, 1), (2, 1, 2, 2), (3, 2, 3, 3), (4, 2, 4, 4), (10, 5, 9, 10), (11, 6, 10, 11), (101, 51, 91, 100)],
)
def test_the_rank_of_a_percentile_is_rounded_up(records: int, p50: int, p90: int, p99: int) -> None:
    made = (make_record(number, duration_ms=float(number)) for number in range(1, records + 1))
    assert summarise(made, slowest=0).duration_ms == {"p50": p50, "p90": p90, "p99": p99, "max": records}


def test_the_percentiles_of_one_are_itself() -> None:
    assert summarise([make_record(duration_ms=7)], slowest=0).duration_ms == {"p50": 7, "p90": 7, "p99": 7, "max": 7}


def test_the_json_has_the_most_frequent_first_and_the_slowest_in_short() -> None:
    records = [make_record(number, workload_type=kind) for number, kind in enumerate(("a", "b", "b"))]
    found = orjson.loads(orjson.dumps(summarise(records, slowest=1).to_json()))

    assert list(found["workloadTypes"].items()) == [("b", 2), ("a", 1)]
    assert found["rules"] == {
        "NodeUsageAffinity": {"edited": 3, "edits": 6, "skipped": 0},
        "BinPacking": {"edited": 0, "edits": 0, "skipped": 3},
    }
    assert found["slowest"] == [
        {"decision": "d0000", "pod": "team-a/worker-0", "outcome": "Patched", "durationMs": 0.5}
    ]
    assert (found["total"], found["dryRuns"], found["first"], found["last"]) == (3, 0, at(0), at(2))
