"""A branch's ids equal its constant text tokenized whole, however it was appended, forked and continued."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_tokenizer import BEGIN, BOS, END, TOKEN_BYTES, ToyTokenizer

from radixlm.errors import ContextOverflow, PromptError
from radixlm.runtime import messages as m
from radixlm.runtime.branches import PART_CHARS, Branch, cut_output
from radixlm.runtime.text_memory import TextMemory

TEXT = st.text(alphabet=" anbxyzé:YES<end>", max_size=12)


def new_branch(
    memory_bytes: int = 0, *, add_bos: bool = False, strict_text: bool = False
) -> Branch:
    return Branch(ToyTokenizer(add_bos=add_bos), TextMemory(memory_bytes), strict_text=strict_text)


def ids_of(text: str) -> list[int]:
    return ToyTokenizer().encode(text).ids


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXT, st.sampled_from(["append", "settle", "fork"])), max_size=8))
def test_text_in_portions_gets_the_ids_of_the_whole_text(portions: list[tuple[str, str]]) -> None:
    branch = new_branch()
    for text, action in portions:
        branch.append([m.Text(text)])
        if action == "settle":
            branch.settle()
        elif action == "fork":
            branch = branch.copy()
    whole = "".join(text for text, _ in portions)
    if whole:
        assert branch.prompt_ids() == ids_of(whole)
    else:
        with pytest.raises(PromptError, match="empty"):
            branch.prompt_ids()


def test_output_ids_stay_as_generated_and_the_next_constant_starts_after_them() -> None:
    branch = new_branch()
    branch.append([m.Text("ban")])
    branch.prompt_ids()
    output = ids_of("a") + ids_of("n")
    branch.continue_with(output)
    branch.append([m.Text("ana")])
    assert branch.prompt_ids() == ids_of("ban") + output + ids_of("ana")
    assert branch.prompt_ids() != ids_of("bananana")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.integers(4, len(TOKEN_BYTES) - 1).filter(lambda i: TOKEN_BYTES[i] is not None),
        max_size=8,
    ),
    st.integers(0, 20),
)
def test_a_cut_output_keeps_whole_tokens_then_text_and_loses_no_byte_of_a_valid_text(
    token_ids: list[int], cut: int
) -> None:
    spelled = b"".join(TOKEN_BYTES[i] or b"" for i in token_ids)
    cut = min(cut, len(spelled))
    kept, rest = cut_output(TOKEN_BYTES, token_ids, cut)
    assert token_ids[: len(kept)] == kept
    kept_bytes = b"".join(TOKEN_BYTES[i] or b"" for i in kept)
    assert len(kept_bytes) <= cut
    try:
        spelled[:cut].decode()
    except UnicodeDecodeError:
        return
    assert kept_bytes + rest.encode() == spelled[:cut]


def test_the_text_kept_of_a_cut_token_is_tokenized_with_what_follows() -> None:
    branch = new_branch()
    branch.append([m.Text("go ")])
    branch.prompt_ids()
    branch.continue_with(
        ids_of("an") + ids_of("xyz"), cut_byte=3
    )  # stop string "yz": the x remains
    assert branch.tail == "x"
    branch.append([m.Text("yz")])
    assert branch.prompt_ids() == ids_of("go ") + ids_of("an") + ids_of("xyz")


def test_a_cut_inside_a_character_run_gives_up_the_whole_character() -> None:
    first, second = "é".encode()
    bytewise = [TOKEN_BYTES.index(bytes((b,))) for b in (first, second)]
    kept, rest = cut_output(TOKEN_BYTES, [*ids_of("a"), bytewise[0], bytewise[1], *ids_of("<e")], 3)
    assert (kept, rest) == ([*ids_of("a"), *bytewise], "")
    both = TOKEN_BYTES.index("é".encode())
    assert cut_output(TOKEN_BYTES, [both], 2) == ([both], "")


def test_roles_and_chat_are_specials_with_text_between_and_bos_comes_first() -> None:
    branch = new_branch(add_bos=True)
    branch.append([m.RoleBegin("user"), m.Text("an<end>a"), m.RoleEnd("user")])
    ids = branch.prompt_ids()
    assert ids == [BOS, BEGIN, *ids_of("user\nan<end>a"), END, *ids_of("\n")]
    chat = new_branch(add_bos=True)
    chat.append([m.Chat(({"role": "user", "content": "an<end>a"},), add_generation_prompt=False)])
    assert chat.prompt_ids() == ids


def test_raw_ids_are_taken_as_they_are_and_bad_ones_are_named() -> None:
    branch = new_branch(add_bos=True)
    branch.append([m.Ids((9, 10)), m.Text("an"), m.Ids((11,))])
    assert branch.prompt_ids() == [9, 10, *ids_of("an"), 11]
    with pytest.raises(PromptError, match="token id 99999"):
        branch.append([m.Ids((99999,))])


def test_characters_without_a_token_are_reported_once_or_refused() -> None:
    branch = new_branch()
    branch.append([m.Text("a\x07 b\x07")])
    branch.prompt_ids()
    assert branch.replaced == ("\x07",)
    strict = new_branch(strict_text=True)
    strict.append([m.Text("a\x07")])
    with pytest.raises(PromptError, match="no token"):
        strict.prompt_ids()


def test_an_impossible_prompt_is_refused_before_it_is_tokenized() -> None:
    tokenizer = ToyTokenizer()
    branch = Branch(tokenizer, TextMemory(0), max_tokens=1000)
    branch.append([m.Text("an " * 100_000)])
    with pytest.raises(PromptError, match="300000 characters"):
        branch.prompt_ids()
    assert tokenizer.num_encoded_chars == 0


def test_choices_are_tokenized_together_with_the_text_before_them() -> None:
    branch = new_branch()
    branch.append([m.Text("Is it wet? Answer:")])
    constant, (yes, no) = branch.ids_with([" YES", " NO"])
    assert constant == ids_of("Is it wet? Answer:")
    assert yes == ids_of("Is it wet? Answer: YES")
    assert no == ids_of("Is it wet? Answer: NO")
    assert branch.prompt_ids() == constant


# ------------------------------------------------------------------------------------------ the memory of own outputs


def with_output(memory: TextMemory, prompt: str, output: list[int]) -> Branch:
    branch = Branch(ToyTokenizer(), memory)
    branch.append([m.Text(prompt)])
    branch.prompt_ids()
    branch.continue_with(output)
    return branch


def test_a_history_sent_back_as_text_gets_the_ids_that_were_generated() -> None:
    memory = TextMemory(10**6)
    spelled_oddly = ids_of("b") + ids_of("an")
    with_output(memory, "say ", spelled_oddly)
    later = Branch(ToyTokenizer(), memory)
    later.append([m.Text("say ban")])
    later.append([m.Text(" the")])
    assert later.prompt_ids() == ids_of("say ") + spelled_oddly + ids_of(" the")
    forgetful = Branch(ToyTokenizer(), TextMemory(0))
    forgetful.append([m.Text("say ban the")])
    assert forgetful.prompt_ids() == ids_of("say ban the")


def test_chat_history_hits_and_a_spelled_special_token_does_not() -> None:
    memory = TextMemory(10**6)
    branch = Branch(ToyTokenizer(), memory)
    branch.append([m.Chat(({"role": "user", "content": "hi"},))])
    prompt = list(branch.prompt_ids())
    branch.continue_with(ids_of("b") + ids_of("an"))
    history = (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ban"},
        {"role": "user", "content": "go"},
    )
    later = Branch(ToyTokenizer(), memory)
    later.append([m.Chat(history)])
    assert later.prompt_ids()[: len(prompt) + 2] == [*prompt, *ids_of("b"), *ids_of("an")]
    spelled = Branch(ToyTokenizer(), memory)
    spelled.append([m.Text("<begin>user\nhi<end>\n<begin>assistant\nban")])
    assert spelled.prompt_ids() == ids_of("<begin>user\nhi<end>\n<begin>assistant\nban")


def test_an_output_that_ends_inside_a_character_is_known_by_the_text_that_was_shown() -> None:
    memory = TextMemory(10**6)
    half = TOKEN_BYTES.index(b"\xc3")
    with_output(memory, "say ", [half])
    whole = Branch(ToyTokenizer(), memory)
    whole.append([m.Text("say é")])
    assert whole.prompt_ids() == ids_of("say é")
    shown = Branch(ToyTokenizer(), memory)
    shown.append([m.Text("say \ufffd on")])
    assert shown.prompt_ids() == [*ids_of("say "), half, *ids_of(" on")]


def test_a_remembered_text_with_replacements_reports_them_and_is_not_used_when_strict() -> None:
    memory = TextMemory(10**6)
    with_output(memory, "a\x07 ", ids_of("ban"))
    later = Branch(ToyTokenizer(), memory)
    later.append([m.Text("a\x07 ban the")])
    later.prompt_ids()
    assert later.replaced == ("\x07",)
    strict = Branch(ToyTokenizer(), memory, strict_text=True)
    strict.append([m.Text("a\x07 ban the")])
    with pytest.raises(PromptError):
        strict.prompt_ids()


@pytest.mark.parametrize("unit", ["banana xyz ", "é", "<end> an"])
def test_a_text_of_many_parts_gets_the_ids_of_the_whole_text(unit: str) -> None:
    text = unit * (3 * PART_CHARS // len(unit))
    branch = new_branch()
    branch.append([m.Text(text[:100]), m.Text(text[100:])])
    assert branch.prompt_ids() == ids_of(text)


def test_a_text_that_cannot_fit_is_refused_before_all_of_it_is_tokenized() -> None:
    tokenizer = ToyTokenizer()
    branch = Branch(tokenizer, TextMemory(0), max_tokens=PART_CHARS)
    branch.append([m.Text("b c " * (10 * PART_CHARS // 4))])
    with pytest.raises(ContextOverflow, match=f"holds {PART_CHARS}"):
        branch.prompt_ids()
    assert tokenizer.num_encoded_chars < 3 * PART_CHARS
