"""The audit files that a command line names, and the head files beside them."""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path, PurePath

from webhook.audit.chain import Verification
from webhook.audit.chain import verify as verify_files
from webhook.audit.head import SUFFIX, ChainHead, head_path, read_head
from webhook.audit.query import STANDARD_INPUT, Sources, rotated_files
from webhook.kube.field import InvalidInput, invalid, required

DEFAULT_FILE = "audit.jsonl"


def verify_audit_files(files: tuple[str, ...], heads: tuple[str, ...], *, partial: bool) -> Verification:
    """Verify `files`, or the audit file of this folder, with the head files beside them."""
    # Read before the records: a running server writes the record first, then the head.
    kept = _kept_heads(files or [DEFAULT_FILE, *rotated_files(Path(DEFAULT_FILE))])
    missing = _missing_logs(kept)
    names = [name for name in named(files, or_missing=missing) if name not in missing]
    with Sources(names) as sources:
        lines = chain(sources.lines(), ((name, ()) for name in missing))
        return verify_files(lines, heads, kept_heads=kept, partial=partial)


def named(files: tuple[str, ...], or_missing: Collection[str] = ()) -> list[str]:
    """Return the audit files that `files` names. The result is empty only if all logs are in `or_missing`.

    Raises:
        InvalidInput: there is no audit file.
    """
    # `audit.jsonl*` also matches the head file.
    names = [name for name in files if not name.endswith(SUFFIX)]
    if not files:
        names = rotated_files(Path(DEFAULT_FILE))
    if or_missing:
        return names
    if files and not names:
        raise InvalidInput([invalid("FILE", ", ".join(files), "holds no records; name the audit file as well")])
    if not names:
        raise InvalidInput(
            [required("FILE", f"there is no {DEFAULT_FILE} in this folder; name audit files, or - for standard input")]
        )
    return names


def _kept_heads(names: Iterable[str]) -> dict[str, ChainHead]:
    """Return the contents of the head files that `names` holds, and of those beside the audit files in `names`.

    The head of a log also counts as beside its rotated files if the log itself does not exist.
    """
    paths = {path for name in names if name != STANDARD_INPUT for path in _head_paths(name)}
    kept: dict[str, ChainHead] = {}
    for path in sorted(paths):
        try:
            head = read_head(path)
        except (OSError, ValueError) as error:
            detail = "must be as the server wrote it; delete it to verify without it"
            raise InvalidInput([invalid(str(path), str(error), detail)]) from error
        if head:
            kept[str(path)] = head
    return kept


def _head_paths(name: str) -> list[Path]:
    if name.endswith(SUFFIX):
        return [Path(name)]
    base, _, number = name.rpartition(".")
    is_left_over = PurePath(base).name and number.isdecimal() and not Path(base).exists()
    return [head_path(Path(name)), *([head_path(Path(base))] if is_left_over else [])]


def _missing_logs(kept: Mapping[str, ChainHead]) -> list[str]:
    """Return the logs that do not exist although a head counts their records."""
    logs = [path.removesuffix(SUFFIX) for path in kept]
    return [log for log in logs if not Path(log).exists()]
