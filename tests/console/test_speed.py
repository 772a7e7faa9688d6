"""A large cluster is drawn by the part that is on the screen, in a time that a person does not notice."""

from collections.abc import Callable

from tests.console.browser import TestBrowser
from tests.console.figures import measure

# Five times the figures of docs/console.md, because the machine of a test can be busy.
_FIRST_MILLISECONDS, _UPDATE_MILLISECONDS = 5 * 1500, 5 * 200


def test_five_thousand_nodes_are_drawn_and_updated_in_time(
    browser: TestBrowser, record_property: Callable[[str, object], None]
) -> None:
    found = measure(browser, 5000)

    record_property("figures", found)
    print(found)
    assert 0 < found.nodes_drawn < 5000
    assert found.first_milliseconds <= _FIRST_MILLISECONDS
    assert found.update_milliseconds <= _UPDATE_MILLISECONDS
