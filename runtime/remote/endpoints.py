"""The remote backends as users make them: `RuntimeEndpoint`, `OpenAI`, `Anthropic`. Names and first arguments are SGLang's.

    engine = radixlm.RuntimeEndpoint("http://gpu-box:8000")
    program.run("...", backend=engine)

Owns the arguments, their defaults and where keys come from (an argument, else the environment); keys go into headers and nowhere else.
"""

from __future__ import annotations

from typing import Any

from ...errors import ConfigError
from ..config import key_from_environment
from .adapters.anthropic_api import (
    ANTHROPIC_URL,
    ANTHROPIC_VERSION,
    AnthropicOptions,
    AnthropicServer,
)
from .adapters.openai_api import OPENAI_URL, OpenAIOptions, OpenAIServer
from .adapters.radixlm_server import RadixlmServer
from .backend import RemoteBackend
from .connection import Connection, Limits, checked_url


class RuntimeEndpoint(RemoteBackend):
    """A server started by `radixlm serve`, on this machine or another: every argument and constraint as on a local engine, equal results.

    Branches live here; the server's prefix cache finds what they share. Connects at once: ServiceError if nothing answers at `base_url`,
    ConfigError if the key is refused or it is another server. `api_key`: else RADIXLM_API_KEY. Times are in seconds.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        verify: bool | str = True,
        *,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
        max_concurrency: int = 256,
    ) -> None:
        key = _key(api_key, "RADIXLM_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        limits = Limits(timeout_s, connect_timeout_s, max_retries, max_concurrency)
        url = checked_url(base_url).removesuffix("/v1")
        server = RadixlmServer(Connection("the server", url, headers, limits, verify=verify))
        super().__init__(server, limits)
        try:
            self.wait_for(server.connect)
        except ConfigError as error:
            self.close()
            if error.place != "api_key":
                raise ConfigError(
                    f"at {url} answers a server that is not radixlm's",
                    place="base_url",
                    hint="radixlm.OpenAI(model, base_url=...) speaks to others",
                ) from error
            raise
        except BaseException:
            self.close()
            raise


class OpenAI(RemoteBackend):
    """A model of OpenAI's API, or of any server that speaks it (`base_url`, with its `/v1`): vLLM, SGLang, llama.cpp and others.

    Programs with roles use chat completions, others text completions; `is_chat_model` decides for all. `dialect` says how the server takes
    constraints: "auto" (by its list of models), "openai", "vllm", "vllm-guided", "sglang", "llama.cpp", "radixlm". What the server cannot do is
    refused by name when the program asks for it. `default_max_tokens` is for gens without max_tokens, where the server needs a number. `api_key`:
    else OPENAI_API_KEY. Times are in seconds; nothing is sent before the first request.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        is_chat_model: bool | None = None,
        dialect: str = "auto",
        default_max_tokens: int = 1024,
        context_length: int = 128_000,
        headers: dict[str, str] | None = None,
        verify: bool | str = True,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
        max_concurrency: int = 64,
    ) -> None:
        _check_model(model)
        limits = Limits(timeout_s, connect_timeout_s, max_retries, max_concurrency)
        key = _key(api_key, "OPENAI_API_KEY")
        if key is None and checked_url(base_url) == OPENAI_URL:
            raise _no_key("OPENAI_API_KEY")
        own: dict[str, str] = {"authorization": f"Bearer {key}"} if key else {}
        connection = Connection(
            "the server", base_url, {**own, **(headers or {})}, limits, verify=verify
        )
        options = OpenAIOptions(model, dialect, is_chat_model, default_max_tokens, context_length)
        super().__init__(OpenAIServer(connection, options), limits)


class Anthropic(RemoteBackend):
    """A model of Anthropic's API (messages).

    Text outside roles is a message of the user. `allows_prefix`: may a program begin the assistant's message for the model; None decides by the
    model's name. `caches_prompts` marks prompts that forks share, so that the API keeps them (it charges for that). `default_max_tokens` is for
    gens without max_tokens: the API needs a number. `api_key`: else ANTHROPIC_API_KEY. Times are in seconds; nothing is sent before the first
    request.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC_URL,
        api_key: str | None = None,
        default_max_tokens: int = 4096,
        allows_prefix: bool | None = None,
        caches_prompts: bool = False,
        context_length: int = 200_000,
        headers: dict[str, str] | None = None,
        verify: bool | str = True,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 10.0,
        max_retries: int = 2,
        max_concurrency: int = 64,
    ) -> None:
        _check_model(model)
        key = _key(api_key, "ANTHROPIC_API_KEY")
        if key is None:
            raise _no_key("ANTHROPIC_API_KEY")
        limits = Limits(timeout_s, connect_timeout_s, max_retries, max_concurrency)
        own = {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION, **(headers or {})}
        url = checked_url(base_url).removesuffix("/v1")
        connection = Connection("the Anthropic API", url, own, limits, verify=verify)
        options = AnthropicOptions(
            model, default_max_tokens, allows_prefix, caches_prompts, context_length
        )
        super().__init__(AnthropicServer(connection, options), limits)


def _key(given: Any, variable: str) -> str | None:
    if given is None:
        given = key_from_environment(variable)
    if given is None:
        return None
    key = given.strip() if isinstance(given, str) else ""
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            "api_key is no key: a text without special characters", place="api_key"
        )  # its value is not shown
    return key


def _no_key(variable: str) -> ConfigError:
    return ConfigError(
        "there is no key", place="api_key", hint=f"Pass api_key=..., or set {variable}"
    )


def _check_model(model: Any) -> None:
    if not isinstance(model, str) or not model:
        raise ConfigError(f"{model!r} is not a model's name", place="model")
