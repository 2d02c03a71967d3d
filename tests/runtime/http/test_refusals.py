"""Each kind of error has its status, its type and its code, and a defect tells nothing."""

from __future__ import annotations

import pytest

from radixlm import errors
from radixlm.runtime.http.refusals import BodyError, HttpRefusal, refusal_of, unknown_model

USER, SERVER = "invalid_request_error", "server_error"


@pytest.mark.parametrize(
    ("error", "status", "kind", "code"),
    [
        (errors.ContextOverflow("x"), 400, USER, "context_length_exceeded"),
        (errors.GrammarError("x"), 400, USER, "unsupported_schema"),
        (errors.SamplingError("x"), 400, USER, "invalid_value"),
        (errors.PromptError("x"), 400, USER, "invalid_prompt"),
        (errors.ProgramError("x"), 400, USER, None),
        (BodyError("x", code="invalid_json"), 400, USER, "invalid_json"),
        (HttpRefusal("x", status=401), 401, "authentication_error", None),
        (HttpRefusal("x", status=404, code="model_not_found"), 404, USER, "model_not_found"),
        (HttpRefusal("x", status=503), 503, SERVER, None),
        (errors.Overloaded("x"), 429, "rate_limit_error", "overloaded"),
        (errors.EngineDied("x"), 503, SERVER, "engine_died"),
        (errors.ServiceError("x"), 503, SERVER, "unavailable"),
        (errors.TimedOut("x"), 504, SERVER, "timeout"),
    ],
)
def test_an_error_has_its_status_and_shape(
    error: errors.RadixError, status: int, kind: str, code: str | None
) -> None:
    refusal = refusal_of(error)
    assert refusal.status == status
    assert refusal.body == {"error": {"message": "x", "type": kind, "param": None, "code": code}}


def test_message_place_and_hint_are_shown_and_the_place_is_the_param() -> None:
    refusal = refusal_of(errors.SamplingError("top_p=2 is wrong", place="top_p", hint="Use 1"))
    assert (refusal.message, refusal.param) == ("top_p=2 is wrong. Use 1", "top_p")
    refusal = refusal_of(errors.GrammarError("not enforced", place="schema/properties/a"))
    assert refusal.message == "not enforced (at schema/properties/a)"


@pytest.mark.parametrize(
    "error", [KeyError("secret"), errors.InvariantError("secret"), errors.OutputError("secret")]
)
def test_a_defect_is_a_500_that_tells_nothing(error: Exception) -> None:
    refusal = refusal_of(error)
    assert refusal.status == 500
    assert "secret" not in str(refusal)


def test_what_a_client_sent_is_not_quoted_without_end() -> None:
    refusal = refusal_of(unknown_model("x" * 1_000_000, "m"))
    assert len(refusal.message) < 4000
    refusal = refusal_of(errors.PromptError("wrong", place="messages[0]." + "k" * 1_000_000))
    assert len(refusal.message) + len(refusal.param or "") < 4000


def test_what_may_be_tried_again_says_when() -> None:
    assert refusal_of(errors.Overloaded("x")).headers["retry-after"]
    assert "retry-after" not in refusal_of(errors.PromptError("x")).headers
