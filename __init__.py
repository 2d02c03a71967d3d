"""radixlm: LLM programs over a radix-tree KV cache with exact grammars.

The flat list of public names. Each is imported when it is first used, so `import radixlm` is cheap and loads no third-party package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        Aborted,
        ConfigError,
        ContextOverflow,
        EngineDied,
        GrammarError,
        InvariantError,
        ModelError,
        OutputError,
        Overloaded,
        ProgramError,
        PromptError,
        RadixError,
        SamplingError,
        ServiceError,
        TimedOut,
        UnknownVariable,
        UserError,
    )
    from .lang.backend import Backend, set_default_backend
    from .lang.extract import extract, extract_files
    from .lang.function import Program, function
    from .lang.live_state import LiveState
    from .lang.news import StreamEvent
    from .lang.primitives.gen import gen
    from .lang.primitives.media import image, video
    from .lang.primitives.roles import (
        assistant,
        assistant_begin,
        assistant_end,
        system,
        system_begin,
        system_end,
        user,
        user_begin,
        user_end,
    )
    from .lang.primitives.select import (
        greedy_token_selection,
        select,
        token_length_normalized,
        unconditional_likelihood_normalized,
    )
    from .lang.primitives.text import text
    from .lang.primitives.typed_gen import gen_int, gen_string
    from .lang.reasoning import separate_reasoning
    from .lang.recording import RecordingBackend, ReplayBackend
    from .lang.state import State
    from .lang.testing import Answer, ScriptedBackend
    from .lang.variable import Meta
    from .offline import Engine
    from .runtime.remote.endpoints import Anthropic, OpenAI, RuntimeEndpoint

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "Answer",
    "Anthropic",
    "Backend",
    "ConfigError",
    "ContextOverflow",
    "Engine",
    "EngineDied",
    "GrammarError",
    "InvariantError",
    "LiveState",
    "Meta",
    "ModelError",
    "OpenAI",
    "OutputError",
    "Overloaded",
    "Program",
    "ProgramError",
    "PromptError",
    "RadixError",
    "RecordingBackend",
    "ReplayBackend",
    "RuntimeEndpoint",
    "SamplingError",
    "ScriptedBackend",
    "ServiceError",
    "State",
    "StreamEvent",
    "TimedOut",
    "UnknownVariable",
    "UserError",
    "assistant",
    "assistant_begin",
    "assistant_end",
    "extract",
    "extract_files",
    "function",
    "gen",
    "gen_int",
    "gen_string",
    "greedy_token_selection",
    "image",
    "select",
    "separate_reasoning",
    "set_default_backend",
    "system",
    "system_begin",
    "system_end",
    "text",
    "token_length_normalized",
    "unconditional_likelihood_normalized",
    "user",
    "user_begin",
    "user_end",
    "video",
]

_HOMES = {
    "Answer": "lang.testing",
    "Anthropic": "runtime.remote.endpoints",
    "Backend": "lang.backend",
    "Engine": "offline",
    "LiveState": "lang.live_state",
    "Meta": "lang.variable",
    "OpenAI": "runtime.remote.endpoints",
    "Program": "lang.function",
    "RecordingBackend": "lang.recording",
    "ReplayBackend": "lang.recording",
    "RuntimeEndpoint": "runtime.remote.endpoints",
    "ScriptedBackend": "lang.testing",
    "State": "lang.state",
    "StreamEvent": "lang.news",
    "extract": "lang.extract",
    "extract_files": "lang.extract",
    "function": "lang.function",
    "gen": "lang.primitives.gen",
    "gen_int": "lang.primitives.typed_gen",
    "gen_string": "lang.primitives.typed_gen",
    "greedy_token_selection": "lang.primitives.select",
    "image": "lang.primitives.media",
    "select": "lang.primitives.select",
    "separate_reasoning": "lang.reasoning",
    "set_default_backend": "lang.backend",
    "text": "lang.primitives.text",
    "token_length_normalized": "lang.primitives.select",
    "unconditional_likelihood_normalized": "lang.primitives.select",
    "video": "lang.primitives.media",
}
_FOLDERS = frozenset({"errors", "grammar", "kernels", "lang", "radix_cache", "runtime"})


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    is_role = name.split("_")[0] in {"system", "user", "assistant"}
    home = "lang.primitives.roles" if is_role else _HOMES.get(name, "errors")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_FOLDERS, "__version__"})
