"""What `radixlm bench` measures: the engine, single steps, and programs. Nothing is imported until something is measured."""
