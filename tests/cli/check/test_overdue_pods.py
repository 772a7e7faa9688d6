"""What `check` and `explain` report of pods that hold cards and do not use them."""

from pathlib import Path

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

LONG_AGO = "2026-01-01T00:00:00Z"
NODE = make_node_object("n3", capacity={"nvidia.com/gpu": 8})
OVERDUE = make_pod("train-7").namespace("team-a").gpu(8).node_name("n3").deletion(LONG_AGO)


def test_check_names_the_node_of_a_pod_that_should_have_ended(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(NODE, OVERDUE))
    asked = ("check", "-f", "-", "--cluster", cluster, "--as-written")

    text = run(*asked, stdin=as_list(make_pod("asks").gpu(8)))
    (found,) = lines(run(*asked, "-o", "json", stdin=as_list(make_pod("asks").gpu(8))).output)

    (line,) = found["overdue"]
    assert line.startswith("node n3: 8 cards are free when team-a/train-7 is gone: it should have ended ")
    assert f"  {line}" in text.output.splitlines()


def test_explain_says_that_a_pod_does_not_use_its_cards(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(NODE, OVERDUE, make_pod("runs").namespace("team-a").node_name("n3").gpu(1)))

    text = run("explain", "pod/train-7", "-n", "team-a", "--cluster", cluster).output
    (found,) = lines(run("explain", "pod/train-7", "-n", "team-a", "--cluster", cluster, "-o", "json").output)
    (other,) = lines(run("explain", "pod/runs", "-n", "team-a", "--cluster", cluster, "-o", "json").output)

    assert "  it holds cards and does not use them (terminating): see placement-webhook reclaim" in text.splitlines()
    assert (found["held"], other["held"]) == ("terminating", None)


def test_explain_names_no_class_while_the_container_with_cards_runs(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    back_off, running = {"waiting": {"reason": "ImagePullBackOff"}}, {"running": {"startedAt": LONG_AGO}}
    states = {"waits": (back_off, running), "runs": (running, back_off)}
    pods = []
    for name, (main, logs) in states.items():
        pod = make_pod(name).namespace("team-a").node_name("n3").gpu(1).container("logs")
        statuses = [{"name": "main", "state": main}, {"name": "logs", "state": logs}]
        pods.append(pod.status(phase="Pending", containerStatuses=statuses))
    cluster.write_text(as_list(NODE, *pods))

    given = ("-n", "team-a", "--cluster", cluster, "-o", "json")
    found = {name: lines(run("explain", f"pod/{name}", *given).output)[0]["held"] for name in states}

    assert found == {"waits": "image-pull", "runs": None}
