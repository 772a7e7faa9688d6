"""How commands print: tables, colours, progress, logs and closed streams."""
