"""What the rights of deploy/ allow, and what the hardening denies."""
