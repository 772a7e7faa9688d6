"""`simulate` prints the configurations side by side, and writes files completely or not at all."""

import errno
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.command import Outcome, Run, run_here
from tests.support.programs.recorded_admissions import write_recorded
from tests.support.programs.traces import POOL, lines, write_experiment
from tests.support.servers.server import review
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.documents.field import InvalidInput

_HEADER = "arrival,duration,requests,annotations"
_SPREAD = "workload-type=training;bin-packing=false"
_TRACE = lines(
    *(f"{number},40,cpu=4;nvidia.com/gpu=1,{_SPREAD}" for number in range(6)),
    f"20,40,cpu=32;nvidia.com/gpu=8,{_SPREAD}",
    header=_HEADER,
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, in which the command runs, of a trace for two nodes of eight GPUs."""
    monkeypatch.chdir(tmp_path)
    nodes = [make_node_object(name, labels={POOL: "training"}, capacity={"nvidia.com/gpu": 8}) for name in ("a", "b")]
    write_experiment(tmp_path, _TRACE, nodes)
    return tmp_path


def simulate(run: Run, *arguments: str) -> Outcome:
    return run("simulate", "--trace", "trace.csv", "--cluster", "cluster.json", *arguments)


PROFILES = ("--scheduler-profile", "default", "--scheduler-profile", "binpack")


def test_profiles_are_side_by_side(run: Run, files: Path) -> None:
    found = simulate(run, *PROFILES)

    rows = [line.split() for line in found.output.splitlines()]
    summary = {row[1]: row for row in rows[3:5]}
    assert rows[0][:4] == ["2", "nodes,", "16", "cards;"]
    # The stock profile spreads the small pods over both nodes, so the large one waits for the last of them to end.
    assert "24 s" in " ".join(summary["default"])
    assert "24 s" not in " ".join(summary["binpack"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59, "59 s"), (60, "1.0 min"), (3599, "60.0 min"), (3600, "1.0 h"), (86_399, "24.0 h"), (86_400, "1.0 d")],
)
def test_a_wait_is_in_the_largest_unit_of_which_it_has_one(run: Run, files: Path, seconds: int, text: str) -> None:
    rows = (f"0,{seconds},nvidia.com/gpu=8", f"0,{seconds},nvidia.com/gpu=8", "0,1,nvidia.com/gpu=8;cpu=1")
    (files / "trace.csv").write_text(lines(*rows, header="arrival,duration,requests"))

    assert simulate(run, "--scheduler-profile", "default").output.endswith(f"  {text}\n")


def test_the_summary_of_several_seeds_has_their_range(run: Run, files: Path) -> None:
    one, two = (simulate(run, *PROFILES, "--seeds", seeds).output.splitlines() for seeds in ("1", "2"))

    assert one[0].startswith("2 nodes, 16 cards; the mean of 1 seed;")
    assert two[0].startswith("2 nodes, 16 cards; the mean of 2 seeds;")
    assert not any("–" in line for line in one)
    assert ["–" in line for line in two[3:5]] == [True, True]


def test_pods_that_were_never_placed_are_counted_by_reason_the_most_first(run: Run, files: Path) -> None:
    rows = ("0,9,1,nvidia.com/gpu=9", "0,9,3,cpu=999", "1,9,2,cpu=999;memory=1Mi", "1,9,1,nvidia.com/gpu=1")
    (files / "trace.csv").write_text(lines(*rows, header="arrival,duration,replicas,requests"))

    for seeds in ("1", "2"):
        text = simulate(run, "--scheduler-profile", "default", "--seeds", seeds).output.splitlines()

        shown = text[text.index("Never placed, and why:") + 2 :]
        assert [each.split()[:3] for each in shown] == [["built-in", "default", "5"], ["built-in", "default", "1"]]
        assert "Insufficient cpu" in shown[0]
        assert "Insufficient nvidia.com/gpu" in shown[1]


def test_no_reason_is_printed_if_all_pods_are_placed(run: Run, files: Path) -> None:
    assert "Never placed" not in simulate(run, "--scheduler-profile", "default").output


@pytest.mark.parametrize(
    ("column", "heading", "values", "shown"),
    [
        ("requests", "By the cards that a pod requests:", [f"nvidia.com/gpu={n}" for n in (8, 1, 2)], ["1", "2", "8"]),
        ("annotations", "By workload type:", ["workload-type=training", "workload-type=inference", ""], None),
    ],
)
def test_waits_have_a_row_for_each_value_in_order(
    run: Run, files: Path, column: str, heading: str, values: list[str], shown: list[str] | None
) -> None:
    more = ",cpu=1" if column == "annotations" else ""
    header = f"arrival,duration,{column}" + (",requests" if more else "")
    (files / "trace.csv").write_text(lines(*(f"0,1,{value}{more}" for value in values), header=header))

    text = simulate(run, "--scheduler-profile", "default").output.splitlines()

    rows = [line.split() for line in text[text.index(heading) + 2 :]]
    assert [row[2] for row in rows[:3]] == (shown or ["-", "inference", "training"])


def test_json_has_a_line_for_each_run(run: Run, files: Path) -> None:
    found = [json.loads(line) for line in simulate(run, *PROFILES, "--seeds", "2", "-o", "json").output.splitlines()]

    assert [(each["policy"], each["profile"], each["seed"]) for each in found] == [
        ("built-in", profile, seed) for profile in ("default", "binpack") for seed in (1, 2)
    ]
    assert found[0]["waits"][0] == {"by": "all", "value": "", "pods": 7, "never_placed": 0, "p50": 0, "p99": 24}


def test_runs_in_one_process_equal_those_in_two(run: Run, files: Path) -> None:
    alone, together = (simulate(run, *PROFILES, "--processes", count, "-o", "json").output for count in ("1", "2"))

    assert alone == together
    assert alone


def test_policies_are_compared(run: Run, files: Path) -> None:
    document = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    types = {"training": {"nodeUsage": {"allow": ["hybrid"]}}}
    for name, spec in (("all.yaml", {}), ("hybrid.yaml", {"workloadTypes": types})):
        Path(name).write_text(json.dumps(document | {"metadata": {"name": "p"}, "spec": spec}))

    output = simulate(run, "--policy", "all.yaml", "--policy", "hybrid.yaml", "-o", "json").output

    assert {each["policy"]: each["placed"] for each in map(json.loads, output.splitlines())} == {
        "all.yaml": 7,
        "hybrid.yaml": 0,
    }


def test_the_plot_has_a_line_for_each_configuration(run: Run, files: Path) -> None:
    simulate(run, *PROFILES, "--plot", "out.svg")

    plot = ET.fromstring(Path("out.svg").read_text())
    texts = [each.text for each in plot.iter("{http://www.w3.org/2000/svg}text")]
    assert len([*plot.iter("{http://www.w3.org/2000/svg}polyline")]) == 2
    assert any(text and text.startswith("built-in, binpack: ") for text in texts)


def test_denied_pods_are_a_warning(run: Run, files: Path) -> None:
    wrong = "0,1,cpu=1,workload-type=trainning;gpu-memory=80GB"
    Path("trace.csv").write_text(lines(wrong, "0,1,cpu=1,", header=_HEADER))

    errors = simulate(run).errors
    assert "Warning: policy built-in denies 1 of 2 pods: " in errors
    assert '"training"; metadata.annotations[maip.mxsf.io/gpu-memory]: ' in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--scheduler-profile", "best"),
            '--scheduler-profile: Unsupported value: "best"; supported values: "default"',
        ),
        (("--policy", "missing.yaml"), '--policy: Invalid value: "missing.yaml"; cannot be read: No such file'),
        (("--policy", "trace.csv"), "trace.csv: "),
        (("--trace", "missing.csv"), '--trace: Invalid value: "missing.csv"; cannot be read: No such file'),
        (("--cluster", "trace.csv"), 'trace.csv: Invalid value: "arrival,duration'),
        (("--plot", "missing/out.svg"), '--plot: Invalid value: "missing/out.svg"; cannot be written: No such file'),
        (("--plot", "out.png"), "Invalid value for '--plot': \"out.png\" must end in .svg: the plot is an SVG"),
        (("--span", "day"), "Invalid value for '--span': \"day\" must be a duration such as 90s, 30m or 24h"),
    ],
)
def test_bad_input_is_one_line(run: Run, files: Path, arguments: tuple[str, ...], message: str) -> None:
    before = sorted(files.iterdir())

    found = simulate(run, *arguments)

    assert (found.code, found.output) == (2, "")
    assert f"Error: {message}" in found.errors.splitlines()[-1]
    assert sorted(files.iterdir()) == before


def test_a_hole_in_a_trace_names_line_and_column(run: Run, files: Path) -> None:
    Path("trace.csv").write_text(lines("0,1,cpu=1,", "5,,,", header=_HEADER))

    assert simulate(run).errors == "Error: trace.csv, line 3, column requests: Required value: must not be empty\n"


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_trace_of_which_nothing_arrives_is_one_line(run: Run, files: Path, processes: str) -> None:
    arguments = ("--arrivals", "random", "--load", "1", "--span", "1ms", "--seeds", "2", "--processes", processes)

    found = simulate(run, *arguments)

    message = 'Error: --trace: Invalid value: "no pod"; no pod of the trace arrives; check --load and --span\n'
    assert (found.code, found.errors) == (2, message)


@pytest.fixture
def recorded(files: Path) -> Path:
    """Return the folder with an audit file of three pods of a GPU each, the second one refused."""
    pods = (
        make_pod("trainer").namespace("team-a").annotate(TYPE, value).gpu(1).obj()
        for value in ("training", "trainning", "training")
    )
    write_recorded(files / "audit.jsonl", (json.dumps(review(pod)).encode() for pod in pods))
    return files


@pytest.mark.parametrize("rotated", [1, 2])
def test_an_audit_file_and_its_rotated_files_are_a_trace_of_the_pods_that_were_admitted(
    run: Run, recorded: Path, rotated: int
) -> None:
    file = recorded / "audit.jsonl"
    records = file.read_bytes().splitlines(keepends=True)
    file.with_name("audit.jsonl.1").write_bytes(b"".join(records[:rotated]))
    file.write_bytes(b"".join(records[rotated:]))

    done = run("simulate", "--trace", "audit.jsonl", "--cluster", "cluster.json", "--lifetime", "1h", "-o", "json")
    found = json.loads(done.output)

    assert (found["pods"], found["placed"], found["denied"]) == (2, 2, 0)
    assert [each["value"] for each in found["waits"] if each["by"] == "cards"] == ["1"]


def without_pods(folder: Path) -> None:
    (folder / "audit.jsonl.pods").unlink()


def cut_off(folder: Path) -> None:
    os.truncate(folder / "audit.jsonl", (folder / "audit.jsonl").stat().st_size - 10)


def without_time(folder: Path) -> None:
    file = folder / "audit.jsonl"
    file.write_bytes(file.read_bytes().replace(b'{"time":"2', b'{"time":"?'))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_pods, "must have the record of a pod that was admitted; 3 × record whose pod is not in FILE.pods"),
        (cut_off, "audit.jsonl:3: Invalid value"),
        (without_time, "audit.jsonl:1: Invalid value"),
    ],
)
def test_an_audit_file_with_a_hole_is_one_line(
    run: Run, recorded: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(recorded)
    done = run("simulate", "--trace", "audit.jsonl", "--cluster", "cluster.json")

    assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1)
    assert message in done.errors
    # The flag of other commands.
    assert "--skip-invalid" not in done.errors


def test_a_compressed_trace_is_one_line(run: Run, files: Path) -> None:
    (files / "log.gz").write_bytes(gzip.compress(b"{}"))
    done = run("simulate", "--trace", "log.gz", "--cluster", "cluster.json")

    assert done.code == 2
    assert "is compressed; pipe it: `zcat log.gz |" in done.errors


def test_audit_records_of_standard_input_lack_their_pods(recorded: Path) -> None:
    records = (recorded / "audit.jsonl").read_bytes()
    done = run_here("simulate", "--trace", "-", "--cluster", "cluster.json", stdin=records)

    assert done.code == 2
    assert "Error: --trace: Forbidden: audit records need the FILE.pods beside them" in done.errors


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(pipe, "--plot")
    write_atomically(pipe, "--plot", lambda file: file.write(b"svg"))

    assert (os.read(reader, 10), pipe.is_fifo()) == (b"svg", True)
    os.close(reader)


def test_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", "--plot", lambda file: file.write(b"svg"))

    assert ((tmp_path / "link").is_symlink(), (tmp_path / "file").read_bytes()) == (True, b"svg")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "out.svg"
    output.write_text("old")

    def write(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InvalidInput, match=r"--plot: Invalid value: .*; cannot be written: No space left on device"):
        write_atomically(output, "--plot", write)

    assert [each.name for each in tmp_path.iterdir()] == ["out.svg"]
    assert output.read_text() == "old"
