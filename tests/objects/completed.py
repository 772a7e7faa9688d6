"""The advice on an object whose pods the API server completes."""

from typing import Any

from tests.support.admission import TYPE, USAGE, make_request, policy_with
from tests.support.objects.api_server import Object
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import APP, SAMPLES
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.objects.admission import admit_request

DEPLOYMENT = next(each for each in SAMPLES if each.kind == "Deployment")
NODE = make_node_object(
    "n1", labels={USAGE: "training"}, taints=[f"{USAGE}=training:NoSchedule"], capacity={"nvidia.com/gpu": 8}
)


def advised(spec: Object, *objects: Object, **policy: Any) -> tuple[list[str], str, list[Object]]:
    """Return the warnings, the verdict and the patch of a Deployment whose pods have `spec`, too."""
    template = make_pod("").gpu(4).label("app", APP["app"]).annotate(TYPE, "training").spec(**spec).template()
    request = make_request(
        DEPLOYMENT.object(template, replicas=1), kind="Deployment", group="apps", resource="", namespace="team-a"
    )
    cluster = ClusterView(made_anew([NODE, *objects]), scheduler_for(policy_with(**policy)))
    found = admit_request(request, policy_with(**policy), cluster)
    assert isinstance(found, Advised)
    assert found.placement is not None
    return [*found.warnings], found.placement.verdict, [*found.operations]
