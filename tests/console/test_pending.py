"""The page Pending tells what pods wait for: room, or kube-scheduler's preemption, whose possible victims it marks."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_console.page import Asked, Sources, fixed_sources
from placement_console.pages import pending
from placement_console.pages.pending import PendingPods
from placement_console.pod_facts import PodFact, PodFacts
from tests.console.browser import TestBrowser, texts_of
from tests.console.example_cluster import gpu_node, pod, urgent, write_cluster
from tests.console.followed import Followed, console_following
from tests.console.served import asked, console_of
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list
from webhook.cli.inputs.session import Session
from webhook.cluster.cache.object_key import Key
from webhook.cluster.disruptions import Disruptions

if TYPE_CHECKING:
    from playwright.async_api import Route

NONE = Disruptions({}, None)
TRAINER = (
    make_pod("p")
    .namespace("team-a")
    .annotate("maip.mxsf.io/workload-type", "training")
    .annotate("example.com/note", "of another domain")
    .owner("Job", "train")
)
REPORTED = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
VICTIM, NODE = "team-llm/pretrain-70b-24-0", "training-h20-07"
LINE = f"kube-scheduler would evict 1 pod on {NODE}: {VICTIM} (priority 0, 8 cards)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster with pods that wait for each reason."""
    return write_cluster(tmp_path_factory.mktemp("pending") / "cluster.json")


def waits_for(cluster: Path) -> dict[str, str]:
    """Return what the pods of each group wait for, by owner."""
    return {each["owner"]: each["waitsFor"] for each in asked("/api/pending", cluster=cluster)["groups"]}


def fact_after(*pods: PodBuilder | None) -> PodFact:
    """Return what is known of the pod after these changes; None is its deletion."""
    facts = PodFacts("maip.mxsf.io")
    for each in pods:
        content: dict[str, Any] | None = None if each is None else each.obj()
        facts.object_changed("Pod", Key("team-a", "p"), content)
    return facts.of("team-a", "p")


def test_a_pending_pod_has_its_last_report_and_the_annotations_of_the_domain() -> None:
    conditions = [{"type": "Ready", "message": "of another condition"}, REPORTED]
    gated = TRAINER.spec(schedulingGates=[{"name": "example.com/quota"}])

    assert fact_after(gated.status(phase="Pending", conditions=conditions)) == PodFact(
        "Job/train",
        "training",
        "0/2 nodes are available",
        ("example.com/quota",),
        annotations=(("maip.mxsf.io/workload-type", "training"),),
    )


def test_a_pod_has_only_the_facts_of_its_state() -> None:
    pending, bound = TRAINER.status(phase="Pending", conditions=[REPORTED]), TRAINER.node_name("n")
    ended = bound.status(phase="Succeeded")

    assert fact_after(pending, bound) == PodFact("Job/train", "training")
    assert fact_after(pending, bound, ended) == fact_after(pending, None) == PodFact()


def test_pods_wait_for_room_or_for_preemption(cluster: Path) -> None:
    assert waits_for(cluster) == {
        "Job/pretrain-70b": "preemption",
        "Job/segmenter": "room",
        "StatefulSet/ranker-new": "",
        "Job/sweep": "",
        "": "",
    }


def test_groups_are_in_the_order_of_the_queue(tmp_path: Path) -> None:
    """By priority first, and then by the time of their creation."""
    waiting = [
        (name, priority, f"2026-01-0{day}T00:00:00Z") for name, priority, day in (("a", 0, 1), ("b", 5, 3), ("c", 5, 2))
    ]
    pods = []
    for name, priority, created in waiting:
        each = make_pod(name).spec(priority=priority).obj()
        each["metadata"]["creationTimestamp"] = created
        pods.append(each)
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), *pods))

    assert [each["names"] for each in asked("/api/pending", cluster=file)["groups"]] == [["c"], ["b"], ["a"]]


