"""Which pods `serve --audit-pods` keeps, and what that costs."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.support.admission import make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import review
from tests.support.programs.command import run_here
from tests.support.servers.server import review_bytes
from tests.support.work import calls_of
from webhook.admission.cluster_view import ClusterView
from webhook.audit.pods import PodFile
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.api.admission import AdmissionRequest, parse_review
from webhook.serving.decisions import pod_recorder
from webhook.serving.decisions.pod_recorder import PodRecorder

POLICY = policy_with()
TIME = "2026-05-01T08:00:00.000000Z"


@pytest.fixture
def recorder(tmp_path: Path) -> PodRecorder:
    return PodRecorder(PodFile(tmp_path / "audit.jsonl"))


def digest(
    recorder: PodRecorder, request: AdmissionRequest, cluster: ClusterView | None = None, time: str = TIME
) -> str:
    return recorder.digest_of(request, POLICY, cluster, time)


def view(**metadata: dict[str, str]) -> ClusterView:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", **metadata}}
    return ClusterView(snapshot_from_documents([Document("cluster", namespace)]), None)


def test_pods_of_one_template_have_one_digest(recorder: PodRecorder, tmp_path: Path) -> None:
    found = {digest(recorder, parse_review(review(number, shape=0))) for number in range(20)}
    other = digest(recorder, parse_review(review(20, shape=1)))

    assert len(found) == 1
    assert other not in found
    assert len((tmp_path / "audit.jsonl.pods").read_bytes().splitlines()) == 2


def test_a_known_template_costs_a_lookup(recorder: PodRecorder) -> None:
    first, second = (parse_review(review(number, shape=0)) for number in range(2))
    assert first.template == second.template
    cold = calls_of(lambda: digest(recorder, first))
    warm = calls_of(lambda: digest(recorder, second))

    assert warm <= 15 < cold


def test_what_the_namespace_decides_is_a_part_of_the_pod(recorder: PodRecorder) -> None:
    request = parse_review(review_bytes(make_pod("a").obj()))
    views = [None, view(), view(labels={"team": "a"}), view(annotations={"maip.mxsf.io/queue": "a"})]

    assert len({digest(recorder, request, each) for each in views}) == 4


def test_the_groups_of_the_user_are_a_part_of_the_pod(recorder: PodRecorder) -> None:
    """The pods are of one template, so they are looked up by a key."""

    def of(number: int, *groups: str) -> str:
        request = parse_review(review(number, shape=0))
        assert request.template is not None
        return digest(recorder, replace(request, groups=groups))

    found = [[of(number, *groups) for number in range(2)] for groups in ("a", "b", "ab", "")]
    assert len({first for first, _ in found}) == 4
    assert all(first == second for first, second in found)


@pytest.mark.parametrize("more_bytes", [-1, 0])
def test_a_namespace_that_has_used_exactly_its_share_adds_one_more_pod(
    recorder: PodRecorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more_bytes: int
) -> None:
    requests = [make_request(make_pod("a").label("n", str(number)).obj()) for number in range(3)]
    assert digest(PodRecorder(PodFile(tmp_path / "other.jsonl")), requests[0])
    size_bytes = len(orjson.dumps(orjson.loads((tmp_path / "other.jsonl.pods").read_bytes())["content"]))
    monkeypatch.setattr(pod_recorder, "SHARE_BYTES", size_bytes + more_bytes)

    kept = [bool(digest(recorder, each)) for each in requests]

    assert kept == [True, more_bytes == 0, False]


@pytest.mark.parametrize(
    "request_",
    [
        make_request(make_pod("a").obj(), dry_run=True),
        make_request(make_pod("a").obj(), operation="UPDATE"),
        make_request({"metadata": {}}, kind="Deployment", resource="deployments"),
        make_request({"metadata": None, "spec": None}),
    ],
    ids=["dry run", "update", "another kind", "no pod"],
)
def test_what_is_no_new_pod_is_not_kept(recorder: PodRecorder, request_: AdmissionRequest) -> None:
    assert digest(recorder, request_) == ""


def test_a_namespace_adds_a_bounded_amount_in_ten_minutes(
    recorder: PodRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_recorder, "SHARE_BYTES", 300)
    *requests, later = (make_request(make_pod("a").label("n", str(number)).obj()) for number in range(21))
    kept = [bool(digest(recorder, each)) for each in requests]

    assert kept[0]
    assert not kept[-1]
    assert digest(recorder, make_request(make_pod("a").label("n", "19").obj(), namespace="team-b"))
    assert digest(recorder, later, time="2026-05-01T08:10:00.000000Z")


def test_a_known_pod_is_written_again_to_a_new_file(tmp_path: Path) -> None:
    file = PodFile(tmp_path / "audit.jsonl", max_bytes=1)
    recorder = PodRecorder(file)
    digests = [digest(recorder, parse_review(review(number, shape=shape))) for number, shape in enumerate((0, 1, 0))]

    assert (file.era, digests[0]) == (2, digests[2])
    assert digests[2].encode() in (tmp_path / "audit.jsonl.pods").read_bytes()


def test_records_are_printed_or_have_pods(tmp_path: Path) -> None:
    done = run_here("serve", "--tls-dir", tmp_path, "--audit-pods")

    assert done.code == 2
    assert "--audit-pods keeps pods in FILE.pods: give --audit FILE, too" in done.errors


def test_the_scope_of_a_pod_is_readable(recorder: PodRecorder, tmp_path: Path) -> None:
    digest(recorder, parse_review(review_bytes(make_pod("a").obj())), view(labels={"team": "a"}))
    line = orjson.loads((tmp_path / "audit.jsonl.pods").read_bytes())

    assert line["content"]["namespace"] == {"annotations": {}, "labels": {"team": "a"}}
    assert line["content"]["groups"] == ["system:authenticated"]
