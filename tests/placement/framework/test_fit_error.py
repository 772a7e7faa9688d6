"""The message about a pod that no node can take."""

from webhook.placement.framework.fit_error import fit_error


def test_refusal_stands_instead_of_reasons() -> None:
    assert fit_error(3, {"reason": 1}, "pod affinity terms conflict") == (
        "0/3 nodes are available: pod affinity terms conflict."
    )