def test_a_group_has_the_facts_of_its_first_pod(tmp_path: Path) -> None:
    gates = [{"name": "example.com/quota"}]
    gated = TRAINER.gpu(8).scheduler("volcano").spec(priority=5, schedulingGates=gates)
    gated = gated.status(phase="Pending", conditions=[REPORTED]).creation("2026-01-01T00:00:00Z")
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8}), gated))

    found = asked("/api/pending", cluster=file)

    assert found["pods"] == 1
    (group,) = found["groups"]
    assert group == {
        "namespace": "team-a",
        "owner": "Job/train",
        "type": "training",
        "count": 1,
        "names": ["p"],
        "nodes": {},
        "priority": 5,
        "created": "2026-01-01T00:00:00Z",
        "state": "gated",
        "waitsFor": "",
        "message": "0/2 nodes are available",
        "gates": ("example.com/quota",),
        "scheduler": "volcano",
        "requests": group["requests"],
    }
    assert group["requests"]["nvidia.com/gpu"] == 8


def test_a_pod_is_queued_until_its_scheduler_reports_that_it_has_no_room(tmp_path: Path) -> None:
    reported = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    pods = [
        make_pod("new"),
        make_pod("reported").status(phase="Pending", conditions=[reported]),
        make_pod("gated").spec(schedulingGates=[{"name": "g"}]).status(phase="Pending", conditions=[gated]),
        make_pod("nominated").status(phase="Pending", conditions=[reported], nominatedNodeName="n"),
    ]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), *pods))

    found = {each["names"][0]: each["state"] for each in asked("/api/pending", cluster=file)["groups"]}

    assert found == {"new": "queued", "reported": "unschedulable", "gated": "gated", "nominated": "nominated"}


def test_an_explanation_has_the_fields_of_check_and_its_own(cluster: Path) -> None:
    answer = asked("/api/pending/explain", cluster=cluster, namespace="team-vision", name="segmenter-0")

    assert (answer["scores"], answer["withoutPending"]) == ({}, [])
    assert {"training-h20-01", "hybrid-h20-01"} <= set(answer["withoutPods"])
    assert {"verdict", "message", "injected", "evictions", "reserved", "remarks"} <= answer.keys()
    assert isinstance(answer["reserved"], str)
    assert isinstance(answer["remarks"], list)


def test_only_so_many_groups_are_listed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), *(make_pod(f"p{n}").namespace("team-a") for n in range(4))))
    monkeypatch.setattr(pending, "_MOST_GROUPS", 3)
    monkeypatch.setattr(pending, "_MOST_REPORTED", 2)

    found = asked("/api/pending", cluster=file)
    sources = fixed_sources(Session(cluster=str(file), needs_pods=False), ())

    assert (found["pods"], [each["names"] for each in found["groups"]]) == (4, [["p0"], ["p1"], ["p2"]])
    assert [*PendingPods(sources).first_of_groups()] == [
        {"namespace": "team-a", "name": "p0"},
        {"namespace": "team-a", "name": "p1"},
    ]


def test_each_pod_of_a_group_has_its_own_node(tmp_path: Path) -> None:
    """The last one has no room."""
    pods = [make_pod(f"p{number}").gpu(8).owner("Job", "train") for number in range(3)]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(*(make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in "ab"), *pods))

    (group,) = asked("/api/pending", cluster=file)["groups"]

    assert (group["count"], group["names"], sorted(group["nodes"].values())) == (3, ["p0", "p1", "p2"], ["a", "b"])


def test_a_gated_pod_that_is_being_deleted_waits_for_no_gate(tmp_path: Path) -> None:
    gated = make_pod("p").spec(schedulingGates=[{"name": "example.com/gate"}]).obj()
    gated["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), gated))

    assert [each["state"] for each in asked("/api/pending", cluster=file)["groups"]] == ["terminating"]


def test_a_pod_that_is_being_deleted_gets_no_node(tmp_path: Path) -> None:
    pod = make_pod("p").namespace("team-a").obj()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), pod))

    answer = asked("/api/pending/explain", cluster=file, namespace="team-a", name="p")

    assert (answer["verdict"], answer["message"]) == ("Unknown", "it is being deleted: no scheduler gives it a node")

    room = asked("/api/pending/room", cluster=file, namespace="team-a", name="p")

    assert (room["verdict"], room["message"]) == ("Unknown", "it is being deleted: no scheduler gives it a node")


