"""The `threadline` command."""
