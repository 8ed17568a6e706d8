"""The `angd` command."""
