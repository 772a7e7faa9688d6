"""An unknown workload type appears in the response and the audit log, but not in metrics."""

import orjson
import pytest

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, review_bytes


@pytest.mark.parametrize("reaction", ["deny", "warn"])
def test_unknown_types_create_no_time_series(reaction: str) -> None:
    """Each label value is a time series in Prometheus; any user could create millions of them."""
    world = World(policy=policy_with(invalidAnnotations=reaction))
    for number in range(3):
        world.admissions().answer(review_bytes(make_pod().annotate(TYPE, f"x{number}").obj()), 1000.0, None)

    names = {
        sample.labels["workload_type"]
        for family in world.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "placement_webhook_admission_requests_total"
    }
    assert [record.workload_type for record in world.records] == ["x0", "x1", "x2"]
    assert len(names) == 1


@pytest.mark.parametrize("written", ["training", " training ", "training\n"])
def test_blanks_around_a_type_make_no_other_type(written: str) -> None:
    world = World()

    answer = world.admissions().answer(review_bytes(make_pod().annotate(TYPE, written).obj()), 1000.0, None)

    assert orjson.loads(answer.body)["response"]["allowed"] is True
    assert [record.workload_type for record in world.records] == ["training"]
    assert world.count("admission_requests_total", outcome="Patched", workload_type="training") == 1
