"""What is read of a review without decoding it is what the decoded review says."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.random.random_json import replace_somewhere
from tests.support.random.random_pods import pods
from tests.support.requests import facts_of
from tests.support.servers.server import make_work_budget, review
from webhook.admission.pod_content import fields_read
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest, parse_review
from webhook.kube.pod.pod_fields import PodFields
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.rendering import Rendered

Object = dict[str, Any]

POD = make_pod("a").annotate(TYPE, "training").label("app", "web").gpu(1).obj()
POLICY = policy_with()
ANNOTATION = "example.com/a~b"

_METADATA = ("labels", "annotations", "ownerReferences")
_SPEC = ("affinity", "tolerations", "topologySpreadConstraints", "priority", "nodeSelector", "containers", "volumes")


def body_of(pod: Any, **request: Any) -> bytes:
    """Return a review with its keys in order, as every pod of a template has them in the same one."""
    return orjson.dumps(review(pod, **request), option=orjson.OPT_SORT_KEYS)


def key_of(pod: Object) -> tuple[bytes, bytes]:
    """Return the key of the results that are kept for `pod`."""
    fields = PodFields.of(body_of(pod))
    assert fields is not None
    return fields.policy, fields.containers


def decoded(body: bytes) -> AdmissionRequest:
    """Return the request of a review that is decoded as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PodFields, "of", lambda _: None)
        return parse_review(body)


def decided(request: AdmissionRequest) -> Rendered | str:
    """Return the decision on a request, or why it cannot be read."""
    try:
        return DecisionCache().decide(request, POLICY, None, make_work_budget())
    except InvalidInput as error:
        return str(error)


def with_parts(first: Object, second: Object, parts: set[str]) -> Object:
    """Return `first` with `parts` of `second`."""

    def mixed(name: str, known: tuple[str, ...]) -> Object:
        kept = {key: value for key, value in first[name].items() if key not in parts & {*known}}
        return kept | {key: second[name][key] for key in known if key in parts and key in second[name]}

    return {**first, "metadata": mixed("metadata", _METADATA), "spec": mixed("spec", _SPEC)}


VOLUMES = (
    {"name": "kube-api-access-x1x1x", "projected": {}},
    {"name": "config", "configMap": {"name": "config"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
)


@st.composite
def stored_pods(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Object:
    """Return pods with volumes, init containers and all that identifies a pod."""
    pod: Object = draw(pods())
    metadata = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["", "worker-0", "x" * 300]),
                "generateName": st.sampled_from(["worker-", None]),
                "namespace": st.just("team-b"),
                "uid": st.just("1"),
            },
        )
    )
    spec: Object = {"volumes": draw(st.lists(st.sampled_from(VOLUMES), max_size=3))}
    if draw(st.booleans()):
        spec["initContainers"] = [{"name": "init", "image": draw(st.sampled_from(["a", "b"]))}]
    return {**pod, "metadata": {**pod["metadata"], **metadata}, "spec": {**pod["spec"], **spec}}


@given(stored_pods(), stored_pods(), st.sets(st.sampled_from((*_METADATA, *_SPEC))))
def test_pods_have_equal_keys_if_and_only_if_what_is_read_of_them_is_equal(
    first: Object, second: Object, parts: set[str]
) -> None:
    other = with_parts(first, second, parts)
    for each in (other, second):
        assert (key_of(first) == key_of(each)) == (fields_read(first) == fields_read(each))


