"""Audit records of a few admissions."""

from functools import partial
from pathlib import Path

import pytest

from tests.support.programs.audit_records import INFEASIBLE, chain_lines, make_record, write_lines
from tests.support.programs.command import Run, run_here

RECORDS = [
    make_record(0, duration_ms=0.41),
    make_record(1, duration_ms=2.5, workload_type="inference", namespace="team-b", dry_run=True, placement=INFEASIBLE),
    make_record(
        2,
        duration_ms=0.2,
        outcome="Denied",
        error='metadata.annotations[maip.mxsf.io/workload-type]: Unsupported value: "trainng"; supported values: …',
        workload_type=None,
        placement=None,
        patch=(),
        rules=(),
    ),
    make_record(
        3,
        duration_ms=0.1,
        outcome="Bypassed",
        error="no workload type",
        workload_type=None,
        placement=None,
        patch=(),
        rules=(),
        name="web-",
    ),
]


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `placement-webhook audit …` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return partial(run_here, "audit")


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """The lines of audit.jsonl in the folder where commands run."""
    lines = chain_lines(RECORDS)
    write_lines(tmp_path / "audit.jsonl", lines)
    return lines
