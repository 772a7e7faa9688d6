"""The side effects of an answered review: its record, counts, prediction, reservation and report, and their order."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import structlog

from tests.golden.case import cluster_of
from tests.support.admission import TYPE, USAGE, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.server import arrival, make_work_budget, policies_of, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.audit.lines import UnsealedRecord
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.app import scoring
from webhook.serving.decisions.admissions import Admissions, Answer
from webhook.serving.decisions.deciders import Decider, WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache

FITS = make_pod("trainer").annotate(TYPE, "training").gpu(1).obj()
TOO_LARGE = make_pod("trainer").annotate(TYPE, "training").gpu(5).obj()
MISSPELT = make_pod("trainer").annotate(TYPE, "trainning").obj()
NO_TYPE = make_pod("web").obj()


@dataclass
class Site:
    """Admissions on a cluster with 4 GPUs. `effects` are the side effects in their order; one that fails is noted."""

    fails: str = ""
    mode: str = "enforce"
    effects: list[str] = field(default_factory=list)
    records: list[UnsealedRecord] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.policy: Policy = policy_with(mode=self.mode)
        waiting = scoring(policies_of(self.policy)).waiting
        node = make_node_object("node-1", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 4})
        cluster = cluster_of({"cluster": [node]})
        assert cluster is not None
        base = ClusterView(cluster.snapshot, scheduler_for(self.policy))
        self.view = partial(waiting.shown_in, base)
        self.admissions = Admissions(
            self.metrics,
            audit=self.audit,
            monotonic_seconds=lambda: 1.0,
            new_decision=lambda: "decision-1",
            replica="replica-a",
            predicted=partial(self.note, "predicted"),
            admitted=partial(self.note, "admitted"),
            reported=self.report,
        )
        self.decider: Decider = DecisionCache()

    def note(self, effect: str, *_: object) -> None:
        self.effects.append(effect)
        if effect == self.fails:
            self.fails = ""
            raise RuntimeError("out of order")

    def audit(self, record: UnsealedRecord) -> None:
        self.note("recorded")
        self.records.append(record)

    def report(self, _: object, report: object, __: object) -> None:
        self.note("nothing to report" if report is None else "reported")

    def answer(self, pod: dict[str, Any], **request: Any) -> Answer:
        body = review_bytes(pod, **request)
        decision = self.admissions.decide(self.decider, body, self.policy, self.view(), make_work_budget())
        with structlog.testing.capture_logs():
            return self.admissions.finish(decision, arrival())

    def counted(self) -> dict[str, float]:
        """Return the number of admissions by outcome."""
        samples = [each for family in self.metrics.registry.collect() for each in family.samples]
        found: dict[str, float] = {}
        for each in samples:
            if each.name == "placement_webhook_admission_requests_total" and each.value:
                found[each.labels["outcome"]] = found.get(each.labels["outcome"], 0.0) + each.value
        return found

    def observed(self) -> float | None:
        return self.metrics.registry.get_sample_value("placement_webhook_admission_duration_seconds_count")


@pytest.mark.parametrize(
    ("pod", "request_", "outcome", "effects"),
    [
        pytest.param(
            FITS, {}, "Patched", ["recorded", "predicted", "admitted", "nothing to report"], id="a pod that fits"
        ),
        pytest.param(
            FITS, {"dryRun": True}, "Patched", ["recorded", "predicted", "nothing to report"], id="a dry run of it"
        ),
        pytest.param(TOO_LARGE, {}, "Patched", ["recorded", "predicted", "reported"], id="a pod without a node"),
        pytest.param(MISSPELT, {}, "Denied", ["recorded", "reported"], id="a denied pod"),
        pytest.param(NO_TYPE, {}, "Bypassed", ["recorded", "nothing to report"], id="a pod that is left alone"),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_each_outcome_has_its_side_effects_once_its_record_is_staged(
    pod: dict[str, Any], request_: dict[str, Any], outcome: str, effects: list[str], times: int
) -> None:
    """They are the same for a decision from the cache."""
    site = Site()
    for _time in range(times):
        site.answer(pod, **request_)
    assert site.effects == effects * times
    assert (site.counted(), site.observed()) == ({outcome: times}, times)


@pytest.mark.parametrize(("pod", "outcome"), [(FITS, "Patched"), (MISSPELT, "Denied")])
def test_in_shadow_mode_nothing_is_predicted_reserved_or_reported(pod: dict[str, Any], outcome: str) -> None:
    site = Site(mode="shadow")
    site.answer(pod)
    assert site.effects == ["recorded", "nothing to report"]
    assert site.counted() == {"Bypassed": 1}
    assert b'"outcome":"%b"' % outcome.encode() in site.records[0].common.shadow


def test_an_admission_that_cannot_be_recorded_is_an_error_on_record() -> None:
    site = Site(fails="recorded")
    assert site.answer(FITS).status == 500
    assert site.effects == ["recorded", "recorded"]
    assert b"RuntimeError: out of order" in site.records[-1].common.error
    assert (site.counted(), site.observed()) == ({"Error": 1}, 1)


@pytest.mark.parametrize("fails", ["predicted", "admitted"])
def test_a_fault_after_the_record_refuses_no_pod(fails: str) -> None:
    site = Site(fails=fails)
    assert site.answer(FITS).status == 200
    assert site.effects == ["recorded", "predicted", "admitted", "nothing to report"]
    assert (len(site.records), site.counted(), site.observed()) == (1, {"Patched": 1}, 1)


def test_in_shadow_mode_a_record_that_fails_is_tried_again_and_the_pod_is_allowed_and_counted_once() -> None:
    site = Site(fails="recorded", mode="shadow")
    assert site.answer(FITS).status == 200
    assert site.effects == ["recorded", "recorded"]
    assert (site.counted(), site.observed()) == ({"Bypassed": 1}, 1)


def test_an_object_that_is_no_pod_is_counted_and_on_record_only() -> None:
    site = Site()
    content = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    content["spec"] = {"replicas": 1, "template": {"metadata": FITS["metadata"], "spec": FITS["spec"]}}
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    resource = {"group": "apps", "version": "v1", "resource": "deployments"}
    assert site.answer(content, kind=kind, resource=resource).status == 200
    assert site.effects == ["recorded"]


def test_a_decision_of_the_worker_records_no_prediction() -> None:
    """It can be the decision on an earlier pod of the template."""
    site = Site()
    site.decider = WorkerDecider(scheduler_for)
    for times in (1, 2):
        site.answer(FITS)
        assert site.effects == ["recorded", "admitted", "nothing to report"] * times


@pytest.mark.parametrize(("pod", "label"), [(FITS, "training"), (MISSPELT, ""), (NO_TYPE, "")])
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_only_types_of_the_policy_are_labels_of_metrics(pod: dict[str, Any], label: str, mode: str) -> None:
    """Each misspelling would be a series of its own."""
    site = Site(mode=mode)
    site.answer(pod)
    samples = [each for family in site.metrics.registry.collect() for each in family.samples if each.value]
    assert {each.labels["workload_type"] for each in samples if "workload_type" in each.labels} == {label}


def test_an_object_that_is_no_pod_is_refused_once_it_is_on_record() -> None:
    site = Site()
    assert site.answer({"metadata": {}}).status == 400
    assert (site.effects, site.counted()) == (["recorded"], {})
    refused = "placement_webhook_http_refused_requests_total"
    assert site.metrics.registry.get_sample_value(refused, {"code": "400"}) == 1

    failing = Site(fails="recorded")
    assert failing.answer({"metadata": {}}).status == 500
    assert (failing.effects, failing.counted()) == (["recorded", "recorded"], {"Error": 1})
    assert not failing.metrics.registry.get_sample_value(refused, {"code": "400"})
