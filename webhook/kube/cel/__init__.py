"""CEL expressions of device selectors, evaluated at a bounded cost."""
