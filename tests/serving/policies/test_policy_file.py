"""The policy file is followed: changed content is validated whole, then in force whole; bad content changes nothing."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.servers.server import Clock, policies_of
from webhook.policy.loader import parse_policy
from webhook.runtime.metrics import Metrics
from webhook.serving.policies.in_force import Policies
from webhook.serving.policies.policy_file import MAX_POLICY_BYTES, PolicyFile


def text(name: str, spec: str = "{}") -> bytes:
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy"
    return f"{head}\nmetadata: {{name: {name}}}\nspec: {spec}\n".encode()


@dataclass(frozen=True, slots=True)
class Followed:
    """A policy file that is followed."""

    path: Path
    file: PolicyFile
    policies: Policies
    metrics: Metrics
    runner: asyncio.Runner
    clock: Clock

    @property
    def name(self) -> str:
        """The name of the policy in force."""
        return self.policies.current().name

    def count(self, result: str) -> float | None:
        """Return how many contents had this result."""
        return self.metrics.registry.get_sample_value("placement_webhook_policy_reloads_total", {"result": result})

    def is_rejected(self) -> bool:
        """Return whether the metric says that the newest content is not in force."""
        return self.metrics.registry.get_sample_value("placement_webhook_policy_rejected") == 1

    def polled(self, times: int = 2, seconds: float = 5.0) -> str:
        """Poll so many times at this interval; return the name of the policy in force."""
        for _ in range(times):
            self.clock.seconds += seconds
            self.runner.run(self.file.poll())
        return self.name

    def reload(self) -> str:
        """Read the file at once; return the name of the policy in force."""
        self.runner.run(self.file.reload())
        return self.name


Story = Callable[[Followed], None]


def follow(path: Path, story: Story) -> list[Any]:
    """Follow the file `path` during `story`; return the log."""
    metrics, content = Metrics(), path.read_bytes()
    with structlog.testing.capture_logs() as logs, asyncio.Runner() as runner:
        policies = policies_of(parse_policy(content, str(path)), metrics)
        clock = Clock()
        file = PolicyFile(path, content, policies, parse_policy, clock)
        story(Followed(path, file, policies, metrics, runner, clock))
    return logs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "policy.yaml"
    found.write_bytes(text("first"))
    return found


def in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def renamed(path: Path, content: bytes) -> None:
    staged = path.with_name("staged")
    staged.write_bytes(content)
    staged.replace(path)


def swapped(path: Path, content: bytes) -> None:
    """Change the file as the kubelet changes a mounted ConfigMap."""
    folder = path.parent / f"..{len(list(path.parent.iterdir()))}"
    folder.mkdir()
    (folder / path.name).write_bytes(content)
    for link, target in ((path.parent / "..data", folder.name), (path, f"..data/{path.name}")):
        staged = link.with_name("..staged")
        staged.symlink_to(target)
        staged.replace(link)


@pytest.mark.parametrize("write", [in_place, renamed, swapped])
def test_changed_content_is_in_force_at_the_second_poll(path: Path, write: Callable[[Path, bytes], None]) -> None:
    def story(followed: Followed) -> None:
        for name in ("second", "third"):
            write(path, text(name))
            assert followed.polled(1) != name
            assert followed.polled(1) == name
        assert followed.polled(5) == "third"
        assert (followed.count("applied"), followed.count("rejected")) == (2, 0)
        info = followed.policies.current()
        labels = {"name": "third", "revision": info.revision}
        assert followed.metrics.registry.get_sample_value("placement_webhook_policy_info", labels) == 1

    logs = follow(path, story)
    assert [log["event"] for log in logs] == ["policy applied"] * 2


def test_same_size_and_time_do_not_hide_a_change(path: Path) -> None:
    def story(followed: Followed) -> None:
        before = path.stat()
        path.write_bytes(text("other"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert followed.polled() == "other"

    follow(path, story)


@pytest.mark.parametrize("write", [in_place, renamed])
def test_content_shorter_than_that_in_force_may_be_a_part_though_a_rejected_one_was_shorter(
    path: Path, write: Callable[[Path, bytes], None]
) -> None:
    """A file that was renamed to the path is whole."""

    def story(followed: Followed) -> None:
        in_place(path, b"nonsense")
        assert (followed.polled(), followed.is_rejected()) == ("first", True)
        write(path, text("s"))
        assert followed.polled(2, seconds=1.0) == ("first" if write is in_place else "s")
        assert followed.polled(3, seconds=1.0) == ("first" if write is in_place else "s")
        assert followed.polled(1, seconds=1.0) == "s"
        assert not followed.is_rejected()
        # Longer than the content in force now, so it is whole.
        in_place(path, text("th"))
        assert followed.polled(2, seconds=1.0) == "th"
        in_place(path, text("x"))
        assert followed.polled(4, seconds=1.0) == "th"
        # The same content in another file is whole.
        renamed(path, text("x"))
        assert [followed.polled(1, seconds=0.1) for _ in range(2)] == ["th", "x"]

    follow(path, story)


def test_a_part_of_a_file_that_is_being_written_is_not_used(path: Path) -> None:
    def story(followed: Followed) -> None:
        for end in range(60, 110, 10):
            path.write_bytes(text("second", "{queueing: kueue}")[:end])
            assert followed.polled(1) == "first"
        path.write_bytes(text("second", "{queueing: kueue}"))
        assert followed.polled() == "second"
        assert (followed.count("applied"), followed.count("rejected")) == (1, 0)

    follow(path, story)


@pytest.mark.parametrize("end", [b"", b"# longer\n"], ids=["of the same length", "longer"])
def test_a_file_that_does_not_shrink_is_in_force_at_the_second_poll(path: Path, end: bytes) -> None:
    path.write_bytes(text("first"))

    def story(followed: Followed) -> None:
        path.write_bytes(text("other") + end)
        assert followed.polled(1, seconds=1) == "first"
        assert followed.polled(1, seconds=1) == "other"

    follow(path, story)


@pytest.mark.parametrize("write", [renamed, swapped])
def test_a_shorter_policy_in_another_file_is_in_force_at_the_second_poll(
    path: Path, write: Callable[[Path, bytes], None]
) -> None:
    path.write_bytes(text("first", "{queueing: kueue}"))

    def story(followed: Followed) -> None:
        write(path, text("first"))
        assert followed.polled(2, seconds=1) == "first"
        assert followed.count("applied") == 1

    follow(path, story)


def test_a_file_that_shrinks_counts_once_it_was_stable_for_five_seconds(path: Path) -> None:
    """A part of a file that a slow writer writes can be a valid policy."""
    path.write_bytes(text("first", "{queueing: kueue}"))

    def story(followed: Followed) -> None:
        for end in (text("first"), text("first", "{}  ")):
            path.write_bytes(end)
            followed.polled(5, seconds=1)
            assert followed.count("applied") == 0
        followed.polled(1, seconds=1)
        assert (followed.count("applied"), followed.policies.current().spec.queueing) == (1, "scheduler")

    follow(path, story)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"{", "must be YAML or JSON", id="syntax"),
        pytest.param(b"", "must hold one PlacementPolicy", id="empty"),
        pytest.param(text("bad", "{queueing: nobody}"), "spec.queueing: Unsupported value", id="value"),
        pytest.param(b"\xff\xfe\x00", "must be YAML or JSON in UTF-8", id="binary"),
        pytest.param(b"#" * (MAX_POLICY_BYTES + 1), f"at most {MAX_POLICY_BYTES} bytes", id="too large"),
        pytest.param(None, "cannot be read: No such file or directory", id="gone"),
    ],
)
def test_bad_content_leaves_the_last_good_policy_in_force(path: Path, content: bytes | None, error: str) -> None:
    def story(followed: Followed) -> None:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert followed.polled(5) == "first"
        assert (followed.count("applied"), followed.count("rejected")) == (0, 1)
        assert followed.is_rejected()
        assert error in followed.policies.note()
        described = followed.policies.describe()
        assert (described["name"], described["policy"]["metadata"]["name"]) == ("first", "first")
        assert error in described["rejected"]["errors"][0]

        path.write_bytes(text("second"))
        assert followed.polled() == "second"
        assert not followed.is_rejected()
        assert followed.policies.note() == ""
        assert followed.policies.describe()["rejected"] is None

    logs = follow(path, story)
    assert [(log["log_level"], log["event"]) for log in logs] == [
        ("error", "the newest policy is rejected and the last good one stays in force"),
        ("info", "policy applied"),
    ]
    assert error in logs[0]["errors"][0]


def test_return_to_the_content_in_force_ends_a_rejection(path: Path) -> None:
    def story(followed: Followed) -> None:
        before = followed.policies.current()
        path.write_bytes(b"{")
        followed.polled()
        path.write_bytes(text("first"))
        followed.polled()
        assert not followed.is_rejected()
        assert followed.policies.current() is before
        assert followed.count("applied") == 0

    follow(path, story)


def test_reload_at_once_needs_no_second_poll_and_judges_again(path: Path) -> None:
    def story(followed: Followed) -> None:
        path.write_bytes(text("second"))
        assert followed.reload() == "second"
        path.write_bytes(b"{")
        for _ in range(2):
            followed.reload()
        assert followed.count("rejected") == 2

    follow(path, story)


@pytest.mark.parametrize(
    ("spec", "is_needed"),
    [
        ("{keyDomain: example.com}", True),
        (
            "{workloadKinds: [{group: a.com, kind: Run, resource: runs, templates: [{path: spec.template}]}]}",
            True,
        ),
        ("{queueing: kueue}", False),
    ],
)
def test_a_policy_that_needs_other_rules_of_the_api_server_says_so(path: Path, spec: str, is_needed: bool) -> None:
    def story(followed: Followed) -> None:
        path.write_bytes(text("second", spec))
        assert followed.polled() == "second"

    logs = follow(path, story)
    assert any("certs register --policy" in log["event"] for log in logs) == is_needed
