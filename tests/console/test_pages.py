"""The pages Try, Admissions and Policy answer as the commands do."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_console.page import NotFoundError
from placement_console.pages import manifests, policies
from tests.console.browser import TestBrowser, texts_of
from tests.console.example_cluster import DEPLOYMENT
from tests.console.served import SAMPLE, asked, console_of
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.clusters import review
from tests.support.programs.audit_records import FEASIBLE, chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import run_here
from tests.support.programs.recorded_admissions import write_recorded
from webhook.audit.record import Owner
from webhook.documents.field import InvalidInput
from webhook.policy.spec.document import API_VERSION, KIND

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: a, annotations: {{maip.mxsf.io/workload-type: training, maip.mxsf.io/gpu-product: "{product}"}}}}
spec:
  containers:
  - {{name: main, image: a, resources: {{limits: {{cpu: "1", memory: 1Gi, nvidia.com/gpu: "1"}}}}}}
"""
HOSTILE = "<img src=x onerror=alert(1)>"


def test_a_manifest_gets_the_patch_of_mutate_and_the_verdict_of_check(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(DEPLOYMENT)
    given = ("-f", tmp_path / "chat.yaml", "--cluster", SAMPLE)
    checked = json.loads(run_here("check", *given, "-o", "json").output)
    patch = json.loads(run_here("mutate", *given, "-o", "patch").output)

    (pod,) = asked("/api/try", DEPLOYMENT)["pods"]

    scores = {row.pop("node"): row for row in pod["scores"]}
    assert pod["operations"] == patch
    assert {key: pod[key] for key in checked if key != "scores"} == {
        key: value for key, value in checked.items() if key != "scores"
    }
    assert scores == checked["scores"]
    assert (pod["gang"], pod["faults"], pod["withoutPending"], pod["withoutPods"]) == ([], [], [], [])
    assert all(isinstance(pod[key], str) for key in ("title", "replicasText", "reservedText"))
    # The best node comes first.
    assert [*scores] == sorted(scores, key=lambda name: (-scores[name]["total"], name))
    assert pod["outcome"] == "Patched"


def test_further_pods_are_those_of_capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chat.yaml").write_text(DEPLOYMENT)
    counted = json.loads(
        run_here("capacity", "-f", tmp_path / "chat.yaml", "--cluster", SAMPLE, "--mutate", "-o", "json").output
    )

    further = asked("/api/try", DEPLOYMENT)["pods"][0]["further"]

    assert (further["fits"], further["nodes"]) == (counted["fits"], counted["nodes"])
    assert (further["stoppedBy"], further["isMore"]) == (counted["stoppedBy"], False)
    monkeypatch.setattr(manifests, "_MOST_FURTHER", 2)
    bounded = asked("/api/try", DEPLOYMENT)["pods"][0]["further"]
    assert (bounded["fits"], bounded["isMore"]) == (2, True)


def test_a_denied_pod_has_the_denial_and_no_further_pods() -> None:
    (pod,) = asked("/api/try", POD.format(product=HOSTILE))["pods"]

    assert (pod["outcome"], pod["verdict"], "further" in pod) == ("Denied", "Refused", False)
    assert "metadata.annotations[maip.mxsf.io/gpu-product]" in pod["reason"]


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        ("a: [", "manifest:2:1: Invalid value"),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "manifest: Invalid value"),
        (DEPLOYMENT.replace("replicas: 3", "replicas: 3000"), "at most 50 pod templates with 2000 pods"),
        ("apiVersion: v1\nkind: Gadget\nmetadata: {name: a}\n", "is not a known kind"),
    ],
    ids=["no YAML", "no pod", "too many pods", "an unknown kind"],
)
def test_a_manifest_that_cannot_be_tried_has_an_error(manifest: str, error: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked("/api/try", manifest)

    assert error in str(caught.value.errors[0])


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """Return an audit file of four records; one of them is denied."""
    path = tmp_path / "audit.jsonl"
    records = [make_record(number) for number in range(3)]
    write_lines(path, chain_lines([*records, make_record(3, outcome="Denied", error="no such type")]))
    return path


def test_admissions_are_selected_as_by_audit_list(audit: Path) -> None:
    every, denied = asked("/api/admissions", audit=(audit,)), asked("/api/admissions", audit=(audit,), outcome="Denied")
    listed = [json.loads(line) for line in run_here("audit", "list", audit, "-o", "json").output.splitlines()]

    assert [row["decision"] for row in every["rows"]] == [each["decision"] for each in reversed(listed)]
    assert (every["total"], every["selected"], denied["selected"]) == (4, 4, 1)
    assert every["choices"]["outcome"]["Denied"] == 1
    assert denied["rows"][0]["note"] == "no such type"
    assert sum(sum(bucket.values()) for bucket in every["timeline"]["buckets"]) == 4


def test_admissions_are_searched_by_pod_owner_user_and_decision(audit: Path) -> None:
    decision = make_record(1).decision

    assert asked("/api/admissions", audit=(audit,), search=decision)["selected"] == 1
    none = asked("/api/admissions", audit=(audit,), search="no such pod")
    assert (none["selected"], none["timeline"]) == (0, {"start": 0, "seconds": 0, "buckets": []})


def test_the_slowest_admissions_come_first_whenever_they_were(tmp_path: Path) -> None:
    path, records = tmp_path / "audit.jsonl", [make_record(number, duration_ms=40.0 - number) for number in range(12)]
    write_lines(path, chain_lines(records))

    found = asked("/api/admissions", audit=(path,))["slowest"]

    assert [row["durationMs"] for row in found] == [40.0 - number for number in range(10)]


def test_predictions_are_compared_with_the_nodes_of_pods(audit: Path, tmp_path: Path) -> None:
    """Two of the recorded pods run where they were predicted, and one runs on another node."""
    assert FEASIBLE.node is not None
    nodes = FEASIBLE.node, FEASIBLE.node, "other"
    pods = [make_pod(f"worker-{n}").namespace("team-a").node_name(node) for n, node in enumerate(nodes)]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(*map(make_node_object, {*nodes}), *pods))

    found = asked("/api/admissions", audit=(audit,), cluster=file)

    assert found["accuracy"] == {"predicted": 2, "elsewhere": 1}
    assert [row["boundTo"] for row in found["rows"]] == [None, *reversed(nodes)]


