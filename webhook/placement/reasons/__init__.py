"""What is said about a placement: reasons, warnings, exemptions."""
