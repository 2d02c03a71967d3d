"""radixlm: LLM programs over a radix-tree KV cache with exact grammars."""
