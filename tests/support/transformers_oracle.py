"""transformers' own instance of a model that radixlm runs, for tests that compare and benches that race."""

from __future__ import annotations

import contextlib
import io
from functools import cache
from unittest.mock import patch

import gguf
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from radixlm.runtime.model_files import ModelFiles


def load_oracle(files: ModelFiles) -> PreTrainedModel:
    """The model in float32, GGUF files through transformers' own reader."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    where = {"gguf_file": files.path.name} if files.kind == "gguf" else {}
    folder = files.path.parent if files.kind == "gguf" else files.path
    with (
        # its GGUF reader prints a progress bar whatever the setting
        contextlib.redirect_stderr(io.StringIO()),
        # it reads the file twice, and makes the same table for each of a model's modules
        patch.object(gguf, "GGUFReader", cache(gguf.GGUFReader)),
        patch.object(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map)),
    ):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
    return model.eval()
