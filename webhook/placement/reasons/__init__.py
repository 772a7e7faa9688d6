"""The texts about a placement: reasons, warnings, exemptions."""