def test_the_list_predicts_until_its_time_is_over(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "_MOST_SECONDS", -1.0)

    assert {*waits_for(cluster).values()} == {""}


def test_a_pod_has_its_possible_victims_by_node(cluster: Path) -> None:
    preempts = asked("/api/pending/explain", cluster=cluster, namespace="team-llm", name="pretrain-70b-x0")
    waits = asked("/api/pending/explain", cluster=cluster, namespace="team-vision", name="segmenter-0")

    assert (preempts["waitsFor"], preempts["victims"]) == ("preemption", {NODE: [VICTIM]})
    assert preempts["evictions"] == [LINE, "Job pretrain-70b creates it again: it would wait"]
    assert (waits["waitsFor"], waits["victims"], waits["evictions"]) == ("room", {}, [])


def test_what_pods_wait_for_follows_the_cluster() -> None:
    """The running pod is deleted, and one of lower priority takes its place."""
    node = make_node_object("n", capacity={"nvidia.com/gpu": 8})
    running, lower = (
        make_pod(name).gpu(8).node_name("n").spec(priority=priority).obj() for name, priority in (("a", 9), ("b", 0))
    )
    view = Followed((node, running, make_pod("p").gpu(8).spec(priority=9).obj()))
    sources = Sources(Session(cluster="unused", needs_pods=False), view, view.facts, lambda: (view.snapshot(), NONE))
    found = PendingPods(sources)

    def waits() -> list[str]:
        answer: Any = found.groups(Asked(view.snapshot()))
        return [each["waitsFor"] for each in answer["groups"]]

    before = waits()
    view.apply(running, "DELETED")
    view.apply(lower)
    assert (before, waits()) == (["room"], ["preemption"])


def test_a_pod_does_not_need_the_room_that_is_predicted_for_it(tmp_path: Path) -> None:
    pods = [make_pod("p").namespace("team-a").gpu(8), make_pod("q").namespace("team-a").gpu(8)]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8}), *pods))

    answers = [asked("/api/pending/room", cluster=file, namespace="team-a", name=name) for name in "pq"]

    assert [(answer["verdict"], answer["node"]) for answer in answers] == [("Fits", "n"), ("None", None)]


def test_a_manifest_has_its_possible_victims_by_node(cluster: Path) -> None:
    (tried,) = asked("/api/try", json.dumps(urgent()), cluster=cluster)["pods"]

    assert (tried["verdict"], tried["waitsFor"]) == ("Waiting", "preemption")
    names = [name for names in tried["victims"].values() for name in names]
    assert sorted(names) == sorted(tried["preemption"]["victims"])
    assert tried["evictions"][0].startswith("kube-scheduler would evict ")


def test_waiting_pods_are_filtered_and_victims_are_marked(browser: TestBrowser, cluster: Path) -> None:
    async def use() -> tuple[list[str], list[str], list[str], str | None]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#pending")
            await page.locator(".row strong").first.wait_for()
            choices = await texts_of(page.get_by_label("State").locator("option"))
            await page.get_by_label("State").select_option("room")
            rows = await texts_of(page.locator(".row strong"))
            await page.get_by_label("State").select_option("preemption")
            await page.locator(".victims .map-box").focus()
            await page.keyboard.press("Home")
            said = await page.locator("[aria-live=polite]").text_content()
            return choices, rows, await texts_of(page.locator(".victims .words")), said

    choices, rows, lines, said = browser.run(use)

    assert choices == [
        "all",
        "waits for preemption (3)",
        "waits for room (1)",
        "in the queue (1)",
        "gated (1)",
        "no node (1)",
    ]
    assert rows == ["Job/segmenter"]
    assert lines[0] == LINE
    assert said is not None
    assert said.startswith(f"{NODE}, ")
    assert said.endswith(f", 1 possible victim: {VICTIM}")


