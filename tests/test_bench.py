"""`make bench` runs, with every kind of view that needs no control plane."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.running.replicas import decisions, recorded, verified
from bench.soak import Sample, late_growth

_ROWS = ("injecting: one template", "30 nodes: bursts that take room", "live view, 1,000 nodes: bursts that take room")


@pytest.mark.slow
def test_each_row_has_the_cost_of_a_pod() -> None:
    selected = [f"--only={row}" for row in _ROWS]
    sizes = ["--nodes=30", "--pods-per-node=1", "--requests=20", "--turns=1", "--pods-per-second=1000"]

    result = CliRunner().invoke(main, [*selected, *sizes])

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
