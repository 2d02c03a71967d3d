"""Model families: from files on disk to `kernels.ops.DecoderWeights`."""
