"""Package radix_cache."""
