"""What a cluster could take, and what another policy or profile would do: `nodes`, `capacity`, `replay`, `simulate`."""
