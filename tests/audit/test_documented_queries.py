"""The DuckDB commands of docs/audit.md read audit records."""

import re
from pathlib import Path

import duckdb
import pytest

from tests.docs.markdown import ROOT, blocks
from tests.support.programs.audit_records import INFEASIBLE, chain_lines, make_record, write_lines

QUERIES = [
    query
    for block in blocks(ROOT / "docs" / "audit.md", "console")
    for query in re.findall(r'duckdb -c "([^"]+)"', block.text)
]


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records with and without what is optional, in the folder where the queries run."""
    monkeypatch.chdir(tmp_path)
    records = [
        make_record(0),
        make_record(1, outcome="Denied", placement=INFEASIBLE, namespace="team-b", patch=(), rules=()),
        make_record(2, outcome="Bypassed", placement=None, owner=None, policy=None, kind="Deployment"),
        make_record(3),
    ]
    return write_lines(tmp_path / "audit.jsonl", chain_lines(records))


def test_the_pods_are_counted_by_namespace_outcome_and_verdict() -> None:
    assert duckdb.sql(QUERIES[0]).fetchall()[0] == ("team-a", "Patched", "Feasible", 2)


def test_records_without_a_placement_are_counted_too(log: Path) -> None:
    write_lines(log, chain_lines([make_record(0, placement=None)]))

    assert duckdb.sql(QUERIES[0]).fetchall() == [("team-a", "Patched", None, 1)]


def test_the_parquet_file_has_the_records() -> None:
    duckdb.sql(QUERIES[1])

    found = duckdb.sql("SELECT outcome, patch[3].path FROM 'audit.parquet' ORDER BY sequence").fetchall()
    assert found[0] == ("Patched", "/spec/schedulerName")
    assert [outcome for outcome, _ in found] == ["Patched", "Denied", "Bypassed", "Patched"]
