"""The console and its report, in chromium."""
