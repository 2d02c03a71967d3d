"""Package lang."""
