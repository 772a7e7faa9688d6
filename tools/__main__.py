"""Write every generated file."""

from tools import (
    chart,
    custom_resource,
    dashboard,
    picture,
    policy_page,
    prometheus_rule,
    tables,
    webhook_configuration,
)

# The chart copies files of the generators before it.
GENERATORS = (policy_page, tables, custom_resource, webhook_configuration, prometheus_rule, dashboard, chart, picture)
"""Each has `files()`, which returns the content of its files."""


def main() -> None:
    """Write the files."""
    for generator in GENERATORS:
        for path, content in generator.files().items():
            path.write_text(content)


if __name__ == "__main__":
    main()
