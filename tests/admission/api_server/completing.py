"""Complete pods as the plugins of an API server do."""

from typing import Any

import pytest

from tests.support.objects.api_server import Object, runtime_class
from tests.support.objects.builders import make_pod
from tests.support.views import made_anew
from webhook.admission.api_server.plugins import Completed, check_admitted, completed
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput

KATA = runtime_class(
    "kata",
    overhead={"podFixed": {"cpu": "0.5"}},
    scheduling={"nodeSelector": {"rack": "r1"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
)


def view(*objects: Object) -> Snapshot:
    return made_anew(objects)


def of(snapshot: Snapshot, **spec: Any) -> Completed:
    return completed(make_pod("p").namespace("default").spec(**spec).obj(), snapshot)


def refusal(snapshot: Snapshot, **spec: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        check_admitted(of(snapshot, **spec).pod, snapshot)
    (error,) = caught.value.errors
    return str(error).removeprefix('pods "p" is forbidden: ')