def test_admissions_are_searched_in_each_of_the_four_texts(tmp_path: Path) -> None:
    """Upper and lower case are one, and a record without an owner has no name of one."""
    path, owner = tmp_path / "audit.jsonl", Owner("Job", "of-the-owner")
    records = [
        make_record(0, namespace="of-the-namespace", owner=None),
        make_record(1, owner=owner),
        make_record(2, user="of-the-user", owner=None),
        make_record(3, decision="of-the-decision", owner=None),
    ]
    write_lines(path, chain_lines(records))

    for number, text in enumerate(("the-NAMESPACE/worker-0", "of-the-owner", "of-the-user", "of-the-decision")):
        found = asked("/api/admissions", audit=(path,), search=text)["rows"]
        assert [each["name"] for each in found] == [f"worker-{number}"]


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({}, "label jobtype=x of the pod wins"),
        ({"error": "no such type"}, "no such type"),
        ({"warnings": ()}, FEASIBLE.message),
        ({"warnings": (), "placement": None}, ""),
    ],
)
def test_a_row_and_a_decision_have_the_facts_of_the_record(tmp_path: Path, fields: dict[str, Any], note: str) -> None:
    path, record = tmp_path / "audit.jsonl", make_record(1, kind="Pod", dry_run=True, **fields)
    write_lines(path, chain_lines([record]))
    placement = record.placement
    row = {
        "time": record.time,
        "decision": "d0001",
        "namespace": "team-a",
        "name": "worker-1",
        "kind": "Pod",
        "owner": "Job/worker",
        "user": "system:serviceaccount:kube-system:job-controller",
        "type": "training",
        "outcome": "Patched",
        "dryRun": True,
        "verdict": placement and placement.verdict,
        "node": placement and placement.node,
        "boundTo": None,
        "note": note,
        "durationMs": 0.5,
    }

    (listed,) = asked("/api/admissions", audit=(path,))["rows"]
    found = asked("/api/admissions/decision", audit=(path,), decision="d0001")

    assert listed == row
    assert found == row | {
        "place": f"{path}:1",
        "policy": "default@1a2b3c",
        "rules": [asdict(each) for each in record.rules],
        "patch": list(record.patch),
        "before": record.before,
        "warnings": record.warnings,
        "error": record.error,
        "placement": placement and asdict(placement),
        "replica": "webhook-0",
        "sequence": 1,
    }


