"""Package grammar."""
