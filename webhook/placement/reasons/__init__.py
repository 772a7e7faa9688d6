"""The texts about a placement: reasons, warnings and exemptions."""
