"""A large cluster is drawn by the part that is on the screen, in a time that a person does not notice."""

from collections.abc import Callable
from dataclasses import asdict

from tests.console.browser import TestBrowser
from tests.console.figures import measure

# The promise for 5,000 nodes. The assertions are five times that and by processor time: machines of tests are busy.
_FIRST_MILLISECONDS, _UPDATE_MILLISECONDS = 1500, 200


def test_five_thousand_nodes_are_drawn_and_updated_in_time(
    browser: TestBrowser, record_property: Callable[[str, object], None]
) -> None:
    found = measure(browser, 5000)

    record_property("figures", asdict(found))
    assert 0 < found.nodes_drawn < 1500
    assert found.first_page_milliseconds <= 5 * _FIRST_MILLISECONDS
    assert found.update_page_milliseconds <= 5 * _UPDATE_MILLISECONDS