def test_admissions_are_counted_by_outcome_type_verdict_and_namespace(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    other = make_record(1, outcome="Bypassed", workload_type=None, namespace="team-b", placement=None)
    write_lines(path, chain_lines([make_record(0), other]))

    choices = asked("/api/admissions", audit=(path,))["choices"]

    assert {key: dict(choices[key]) for key in choices} == {
        "outcome": {"Patched": 1, "Bypassed": 1},
        "type": {"training": 1, "": 1},
        "verdict": {FEASIBLE.verdict: 1, "": 1},
        "namespace": {"team-a": 1, "team-b": 1},
    }
    for key, value in (("outcome", "Bypassed"), ("type", "training"), ("namespace", "team-b")):
        query: dict[str, Any] = {key: value}
        assert asked("/api/admissions", audit=(path,), **query)["selected"] == 1


def test_the_pods_of_a_node_have_their_requests_in_order_of_namespace_and_name(tmp_path: Path) -> None:
    trainer = make_pod("b").namespace("team-a").annotate("maip.mxsf.io/workload-type", "training").owner("Job", "train")
    trainer = trainer.requests(cpu="2", memory="3Gi").gpu(4).spec(priority=7).deletion("2026-01-01T00:00:00Z")
    pods = [trainer, make_pod("a").namespace("team-b"), make_pod("a").namespace("team-a").gpu(0)]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8}), *(p.node_name("n") for p in pods)))

    found = asked("/api/node", cluster=file, name="n")

    assert (found["name"], [(each["namespace"], each["name"]) for each in found["pods"]]) == (
        "n",
        [("team-a", "a"), ("team-a", "b"), ("team-b", "a")],
    )
    assert found["pods"][1] == {
        "namespace": "team-a",
        "name": "b",
        "owner": "Job/train",
        "type": "training",
        "priority": 7,
        "terminating": True,
        "cpu": 2000,
        "memory": 3 * 2**30,
        "others": {"nvidia.com/gpu": 4},
        "held": "terminating",
    }
    assert [each["held"] for each in found["pods"]] == ["", "terminating", ""]
    assert found["pods"][0]["others"] == {}
    with pytest.raises(NotFoundError, match="there is no node m"):
        asked("/api/node", cluster=file, name="m")


def test_a_candidate_is_compared_on_recorded_admissions_or_on_objects(tmp_path: Path) -> None:
    audit, cluster = tmp_path / "audit.jsonl", tmp_path / "cluster.yaml"
    write_recorded(audit, (review(number, shape=0) for number in range(6)))
    cluster.write_text(f"{SAMPLE.read_text()}---\n{DEPLOYMENT}")
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "new"}}
    types = {"inference": {"nodeUsage": {"allow": ["inference"]}}}
    candidate = yaml.safe_dump({**head, "spec": {"workloadTypes": types}})

    of_records = asked("/api/policies/replay", candidate, audit=(audit,), cluster=cluster, source="audit")
    of_objects = asked("/api/policies/replay", candidate, audit=(audit,), cluster=cluster)

    assert of_records == {
        "pods": 6,
        "changed": 6,
        "refused": 6,
        "worse": 0,
        "changes": of_records["changes"],
        "moreChanges": 0,
        "isComplete": True,
        "leftOut": {},
        "unreadable": 0,
        "remarks": of_records["remarks"],
    }
    first = of_records["changes"][0]
    assert {key: value for key, value in first.items() if key != "owners"} == {
        "kind": "outcome",
        "detail": "Patched → Denied",
        "pods": 6,
        "namespaces": first["namespaces"],
    }
    assert sum(first["owners"].values()) == sum(first["namespaces"].values()) == 6
    assert of_objects["pods"] not in (0, 6)


