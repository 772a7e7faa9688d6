"""What a pod lacks for the QoS class Guaranteed."""

from tests.support.admission import policy_with
from tests.support.objects.builders import make_pod
from webhook.mutation.workload.guaranteed_qos import GuaranteedQos, read_guaranteed_qos

GUARANTEED = policy_with(
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "qos": {"class": "Guaranteed"}}}
).spec.workload_types["training"]


def test_requests_equal_limits() -> None:
    pod = make_pod("p").limits(cpu="1", memory="1Gi").obj()

    found = read_guaranteed_qos(pod, "training", GUARANTEED)

    assert found is not None
    assert [value for _, value in found.amounts] == ["1", "1Gi"]
    assert found.gaps == ()


def test_pod_with_a_malformed_amount_gets_nothing() -> None:
    """The API server rejects it; an amount that is set beside the malformed one would be in its message."""
    pod = make_pod("p").limits(cpu="1", memory="one").obj()

    assert read_guaranteed_qos(pod, "training", GUARANTEED) == GuaranteedQos()
