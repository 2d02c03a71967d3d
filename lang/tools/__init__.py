"""Python functions as tools of a model: what they are called with, how the model is told, how its calls come back as Python values.

    signature.py   a function -> name, description, schema of its arguments     docstrings.py  what a docstring says of each parameter
    toolbox.py     several tools -> the constraint of an output, its calls, the text that tells the model of them
    calls.py       one call, all calls of an output                             results.py     a result as text for the model
    execution.py   carrying calls out: a bounded pool of threads, or the asyncio loop of the program

The text format is `runtime.tools`', which the HTTP server uses too.
"""

from __future__ import annotations

from .calls import Call, ToolReply, call_text
from .results import result_text
from .signature import FunctionTool, tool_of
from .toolbox import Toolbox, describe_tools

__all__ = [
    "Call",
    "FunctionTool",
    "ToolReply",
    "Toolbox",
    "call_text",
    "describe_tools",
    "result_text",
    "tool_of",
]