def test_a_decision_has_its_record(audit: Path) -> None:
    wanted = make_record(2)

    found = asked("/api/admissions/decision", audit=(audit,), decision=wanted.decision)

    assert found["patch"] == list(wanted.patch)
    assert found["place"] == f"{audit}:3"
    with pytest.raises(NotFoundError):
        asked("/api/admissions/decision", audit=(audit,), decision="none")


@pytest.mark.parametrize("command", ["console", "report"])
def test_an_audit_file_that_is_none_ends_the_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "policy.yaml").write_text("apiVersion: v1\n")
    output = ("-o", tmp_path / "report.html") if command == "report" else ()

    ran = run_here(command, "--cluster", SAMPLE, "--audit", tmp_path / "policy.yaml", *output)

    assert ran.code == 2
    assert ran.errors.startswith(f"Error: {tmp_path / 'policy.yaml'}: ")
    assert "holds no audit record" in ran.errors
    assert not (tmp_path / "report.html").exists()


def test_without_audit_files_the_page_says_so() -> None:
    assert asked("/api/admissions") == {"hasFiles": False}


def test_the_policies_in_force_have_their_namespaces() -> None:
    (policy,) = asked("/api/policies")["policies"]

    assert (policy["isDefault"], policy["mode"], policy["types"]) == (True, "enforce", ["inference", "training"])
    assert policy["count"] == len(policy["namespaces"])


def test_policies_have_the_namespaces_that_their_selectors_select(tmp_path: Path) -> None:
    file, cluster = tmp_path / "policies.yaml", tmp_path / "cluster.json"
    head = {"apiVersion": API_VERSION, "kind": KIND}
    spec = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    file.write_text(yaml.safe_dump_all([head, {**head, "metadata": {"name": "a"}, "spec": spec}]))
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, field: {"team": "a"}}}
        for name, field in (("by-label", "labels"), ("by-annotation", "annotations"))
    ]
    cluster.write_text(as_list(make_node_object("n"), *namespaces))

    found = asked("/api/policies", cluster=cluster, policies=(file,))["policies"]

    assert [(each["isDefault"], each["namespaces"]) for each in found] == [
        (True, ["by-annotation"]),
        (False, ["by-label"]),
    ]


