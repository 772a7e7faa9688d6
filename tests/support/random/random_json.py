"""Random JSON values, and documents with one in a random place."""

from typing import Any

from hypothesis import strategies as st

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def replace_somewhere(value: Any, data: st.DataObject) -> None:
    """Put a random value somewhere into `value`."""
    while True:
        if not isinstance(value, dict | list) or not value:
            return
        key = data.draw(st.sampled_from(sorted(value)) if isinstance(value, dict) else st.integers(0, len(value) - 1))
        if not isinstance(value[key], dict | list) or not value[key] or data.draw(st.integers(0, 4)) == 0:
            value[key] = data.draw(json_values)
            return
        value = value[key]
