"""`demo`: run six examples."""

import re
from pathlib import Path

from tests.support.command import run_alone
from webhook.audit.record import parse_line


def test_the_demo_prints_six_examples_and_keeps_the_audit_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"

    outcome = run_alone("demo", "--audit", log)

    assert (outcome.code, outcome.errors) == (0, "")
    assert re.findall(r"^(\d)\. ", outcome.output, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]
    assert str(log) in outcome.output
    assert "\x1b" not in outcome.output

    records = [parse_line(line) for line in log.read_bytes().splitlines()]
    assert [record.outcome for record in records] == ["Patched"] * 4 + ["Denied", "Bypassed"]
    verdicts = [record.placement.verdict for record in records if record.placement]
    assert verdicts == ["Feasible", "Feasible", "Feasible", "Infeasible"]
    assert "The sample cluster: " in outcome.output
    assert "outcomes  1 Bypassed, 1 Denied, 4 Patched" in outcome.output
    assert "verdicts  3 Feasible, 1 Infeasible" in outcome.output
    assert f"read on   .venv/bin/placement-webhook audit show {records[0].decision} {log}\n" in outcome.output
    assert f"          .venv/bin/placement-webhook audit verify {log}\n" in outcome.output
    absent = "scheduler volcano: no sign that it runs: no API group scheduling.volcano.sh"
    assert [absent in "".join(record.warnings) for record in records] == [True, False, True, True, False, False]
    assert absent in outcome.output
    assert len(re.findall(r"^   verdict   ", outcome.output, re.MULTILINE)) == len(verdicts)
    assert len(re.findall(r"^   why       ", outcome.output, re.MULTILINE)) == verdicts.count("Feasible")
    for record in records:
        if record.placement and record.placement.node:
            assert f"Feasible on {record.placement.node}" in outcome.output
        for rule in record.rules:
            for edit in rule.edits:
                assert edit in outcome.output
