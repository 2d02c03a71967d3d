"""The README of lang/ says what is there: every argument stands in its tables, and its page on testing runs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import radixlm
from radixlm.lang.arguments import BATCH_DEFAULTS, RUN_NAMES
from radixlm.lang.live_state import LiveState
from radixlm.lang.sampling import OPTION_NAMES
from radixlm.lang.testing import ScriptedBackend

README = Path(__file__).parents[2] / "lang" / "README.md"
REFERENCE = README.read_text().partition("## Reference")[2].partition("## Choices made")[0]


def parameters(call: object) -> set[str]:
    assert callable(call)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    signature = inspect.signature(call)
    return {p.name for p in signature.parameters.values() if p.kind not in kinds} - {"self"}


@pytest.mark.parametrize(
    "name",
    sorted(
        RUN_NAMES
        | OPTION_NAMES
        | {name for name, _ in BATCH_DEFAULTS}
        | parameters(radixlm.gen)
        | parameters(radixlm.gen_int)
        | parameters(radixlm.gen_string)
        | parameters(radixlm.select)
        | parameters(radixlm.State.fork)
        | (parameters(radixlm.Program.run) | parameters(radixlm.Program.run_batch)) - {"batch"}
    ),
)
def test_every_argument_is_in_the_reference(name: str) -> None:
    assert re.search(rf"[`(, ]{name}[`,)=.]", REFERENCE)


def test_every_method_of_a_state_is_named() -> None:
    text = README.read_text()
    internal = {
        "own_variables", "own_nodes", "open_role", "close", "value_of", "output_text", "last_result",
    }  # fmt: skip
    for kind in (radixlm.State, LiveState):
        public = {name for name in dir(kind) if not name.startswith("_")} - internal
        assert {name for name in public if name not in text} == set()


def test_every_part_of_the_scripted_backend_is_named() -> None:
    page = README.read_text().partition("## Testing programs")[2].partition("## Reference")[0]
    own = {name for name in vars(ScriptedBackend) if not name.startswith("_")}
    protocol = {"facts", "new_id", "send", "generate", "score"}
    wanted = (own - protocol) | parameters(ScriptedBackend) - {"facts", "answers"}
    assert {name for name in wanted if name not in page} == set()


def test_the_page_on_testing_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    program = next(block for block in blocks if "def coach" in block).partition("\n\n\nstate")[0]
    page = next(block for block in blocks if "def test_coach" in block)
    scope: dict[str, object] = {
        name: getattr(radixlm, name) for name in ("function", "user", "assistant", "gen")
    }
    exec(program, scope)
    exec(page, scope)
    test = scope["test_coach"]
    assert callable(test)
    test()
