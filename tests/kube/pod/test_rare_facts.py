"""Pods without rare facts share one object for each scheduler."""

from webhook.kube.pod.rare_facts import USUAL, RareFacts, usual_of


def test_usual_pods_of_a_scheduler_share_their_facts() -> None:
    assert usual_of("") is USUAL
    assert usual_of("volcano") is usual_of("volcano")
    assert usual_of("volcano") == RareFacts(scheduler="volcano")