def test_the_victims_of_a_manifest_are_on_the_whole_map(browser: TestBrowser, cluster: Path) -> None:
    async def use() -> tuple[str | None, str | None, str | None]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#try")
            await page.get_by_label("Manifest").fill(json.dumps(urgent()))
            await page.get_by_role("button", name="Try it").click()
            badge = await page.locator(".result .badge").nth(1).text_content()
            line = await page.locator(".victims .words").first.text_content()
            await page.get_by_role("button", name="Show on the whole map").click()
            return badge, line, await page.locator("aside h2").text_content()

    badge, line, node = browser.run(use)

    assert badge == "waits for preemption"
    assert line is not None
    assert f" on {node}" in line


def test_the_map_of_victims_is_drawn_once_its_nodes_are_known(browser: TestBrowser, cluster: Path) -> None:
    answered = asyncio.Event()

    async def later(route: "Route") -> None:
        await answered.wait()
        await route.continue_()

    async def use() -> str | None:
        async with console_of(cluster) as address, browser.page() as page:
            await page.route("**/api/events", later)
            await page.goto(f"{address}/#try")
            await page.get_by_label("Manifest").fill(json.dumps(urgent()))
            await page.get_by_role("button", name="Try it").click()
            await page.get_by_role("button", name="Show on the whole map").wait_for()
            answered.set()
            nodes = await page.locator(".victims .map-box").get_attribute("aria-label")
            await page.unroute("**/api/events")
            return nodes

    assert browser.run(use) == "hybrid, NVIDIA-H20: 1 node"


def test_a_missing_scheduler_is_the_reason(browser: TestBrowser) -> None:
    message = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "old words"}
    view = Followed(
        [
            gpu_node("node-1", "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}),
            pod(
                "a", "waits", 1, spec={"schedulerName": "absent"}, status={"phase": "Pending", "conditions": [message]}
            ),
            pod("a", "runs", 1, spec={"schedulerName": "present"}),
        ]
    )
    view.has_signs_of("present")

    async def use() -> tuple[list[str], list[str], str | None]:
        async with console_following(view) as address, browser.page() as page:
            await page.goto(f"{address}/#pending?state=no-scheduler")
            await page.locator(".row-why").first.wait_for()
            reasons = await texts_of(page.locator(".row-why"))
            badges = await texts_of(page.locator(".row .badge"))
            return reasons, badges, await page.locator(".side .words").first.text_content()

    reason = "scheduler absent: no sign that it runs. Without it, the pod stays Pending."
    assert browser.run(use) == ([reason], ["no scheduler"], reason)


def test_the_summary_is_the_sum_of_the_pods_that_are_shown(browser: TestBrowser, cluster: Path) -> None:
    async def use() -> tuple[str | None, str | None, str | None]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#pending")
            await page.locator(".row").first.wait_for()
            every = await page.locator(".summary").text_content()
            await page.get_by_label("Search").fill("pretrain")
            found = await page.locator(".summary").text_content()
            await page.get_by_label("Namespace").select_option("team-vision")
            return every, found, await page.locator(".content .message strong").text_content()

    assert browser.run(use) == (
        "7 pods waiting · 34 nvidia.com/gpu",
        "3 of 7 pods waiting · 24 nvidia.com/gpu",
        "No pod matches",
    )


@pytest.mark.parametrize(("text", "count"), [("由调度门阻止 (1)", 1), ("受限", 0)])
def test_a_gated_pod_has_the_chinese_words_of_kubernetes(
    browser: TestBrowser, cluster: Path, text: str, count: int
) -> None:
    async def use() -> int:
        async with console_of(cluster) as address, browser.page(language="zh-CN") as page:
            await page.goto(f"{address}/#pending")
            await page.wait_for_selector(".row")
            return await page.locator("option", has_text=text).count()

    assert browser.run(use) == count
