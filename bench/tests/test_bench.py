"""`make bench` runs, with every kind of view that needs no control plane."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

import bench.__main__ as benchmark
from bench.running.replicas import decisions, recorded, verified
from bench.simulation import openb
from bench.soak import Sample, late_growth
from tests.support.programs.command import run_here

_ROWS = ("injecting: one template", "30 nodes: bursts that take room", "live view, 100 nodes: bursts that take room")


@pytest.mark.slow
def test_each_row_has_the_cost_of_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_LIVE_NODES", 100)
    selected = [f"--only={row}" for row in _ROWS]
    sizes = ["--nodes=30", "--pods-per-node=1", "--requests=20", "--turns=1", "--pods-per-second=1000"]

    result = CliRunner().invoke(benchmark.main, [*selected, *sizes])

    assert result.exit_code == 0, result.output
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if "here" in line]
    assert [cells[0] for cells in table] == list(_ROWS)
    assert all(float(cells[2]) > 0 for cells in table)


def test_growth_in_the_second_half_of_a_soak_compares_its_quarters() -> None:
    samples = [Sample(float(second), (1000 if second < 75 else 1100, 1000)) for second in range(100)]
    assert late_growth(samples) == pytest.approx([0.1, 0.0])
    assert late_growth(samples[:3]) == []


def test_a_long_soak_reads_the_rotated_logs_of_api_server_and_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def event(number: int) -> bytes:
        return orjson.dumps({"auditID": f"id-{number}", "annotations": {"a/decision": f"decision-{number}"}}) + b"\n"

    log = tmp_path / "audit.log"
    (tmp_path / "audit-2026-11-24T06-00-00.000.log").write_bytes(event(1))
    log.write_bytes(event(2) + b'{"auditID": "cut off')
    assert decisions(log) == {"id-1": "decision-1", "id-2": "decision-2"}

    file = tmp_path / "audit.jsonl"
    for number, suffix in enumerate(("", ".1", ".2", ".head")):
        record = orjson.dumps({"decision": f"decision-{number}"}) + b"\n"
        file.with_name(f"audit.jsonl{suffix}").write_bytes(record)
    assert recorded([file]) == {"decision-0", "decision-1", "decision-2"}
    monkeypatch.setattr("bench.running.replicas.subprocess.run", lambda command, **_: command)
    files: Any = verified([file])
    assert files[-3:] == [f"{file}.2", f"{file}.1", str(file)]


def test_lists_of_the_openb_trace_become_what_simulate_reads(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,64000,65536,2,P100\n")
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
        "a,4000,1024,1,460,P100|T4,10,100,40\nb,1000,1024,0,0,,0,9,0\nc,1000,1024,2,1000,,5,25,\n"
    )
    for source, name in ((nodes, "cluster.json"), (pods, "trace.csv")):
        (tmp_path / name).write_text(CliRunner().invoke(openb.main, [str(source)]).stdout)

    assert (tmp_path / "trace.csv").read_text() == (
        "arrival,duration,replicas,requests,annotations\n"
        '10,60.0,1,cpu=4000m;memory=1024Mi;nvidia.com/gpu=1,"workload-type=training;gpu-product=P100,T4"\n'
        "5,20.0,1,cpu=1000m;memory=1024Mi;nvidia.com/gpu=2,workload-type=training\n"
    )
    found = run_here(
        "simulate", "--trace", tmp_path / "trace.csv", "--cluster", tmp_path / "cluster.json", "-o", "json"
    )
    outcome = orjson.loads(found.output)
    assert (outcome["cards"], outcome["pods"], outcome["placed"], outcome["denied"]) == (2, 2, 2, 0)


def test_a_list_of_the_openb_trace_without_times_fills_the_cards(tmp_path: Path) -> None:
    pods = tmp_path / "pods.csv"
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,1024,1,460\n")

    assert CliRunner().invoke(openb.main, [str(pods)]).stdout.splitlines()[1].startswith("0,,1,cpu=4000m;")


def test_lists_of_the_openb_trace_can_have_racks_and_gangs_within_them(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{each},8000,8000,8,T4\n" for each in range(3)))
    pods.write_text("cpu_milli,memory_mib,num_gpu\n" + "4000,1024,1\n" * 11)

    cluster = orjson.loads(CliRunner().invoke(openb.main, [str(nodes), "--racks", "2"]).stdout)["items"]
    lines = CliRunner().invoke(openb.main, [str(pods), "--racks", "2"]).stdout.splitlines()[1:]

    racks = [each["metadata"]["labels"]["topology.kubernetes.io/rack"] for each in cluster if each["kind"] == "Node"]
    assert racks == ["rack-0", "rack-0", "rack-1"]
    assert cluster[-1]["spec"]["levels"] == [{"nodeLabel": "topology.kubernetes.io/rack"}]
    assert [line.split(",")[2] for line in lines] == ["16", *["1"] * 9, "4"]
    assert lines[-1].endswith(";gang=g10;gang-size=4;queue=q;within=rack;within-mode=required")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "neither a node list nor a pod list of the openb trace"),
        ("a,b\n1,2\n", "neither a node list nor a pod list of the openb trace"),
        ("cpu_milli,memory_mib,num_gpu\n1,2,x\n", "invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_list_that_is_not_of_the_openb_trace_is_one_error(tmp_path: Path, text: str, error: str) -> None:
    source = tmp_path / "list.csv"
    source.write_text(text)

    outcome = CliRunner().invoke(openb.main, [str(source)])

    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith(f"Error: {source}")
    assert outcome.stderr.endswith(f"{error}\n")
