"""What is not named in the view of a pod is not read, and what is named is in every key."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import Decoder
from msgspec.structs import FieldInfo, fields

from placement_planner.replay.admission import key_of as replay_key_of
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.random.random_json import replace_somewhere
from tests.support.random.random_pods import pods
from tests.support.requests import facts_of
from tests.support.servers.server import make_work_budget, review
from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.admission.recorded_pod import RecordedPod, read_part
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import content_of_view
from webhook.documents.field import InvalidInput
from webhook.kube.api import admission
from webhook.kube.api.admission import AdmissionRequest, parse_review
from webhook.kube.pod import pod_view
from webhook.kube.pod.pod_view import Container, PodMetadata, PodSpec, PodView
from webhook.placement.scorer import PodSignature
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


def view_of(pod: Object) -> PodView:
    view = PodView.of(pod)
    assert view is not None
    return view


def key_of(pod: Object) -> bytes:
    """Return the key of the results that are kept for `pod`."""
    return view_of(pod).created()


def decoded(body: bytes) -> AdmissionRequest:
    """Return the request of a review that is decoded as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "_new_pod", lambda _: None)
        return parse_review(body)


def is_decoded_as_a_whole(body: bytes) -> bool:
    """Return whether the pod in a review is not read by its view."""
    try:
        return parse_review(body).view is None
    except InvalidInput:
        return True


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
        assert (key_of(first) == key_of(each)) == (orjson.loads(key_of(first)) == orjson.loads(key_of(each)))


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
        pytest.param({}, {"containers": ["x"]}, id="container"),
        pytest.param({}, {"initContainers": {}}, id="init containers"),
        pytest.param({}, {"volumes": "x"}, id="volumes"),
        pytest.param({}, {"volumes": [5]}, id="volume"),
        pytest.param({}, {"volumes": [{"name": "kube-api-access-\\"}, 5]}, id="volume after a token"),
    ],
)
def test_a_review_with_a_malformed_field_is_decoded_as_a_whole(metadata: Object, spec: Object) -> None:
    body = body_of({**POD, "metadata": {**POD["metadata"], **metadata}, "spec": {**POD["spec"], **spec}})

    assert parse_review(body).view is None
    assert decided(parse_review(body)) == decided(decoded(body))


@pytest.mark.parametrize("pod", [None, [], "x", {}, {"metadata": {}}, {"metadata": None, "spec": {}}, {"spec": {}}])
def test_an_object_without_the_parts_of_a_pod_is_decoded_as_a_whole(pod: object) -> None:
    assert is_decoded_as_a_whole(body_of(pod))


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
    assert parse_review(body_of(POD)).view is not None
    assert is_decoded_as_a_whole(body_of(POD, **fields))


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

    assert (quick.view is None, whole.view is None) == (False, True)
    assert quick.identity == whole.identity
    assert [quick.has_annotation(name) for name in (TYPE, ANNOTATION)] == [
        whole.has_annotation(name) for name in (TYPE, ANNOTATION)
    ]
    assert quick.template == whole.template
    assert {**facts_of(quick), "object": None} == {**facts_of(whole), "object": None}


@given(stored_pods(), st.data())
def test_the_decision_is_the_same_however_the_request_is_read(pod: Object, data: st.DataObject) -> None:
    changed = deepcopy(pod)
    replace_somewhere(changed, data)
    body = body_of(changed)

    assert decided(parse_review(body)) == decided(decoded(body))


class SpecWithOneMore(PodSpec, frozen=True, omit_defaults=True, rename="camel"):
    """A spec of which one more field is read."""

    one_more: str | None = None


class ViewWithOneMore(PodView, frozen=True, omit_defaults=True):
    """A view with one more field."""

    spec: SpecWithOneMore


KEYS: dict[str, Callable[[PodView, Object], bytes | None]] = {
    "decision": lambda view, _: PodContent(AdmissionRequest(view=view), {}).data,
    "policy's result": lambda view, _: PodContent(AdmissionRequest(view=view), {}).data_without_containers,
    "pending pod": lambda view, _: content_of_view(view),
    "running pod": lambda view, _: view.running(),
    "recorded pod": lambda _, pod: orjson.dumps(read_part(pod, ())),
    "replay": lambda _, pod: replay_key_of(RecordedPod(pod)),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_field_that_is_added_to_the_view_is_in_every_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_view, "_PODS", Decoder(ViewWithOneMore))
    keys = set()
    for value in ("a", "b"):
        pod = {**POD, "spec": {**POD["spec"], "oneMore": value}}
        keys.add(KEYS[name](view_of(pod), pod))

    assert len(keys) == 2
    assert None not in keys


OF_EACH = {"name", "generate_name", "uid", "resource_version", "creation_timestamp", "deletion_timestamp"}
READ = [
    *(("metadata", each) for each in fields(PodMetadata) if each.name not in OF_EACH),
    *(("spec", each) for each in fields(PodSpec)),
    *(("container", each) for each in fields(Container)),
]


@pytest.mark.parametrize(("part", "field"), READ, ids=lambda each: getattr(each, "encode_name", each))
def test_pods_that_differ_in_one_field_that_is_read_share_no_decision(part: str, field: FieldInfo) -> None:
    def with_value(number: int) -> Object:
        value: Any = {"x": number}
        if field.type == list[Container] | None:
            value = [{"name": str(number)}]
        elif field.type == list[pod_view.Volume] | None:
            value = [{"name": "x", "nfs": number}]
        elif field.type == str | None:
            value = str(number)
        pod = deepcopy(POD)
        place = pod["spec"]["containers"][0] if part == "container" else pod[part]
        place[field.encode_name] = value
        return pod

    assert key_of(with_value(1)) != key_of(with_value(2))


class Watched(dict[str, Any]):
    """An object of the API that notes which of its fields are read."""

    def __init__(self, content: Object) -> None:
        super().__init__(content)
        self.fields_read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.fields_read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.fields_read.add(key)
        return super().__getitem__(key)

    def copy(self) -> "Watched":
        copied = Watched(self)
        copied.fields_read = self.fields_read
        return copied


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_every_field_that_policies_and_schedulers_read_is_in_the_view(kind: str) -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
    container = Watched({"name": "main", "image": "x", "restartPolicyRules": rules, "env": [{"name": "A"}]})
    pod = deepcopy(POD)
    metadata = pod["metadata"] = Watched(pod["metadata"])
    spec = pod["spec"] = Watched(pod["spec"] | {kind: [container]})
    content = PodContent(AdmissionRequest(content=pod), {})
    content._pod = pod

    result = evaluate(content, POLICY)
    assert isinstance(result, Mutated)
    assert isinstance(PodSignature.of(pod), PodSignature)
    RunningPod.of(pod)

    assert "tolerations" in spec.fields_read
    for found, read in ((metadata, PodMetadata), (spec, PodSpec), (container, Container)):
        assert found.fields_read <= {each.encode_name for each in fields(read)}


def test_a_review_with_text_that_is_no_json_is_an_error_once() -> None:
    """What reports the error reads the object again."""
    request = parse_review(body_of(POD).replace(b'"app":"web"', b'"app":1e999'))

    with pytest.raises(InvalidInput):
        _ = request.object

    assert request.object == {}