@pytest.mark.parametrize(
    ("metadata", "spec", "container"),
    [
        pytest.param({"name": "b"}, {}, {}, id="name"),
        pytest.param({"generateName": "b-"}, {}, {}, id="beginning of the name"),
        pytest.param({"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}, {}, {}, id="what the API server adds"),
        pytest.param({"managedFields": [{"manager": "kubectl"}]}, {}, {}, id="managed fields"),
        pytest.param({}, {"volumes": [VOLUMES[0]]}, {}, id="token volume"),
        pytest.param({}, {"volumes": [VOLUMES[1]]}, {}, id="config map"),
        pytest.param({}, {}, {"env": [{"name": "A", "value": "b"}]}, id="environment"),
        pytest.param({}, {}, {"command": ["sh"], "args": ["-c", "true"]}, id="command"),
        pytest.param({}, {}, {"volumeMounts": [{"name": "config", "mountPath": "/etc/x"}]}, id="mounts"),
    ],
)
def test_what_nobody_reads_is_not_in_the_key(metadata: Object, spec: Object, container: Object) -> None:
    containers = [{**each, **container} for each in POD["spec"]["containers"]]
    other = {
        **POD,
        "metadata": {**POD["metadata"], **metadata},
        "spec": {**POD["spec"], **spec, "containers": containers},
    }

    assert other != POD
    assert key_of(other) == key_of(POD)


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        pytest.param({"name": 5}, {}, id="name"),
        pytest.param({"generateName": ["b"]}, {}, id="beginning of the name"),
        pytest.param({"namespace": {}}, {}, id="namespace"),
        pytest.param({}, {"containers": "x"}, id="containers"),
        pytest.param({}, {"containers": None}, id="no containers"),
        pytest.param({}, {"containers": ["x"]}, id="container"),
        pytest.param({}, {"initContainers": {}}, id="init containers"),
        pytest.param({}, {"volumes": "x"}, id="volumes"),
        pytest.param({}, {"volumes": [5]}, id="volume"),
        pytest.param({}, {"volumes": [{"name": "kube-api-access-\\"}, 5]}, id="volume after a token"),
    ],
)
def test_a_review_with_a_malformed_field_is_decoded_as_a_whole(metadata: Object, spec: Object) -> None:
    body = body_of({**POD, "metadata": {**POD["metadata"], **metadata}, "spec": {**POD["spec"], **spec}})

    assert PodFields.of(body) is None
    assert decided(parse_review(body)) == decided(decoded(body))


@pytest.mark.parametrize("pod", [None, [], "x", {}, {"metadata": {}}, {"metadata": None, "spec": {}}, {"spec": {}}])
def test_an_object_without_the_parts_of_a_pod_is_decoded_as_a_whole(pod: object) -> None:
    assert PodFields.of(body_of(pod)) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": "UPDATE"},
        {"kind": {"group": "apps", "version": "v1", "kind": "Pod"}},
        {"kind": {"group": "", "version": "v1", "kind": "Namespace"}},
        {"resource": {"group": "", "version": "v1", "resource": "namespaces"}},
        {"subResource": "binding"},
        {"uid": ""},
        {"dryRun": "true"},
        {"userInfo": {"username": 5}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_another_review_is_decoded_as_a_whole(fields: Object) -> None:
    assert PodFields.of(body_of(POD)) is not None
    assert PodFields.of(body_of(POD, **fields)) is None


@given(
    stored_pods(),
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["", "asked"]),
            "namespace": st.sampled_from(["", "team-c"]),
            "dryRun": st.booleans(),
            "userInfo": st.sampled_from([{}, {"username": "jane"}, {"groups": ["a", "b"]}]),
        },
    ),
)
def test_a_request_is_the_same_however_it_is_read(pod: Object, fields: Object) -> None:
    body = body_of(pod, **fields)
    quick, whole = parse_review(body), decoded(body)

    assert (quick.fields is None, whole.fields is None) == (False, True)
    assert quick.identity == whole.identity
    assert [quick.has_annotation(name) for name in (TYPE, ANNOTATION)] == [
        whole.has_annotation(name) for name in (TYPE, ANNOTATION)
    ]
    assert facts_of(quick) == facts_of(whole)


@given(stored_pods(), st.data())
def test_the_decision_is_the_same_however_the_request_is_read(pod: Object, data: st.DataObject) -> None:
    changed = deepcopy(pod)
    replace_somewhere(changed, data)
    body = body_of(changed)

    assert decided(parse_review(body)) == decided(decoded(body))
