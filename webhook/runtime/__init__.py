"""The process: settings, metrics, memory."""
