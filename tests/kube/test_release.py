"""The release of a cluster: forms of versions, what older releases lack, and the note about a release."""

import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.release import NEWEST, OLDEST, Change, Release, is_server_version, read_server_version


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("1.36", 36),
        ("v1.36", 36),
        ("v1.36.3", 36),
        ("v1.36.3-eks-1234abc", 36),
        ("v1.35.5+k3s1", 35),
        ("v1.35.1-gke.100", 35),
        ("v1.36.0-rc.1", 36),
        ("v1.37.0", 37),
        ("v1.38.0", 38),
        ("1.9", 9),
    ],
)
def test_a_version_gives_its_release(version: str, minor: int) -> None:
    assert Release.of(version, "--release") == Release(minor, version)


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("", '""'),
        ("latest", '"latest"'),
        ("36", '"36"'),
        ("2.0", '"2.0"'),
        ("v1.", '"v1."'),
        ("v1.36.3 ", '"v1.36.3 "'),
        ("1.36\n", r'"1.36\n"'),
        ("1.٣٤", '"1.٣٤"'),
        ("v1." + "9" * 5, '"v1.99999"'),
        (1.36, "1.36"),
        (None, "null"),
    ],
)
def test_anything_else_is_one_error_that_names_what_is_valid(version: object, shown: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Release.of(version, "--release")

    (error,) = refused.value.errors
    valid = "must be a version of Kubernetes, such as 1.36 or v1.36.3; 1.35 to 1.37 are modelled"
    assert str(error) == f"--release: Invalid value: {shown}; {valid}"


@pytest.mark.parametrize("change", Change)
def test_a_release_has_the_changes_up_to_its_own(change: Change) -> None:
    assert OLDEST < change.since <= NEWEST
    assert [Release(minor).has(change) for minor in (change.since - 1, change.since)] == [False, True]


def test_an_older_release_has_no_change_and_a_newer_one_all() -> None:
    assert not any(Release(OLDEST - 5).has(change) for change in Change)
    assert all(Release(NEWEST + 5).has(change) for change in Change)


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("v1.37.2", ""),
        ("v1.36.2", "release v1.36.2: plugins and messages are those of kube-scheduler 1.36"),
        ("v1.36.3", "release v1.36.3: plugins and messages are those of kube-scheduler 1.36"),
        (
            "v1.30.1",
            "release v1.30.1: plugins and messages are those of kube-scheduler 1.35, the oldest that is modelled",
        ),
        (
            "v1.38.0",
            "release v1.38.0: plugins and messages are those of kube-scheduler 1.37, the newest that is modelled",
        ),
    ],
)
def test_the_note_says_which_release_is_used(version: str, note: str) -> None:
    assert Release.of(version, "").note == note


def test_the_version_is_read_from_what_kubectl_prints() -> None:
    printed = {
        "clientVersion": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"},
        "serverVersion": {"major": "1", "minor": "35+", "gitVersion": "v1.35.5+k3s1"},
    }

    assert is_server_version(printed)
    assert read_server_version(printed) == Release(35, "v1.35.5+k3s1")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"clientVersion": {"gitVersion": "v1.37.2"}}, id="without a server"),
        pytest.param({"kind": "Pod", "serverVersion": {"gitVersion": "v1.35.1"}}, id="an object of another kind"),
    ],
)
def test_other_objects_state_no_release(content: dict[str, object]) -> None:
    assert not is_server_version(content)