def test_a_candidate_is_compared_as_replay_compares_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (policy,) = asked("/api/policies")["policies"]
    document = yaml.safe_load(policy["text"])
    document["spec"]["workloadTypes"]["inference"]["schedulerName"] = "kai-scheduler"
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{SAMPLE.read_text()}---\n{DEPLOYMENT}")
    (tmp_path / "new.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "old.yaml").write_text(policy["text"])
    lines = run_here(
        *("replay", "--policy", tmp_path / "new.yaml", "--against", tmp_path / "old.yaml", "--cluster", cluster),
        *("-o", "json"),
    ).output.splitlines()

    same = asked("/api/policies/replay", policy["text"], cluster=cluster)
    other = asked("/api/policies/replay", yaml.safe_dump(document), cluster=cluster)

    assert (same["changed"], same["changes"]) == (0, [])
    assert other["changed"] == len(lines) > 0
    assert other["moreChanges"] == 0
    monkeypatch.setattr(policies, "_MOST_CHANGES", 1)
    bounded = asked("/api/policies/replay", yaml.safe_dump(document), cluster=cluster)
    assert (bounded["changes"], bounded["moreChanges"]) == (other["changes"][:1], len(other["changes"]) - 1)
    assert bounded["moreChanges"] > 0
    assert other["pods"] == same["pods"]


def test_a_candidate_that_is_no_policy_has_an_error_with_its_line() -> None:
    with pytest.raises(InvalidInput) as caught:
        asked("/api/policies/replay", "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec: 1\n")

    assert str(caught.value.errors[0]).startswith("candidate")


def test_the_three_pages_work_in_a_browser(browser: TestBrowser, audit: Path) -> None:
    async def use() -> tuple[str | None, str | None, int, str | None, str | None]:
        async with console_of(audit=[audit]) as address, browser.page() as page:
            await page.goto(f"{address}/#try")
            await page.get_by_label("Manifest").fill(POD.format(product=HOSTILE))
            await page.keyboard.press("Control+Enter")
            reason = await page.locator(".result .words").first.text_content()
            await page.get_by_role("button", name="Example").click()
            await page.get_by_role("button", name="Try it").click()
            await page.locator(".score-bar").first.wait_for()
            patch = await page.locator(".diff").text_content()
            images = await page.locator("img").count()
            await page.goto(f"{address}/#admissions")
            await page.locator("tbody button").first.click()
            decision = await page.locator(".side dd").first.text_content()
            await page.goto(f"{address}/#policy")
            await page.get_by_role("button", name="Compare").wait_for()
            await page.get_by_text("Document").click()
            await page.get_by_role("button", name="Copy to the candidate").click()
            await page.get_by_role("button", name="Compare").click()
            result = await page.locator(".policies .message strong").text_content()
            return reason, patch, images, decision, result

    reason, patch, images, decision, result = browser.run(use)

    assert HOSTILE in str(reason)
    assert "+    maip.mxsf.io/placement-policy" in str(patch)
    assert images == 0
    assert decision == make_record(3).decision
    assert result == "No difference"


def test_outcomes_in_the_timeline_differ_in_their_lines_too(browser: TestBrowser, tmp_path: Path) -> None:
    outcomes = ("Patched", "Unchanged", "Bypassed", "Denied", "Error", "Evicted")
    path = tmp_path / "audit.jsonl"
    write_lines(path, chain_lines([make_record(number, outcome=each) for number, each in enumerate(outcomes)]))

    async def use() -> tuple[list[str], list[str], float]:
        async with console_of(audit=[path]) as address, browser.page() as page:
            await page.goto(f"{address}/#admissions")
            await page.locator(".timeline .outcomes").wait_for()
            signs = await page.evaluate(
                "[...document.querySelectorAll('.timeline .sign svg')].map((svg) => "
                "[...svg.querySelectorAll('line')].map((line) => line.outerHTML).join())"
            )
            titles = await texts_of(page.locator(".timeline > svg title"))
            height = await page.evaluate("document.querySelector('.timeline .sign').getBoundingClientRect().height")
            return signs, titles, height

    signs, titles, height = browser.run(use)

    assert height < 30

    assert len(set(signs)) == len(signs) == len(outcomes)
    assert {title.rpartition(": ")[0].rpartition(": ")[2] for title in titles} == {
        *("patched", "unchanged", "left alone", "denied", "error", "evicted")
    }


def test_many_templates_are_an_overview_first(browser: TestBrowser) -> None:
    manifest = "---\n".join(DEPLOYMENT.replace("name: chat,", f"name: chat-{number},") for number in range(11))

    async def use() -> tuple[int, int, str | None, int]:
        async with console_of() as address, browser.page() as page:
            await page.goto(f"{address}/#try")
            await page.get_by_label("Manifest").fill(manifest)
            await page.get_by_role("button", name="Try it").click()
            await page.locator("table").first.wait_for()
            rows, results = await page.locator("tbody tr").count(), await page.locator(".result").count()
            await page.locator("tbody tr").nth(7).locator("td").last.click()
            title = await page.locator(".result-head h2").text_content()
            return rows, results, title, await page.locator(".result").count()

    assert browser.run(use) == (11, 0, "Deployment team-vision/chat-7", 1)
