"""The text of `doctor`: findings by severity, and the list of the checks."""

from webhook.cli.output.terminal import echo, echo_json
from webhook.doctor.check import Check, Diagnosis, Severity

_TITLES = {Severity.ERROR: ("error", "red"), Severity.WARNING: ("warning", "yellow"), Severity.INFO: ("note", "cyan")}


def print_diagnosis(found: Diagnosis) -> None:
    """Print the findings, the errors first, and the number of each severity."""
    for each in found.findings:
        title, colour = _TITLES[each.severity]
        echo(f"{title} [{each.check}] {each.where}", fg=colour)
        echo(f"  {each.what}")
        echo(f"  mend: {each.remedy}")
    for check, count in found.omitted.items():
        echo(f"and {count} more of [{check}]; --check {check} shows no more, mend the first ones")
    counts = {each: sum(finding.severity is each for finding in found.findings) for each in Severity}
    notes = _counted(counts[Severity.INFO], "note") if counts[Severity.INFO] else ""
    checks = _counted(len(found.checks), "check")
    if not (counts[Severity.ERROR] or counts[Severity.WARNING]):
        echo(f"no fault found ({checks})" + (f", {notes}" if notes else ""))
        return
    shown = [_counted(counts[each], _TITLES[each][0]) for each in Severity if counts[each]]
    echo(f"{', '.join(shown)} ({checks})")


def print_checks(checks: tuple[Check, ...], output: str) -> None:
    """Print the checks: the id, the fault that it finds, and what it reads."""
    if output == "json":
        echo_json([_described(each) for each in checks])
        return
    for each in checks:
        echo(each.id, fg="cyan")
        echo(f"  finds: {each.meaning}")
        echo(f"  reads: {', '.join(_reads(each)) or 'what the other checks read'}")


def _described(check: Check) -> dict[str, object]:
    return {"id": check.id, "finds": check.meaning, "remedy": check.remedy, "reads": _reads(check)}


def _reads(check: Check) -> list[str]:
    return sorted(each.title for each in check.needs)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
