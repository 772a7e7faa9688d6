"""Plan capacity and compare policies and profiles: the commands `nodes`, `capacity`, `replay` and `simulate`."""
