"""Pauses after failures, and between changes that another client keeps undoing."""

import pytest

from certs.controller.loop import WritePacing, backoff_seconds


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 0.5, 1.0), (2, 1.0, 2.0), (4, 4.0, 8.0), (9, 15.0, 30.0), (5000, 15.0, 30.0)]
)
def test_pauses_double_up_to_half_a_minute_and_are_half_random(failures: int, least: float, most: float) -> None:
    assert (backoff_seconds(failures, 0.0), backoff_seconds(failures, 1.0)) == (least, most)


def test_the_changes_of_a_rotation_are_not_slowed_down() -> None:
    pacing = WritePacing()
    for at in range(12):
        pacing.note(at)
    assert pacing.pause_seconds(12) == 0.0


def test_a_fight_is_slowed_down_to_a_change_in_three_seconds_and_forgotten_after_a_minute() -> None:
    pacing, now, pauses = WritePacing(), 0.0, []
    for _ in range(60):
        pacing.note(now)
        pauses.append(pacing.pause_seconds(now))
        now += pauses[-1]
    assert pauses == [*([0.0] * 12), *([3.0] * 48)]
    assert pacing.pause_seconds(now + 60) == 0.0
