"""The files and the streams that `audit` commands read."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support.programs.command import Outcome, Run, run_here

OTHERS = {
    "a log": (b'{"level":"info"}\nnot JSON\n', '{"level":"info"}'),
    "text": (b"what is this", "what is this"),
    "bytes": (bytes(range(128, 256)), "\ufffd"),
}


class TestAnotherFile:
    """A file without a record is no audit log, in any command."""

    @pytest.mark.parametrize("name", OTHERS)
    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=" ".join)
    def test_is_refused(self, audit: Run, tmp_path: Path, command: list[str], name: str) -> None:
        text, shown = OTHERS[name]
        (tmp_path / "other").write_bytes(text)
        ran = audit(*command, "other")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith(f"Error: other: Invalid value: {json.dumps(shown, ensure_ascii=False)[:-1]}")
        assert ran.errors.endswith("; holds no audit record; give the file of `serve --audit`\n")

    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"]], ids=" ".join)
    def test_on_standard_input_is_refused_at_its_end(self, command: list[str]) -> None:
        ran = run_here("audit", *command, "-", stdin=OTHERS["a log"][0])
        assert ran.code == 2
        assert ran.errors.splitlines()[-1].endswith("; holds no audit record; give the output of `serve --audit`")

    def test_that_is_compressed_names_the_way_to_read_it(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(b"\n".join(lines)))
        ran = audit("list", "audit.jsonl.1.gz")
        assert (ran.code, ran.output) == (2, "")
        assert "is compressed; pipe it: `zcat FILE | placement-webhook audit list -`" in ran.errors


@pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=lambda command: command[0])
class TestAnyCommand:
    def test_without_a_file_says_what_to_give(self, audit: Run, command: list[str]) -> None:
        assert audit(*command) == Outcome(
            2,
            "",
            "Error: FILE: Required value: there is no audit.jsonl in this folder; "
            "name audit files, or - for standard input\n",
        )

    def test_of_a_missing_file_names_it(self, audit: Run, command: list[str]) -> None:
        ran = audit(*command, "absent.jsonl")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: absent.jsonl: Invalid value: "No such file or directory"; ')

    def test_of_a_folder_names_it(self, audit: Run, command: list[str]) -> None:
        ran = audit(*command, ".")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: .: Invalid value: "Is a directory"; ')

    def test_has_help_with_examples(self, audit: Run, command: list[str]) -> None:
        ran = audit(command[0], "--help")
        assert ran.code == 0
        assert f"\n  placement-webhook audit {command[0]} " in ran.output
