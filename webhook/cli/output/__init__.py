"""The output of commands: tables, colours, progress, logs and closed streams."""
