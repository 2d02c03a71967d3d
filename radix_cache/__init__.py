"""The prefix cache: a radix tree over token ids in pages. See README.md; import from `radix_cache.cache`."""
