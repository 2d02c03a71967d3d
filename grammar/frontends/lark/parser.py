"""The syntax of Lark grammars: tokens into definitions.

    rule: expansion | expansion -> alias      TERMINAL.priority: ...      template{a, b}: ...
    "text"i  /regex/flags  "a".."z"  name  template{x, y}  ( ... )  [ ... ]  %json {...}    with ? * + ~n ~n..m {n,m} behind
    A & B  ~A                                  in terminals: what both match, what A does not
    %ignore, %import common.X, %override, %extend, %llguidance {"skip_repetition": "once"}

Owns statements and definitions, and what of them changes no text (modifiers, priorities of rules); bodies are `bodies`'. Sources: the grammar
reference in Lark's documentation; llguidance's docs/syntax.md for what goes beyond it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..grammar_text import GrammarText
from .bodies import Bodies
from .brackets import choice
from .nodes import Definition, Node, Pattern, is_terminal
from .reader import Reader
from .scanner import Token
from .standard_terminals import STANDARD_TERMINALS

_OPTIONS = {"once": True, "repeat": False}


class Parser:
    """One grammar: its definitions by name, what is ignored, and whether only once at each place."""

    def __init__(self, source: GrammarText) -> None:
        self.definitions: dict[str, Definition] = {}
        self.ignored: list[Node] = []
        self.ignores_once = False
        self._source = source
        self._reader = Reader(source)
        self._bodies = Bodies(self._reader)
        self._directives: dict[str, Callable[[], None]] = {
            "%ignore": lambda: self.ignored.append(self._bodies.body()),
            "%import": self._import,
            "%override": self._override,
            "%extend": self._extend,
            "%llguidance": self._options,
        }

    def parse(self) -> None:
        """Read the whole text. Raises GrammarError."""
        while self._reader.peek.kind != "end":
            if self._reader.peek.kind == "line":
                self._reader.next()
                continue
            self._statement()
            if self._reader.peek.kind not in ("line", "end"):
                raise self._reader.unexpected("a definition ends with its line")

    def _statement(self) -> None:
        token = self._reader.peek
        if token.kind == "json":
            raise self._source.error("%json is part of a rule", token.at, keyword="%json")
        if token.kind != "directive":
            self._add(self._definition())
            return
        self._reader.next()
        if token.text not in self._directives:
            raise self._source.error(
                f"{token.text} cannot be part of a constraint", token.at, keyword=token.text
            )
        self._directives[token.text]()

    # ------------------------------------------------------------------------------------------ definitions

    def _definition(self) -> Definition:
        while self._reader.peek.kind in ("!", "?"):  # of the syntax tree only
            self._reader.next()
        token = self._reader.expect("name", "a definition begins with a name")
        name = self._reader.checked_name(token)
        self._reader.refuse_other_dialects()
        if self._reader.peek.kind == "[":
            self._attributes()
        parameters = self._parameters() if self._reader.peek.kind == "{" else ()
        priority = 0
        if self._reader.takes("."):
            number = self._reader.expect("number", "a priority is a number")
            priority = int(number.text) if len(number.text) < 10 else 10**9
        self._reader.expect(":", f"a colon is needed behind the name {name}")
        return Definition(name, parameters, priority, self._bodies.body(), token.at)

    def _attributes(self) -> None:
        """`name[capture]: ...`: a capture only names a part of the output. All others are about tokens or how far a text goes."""
        self._reader.next()
        while not self._reader.takes("]"):
            token = self._reader.expect("name", "the name of an attribute is needed")
            if token.text != "capture":
                raise self._source.error(
                    f"the attribute {token.text} cannot be part of a constraint",
                    token.at,
                    keyword=token.text,
                )
            if self._reader.takes("="):
                self._reader.expect("string", "the name of the capture is a string")
            self._reader.takes(",")

    def _parameters(self) -> tuple[str, ...]:
        self._reader.next()
        names: list[str] = []
        while True:
            token = self._reader.expect("name", "a template's parameter is a name")
            if is_terminal(token.text) or token.text in names:
                raise self._source.error(
                    "the parameters of a template have different names in lower case",
                    token.at,
                    keyword="template",
                )
            names.append(token.text)
            if not self._reader.takes(","):
                break
        self._reader.expect("}", "the parameters end with }")
        return tuple(names)

    def _add(self, new: Definition) -> None:
        old = self.definitions.get(new.name)
        if old is not None:
            raise self._source.error(
                f"{new.name} is already defined at {self._source.place(old.at)}",
                new.at,
                keyword="duplicate",
            )
        self.definitions[new.name] = new

    def _override(self) -> None:
        new = self._definition()
        self._existing(new)
        self.definitions[new.name] = new

    def _extend(self) -> None:
        new = self._definition()
        old = self._existing(new)
        body = choice([old.body, new.body])
        self.definitions[old.name] = Definition(
            old.name, old.parameters, old.priority, body, old.at
        )

    def _existing(self, new: Definition) -> Definition:
        old = self.definitions.get(new.name)
        if old is None:
            raise self._source.unknown(
                f"{new.name}, to be changed,", new.name, new.at, self.definitions
            )
        if old.parameters != new.parameters:
            raise self._source.error("a template keeps its parameters", new.at, keyword="template")
        return old

    def _import(self) -> None:
        module = self._reader.expect("name", "a module is needed")
        if module.text != "common":
            raise self._source.error(
                f"there is no module {module.text} to import from: only common is",
                module.at,
                keyword="%import",
            )
        if self._reader.takes("("):
            while True:
                token = self._reader.expect("name", "the name of a terminal is needed")
                self._add_standard(token, token)
                if not self._reader.takes(","):
                    break
            self._reader.expect(")", "the list of names ends with )")
            return
        self._reader.expect(".", "what is imported is needed: common.NAME")
        token = self._reader.expect("name", "the name of a terminal is needed")
        alias = (
            self._reader.expect("name", "a name is needed") if self._reader.takes("->") else token
        )
        self._add_standard(token, alias)

    def _add_standard(self, token: Token, alias: Token) -> None:
        pattern = STANDARD_TERMINALS.get(token.text)
        if pattern is None:
            raise self._source.unknown(
                f"common.{token.text}", token.text, token.at, STANDARD_TERMINALS
            )
        name = self._reader.checked_name(alias)
        self._add(Definition(name, (), 0, Pattern(pattern, "", token.at), alias.at))

    def _options(self) -> None:
        """`%llguidance {...}`: the option that bounds what is ignored; others are about tokens, not texts."""
        self._reader.expect("{", "options are needed: {...}")
        while not self._reader.takes("}"):
            option = self._reader.expect("string", "the name of an option is needed")
            self._reader.expect(":", "the value of the option is needed")
            value = self._reader.next()
            if option.text != '"skip_repetition"':
                raise self._source.error(
                    f"the option {option.text} is not supported", option.at, keyword="%llguidance"
                )
            if value.text.strip('"') not in _OPTIONS:
                raise self._source.error(
                    'skip_repetition is "once" or "repeat"', value.at, keyword="%llguidance"
                )
            self.ignores_once = _OPTIONS[value.text.strip('"')]
            self._reader.takes(",")
