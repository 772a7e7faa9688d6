"""The line of a record: its hash, its bounds, and the brief form for dry runs and for a namespace beyond its share."""

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE, USAGE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import cluster_documents
from tests.support.programs.audit_records import at, encode, make_record
from tests.support.servers.server import World, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.audit.bounds import SHORT, TEXT_BYTES
from webhook.audit.lines import RecordTemplate, UnsealedRecord, digest, seal, stated_hash
from webhook.audit.record import FIRST, LARGEST_BYTES, PlacementEntry, ShadowEntry, parse_line
from webhook.audit.writer import SHARE_BYTES, AuditWriter
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.kube.api.admission import AdmissionRequest

PRODUCTS = USAGE.replace("node.usage", "gpu-product")
POLICY = policy_with()
VIEW = ClusterView(snapshot_from_documents(cluster_documents(30, 2)), scheduler_for(POLICY))


def written(path: Path, *fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Write a record with each of `fields`; return the lines."""
    with AuditWriter(path) as writer:
        for number, each in enumerate(fields):
            writer.write(make_record(number, **each))
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def unsealed(namespace: str, address: str) -> UnsealedRecord:
    common = RecordTemplate.of(make_record())
    return UnsealedRecord(at(0), "d", AdmissionRequest(namespace=namespace), 1.0, "r", common, "", address)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("p").annotate(PRODUCTS, ",".join(f"P-{n}" for n in range(80))), id="many products"),
        pytest.param(make_pod("p").annotate(PRODUCTS, "P" + "x" * 62), id="a long product"),
        pytest.param(make_pod("p" * 60).label("app", "a").annotate(f"{TYPE}-unknown", "x" * 300), id="an unknown key"),
    ],
)
def test_the_record_of_a_dry_run_is_at_most_four_times_as_large_as_the_pod(pod: Any) -> None:
    lines: list[bytes] = []

    def audit(unsealed: UnsealedRecord) -> None:
        lines.append(seal(unsealed, 1, FIRST, is_brief=True)[0])

    asked = pod.annotate(TYPE, "training").spec(containers=[{"name": "main", "image": "registry/main:1" * 8}]).obj()
    World(policy=POLICY, cluster=VIEW, audit=audit).admissions().answer(review_bytes(asked, dryRun=True), 0.0, None)

    assert len(lines[0]) <= 4 * len(orjson.dumps(asked))
    assert parse_line(lines[0]).dry_run


def test_the_record_of_a_dry_run_has_no_patch_and_says_so(tmp_path: Path) -> None:
    dry, real = written(tmp_path / "audit.jsonl", {"dry_run": True, "before": {"/spec/a": "b"}}, {})
    assert (dry["patch"], dry["before"]) == ([], {})
    assert dry["truncated"] == ["patch: 3 more items"]
    assert {key: dry[key] for key in ("workloadType", "policy", "outcome", "rules", "warnings")} == {
        key: real[key] for key in ("workloadType", "policy", "outcome", "rules", "warnings")
    }
    assert len(real["patch"]) == 3


def test_long_texts_of_a_brief_record_are_cut_to_a_quarter_of_a_kilobyte() -> None:
    long = "x" * 1000
    record = make_record(
        outcome="Denied", workload_type=long, error=long, placement=PlacementEntry("Unknown", None, 1, 0, long)
    )
    line = orjson.loads(seal(record, 1, FIRST, is_brief=True)[0])
    texts = [line["workloadType"], line["error"], line["placement"]["message"]]
    assert [len(text) for text in texts] == [256 + len("… (744 more characters)")] * 3


@pytest.mark.parametrize(("size_bytes", "is_whole"), [(384, True), (385, False)])
def test_a_brief_record_keeps_warnings_of_384_bytes(size_bytes: int, is_whole: bool) -> None:
    warnings = ("x" * 200, "x" * (size_bytes - len(b'["%b",""]' % (b"x" * 200))))
    line = orjson.loads(seal(make_record(warnings=warnings), 1, FIRST, is_brief=True)[0])
    assert (line["warnings"] == [*warnings]) is is_whole
    assert line["truncated"] == ["patch: 3 more items", *([] if is_whole else ["warnings: 1 more item"])]


def test_a_brief_record_of_a_pod_that_was_not_placed_has_no_placement() -> None:
    line = orjson.loads(seal(make_record(placement=None, error=None), 1, FIRST, is_brief=True)[0])
    assert (line["placement"], line["error"], line["before"]) == (None, None, {})


def test_a_brief_record_keeps_the_outcome_of_shadow_mode() -> None:
    shadow = ShadowEntry("Denied", warnings=("a warning",), message="would be denied")
    line = seal(make_record(shadow=shadow), 1, FIRST, is_brief=True)[0]
    assert parse_line(line).shadow == ShadowEntry("Denied", message="would be denied")


def test_a_namespace_beyond_its_share_writes_brief_records_until_the_next_ten_minutes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditWriter(path) as writer:
        writer._window = at(0)[: len("2026-01-31T12:0")]
        writer._written_bytes["", "greedy", False] = SHARE_BYTES + 1
        for seconds, namespace in [(0, "greedy"), (1, "other"), (600, "greedy")]:
            writer.write(make_record(namespace=namespace, time=at(seconds)))
    patches = [len(orjson.loads(line)["patch"]) for line in path.read_bytes().splitlines()]
    assert patches == [0, 3, 3]


def test_a_client_that_makes_reviews_up_uses_up_no_share_of_an_api_server(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditWriter(path) as writer:
        writer.write(unsealed("team-a", "10.0.0.9"))
        writer._written_bytes["10.0.0.9", "team-a", False] = SHARE_BYTES + 1
        for address in ("10.0.0.9", "10.0.0.1"):
            writer.write(unsealed("team-a", address))
    assert [len(orjson.loads(line)["patch"]) for line in path.read_bytes().splitlines()] == [3, 0, 3]


def test_the_shares_of_namespaces_that_are_made_up_take_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.audit.writer._MOST_SHARES", 8)
    with AuditWriter(tmp_path / "audit.jsonl") as writer:
        for _time in range(2):
            writer.write(unsealed("large", "10.0.0.1"))
        for number in range(50):
            writer.write(unsealed(f"made-up-{number}", "10.0.0.9"))
        assert len(writer._written_bytes) <= 8
        assert ("10.0.0.1", "large", False) in writer._written_bytes


def test_a_line_has_64_kib_at_most() -> None:
    assert LARGEST_BYTES == 65_536


def test_the_hash_is_of_the_line_without_the_hash() -> None:
    line = encode(make_record(), 1, FIRST)
    loaded = orjson.loads(line)
    stated = loaded.pop("hash")
    assert stated == hashlib.sha256(orjson.dumps(loaded)).hexdigest()
    assert digest(line) == stated_hash(line) == stated


@pytest.mark.parametrize(
    "line",
    [
        b"abc",
        b"{}",
        b'{"hash":"ab"}',
        pytest.param(b'{"a":1,"hash":"' + b"0" * 64 + b'" ', id="another end"),
        pytest.param(b'{"a":1,"hush":"' + b"0" * 64 + b'"}', id="another key"),
    ],
)
def test_the_hash_of_a_line_that_states_none_is_of_all_of_it(line: bytes) -> None:
    assert stated_hash(line) == ""
    assert digest(line) == hashlib.sha256(line).hexdigest()


@pytest.mark.parametrize("key", ["uid", "operation", "namespace", "name", "user"])
@pytest.mark.parametrize(("longer", "is_cut"), [(0, False), (TEXT_BYTES, True)])
def test_each_text_of_a_request_is_cut_if_it_is_long(key: str, longer: int, *, is_cut: bool) -> None:
    fields: dict[str, Any] = {key: "x" * (SHORT + longer)}
    line = encode(make_record(**fields), 1, FIRST)

    written = orjson.loads(line)
    text = written["user"] if key == "user" else written[key]

    assert (len(text) < SHORT + longer) is is_cut
    assert any(each.startswith(key) for each in written.get("truncated", ())) is is_cut
