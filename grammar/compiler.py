"""Specs -> programs: the front end's grammar through every pass, and the cache of finished programs.

Owns the choice of the native compiler where it is built, the order of the Python passes, and `ProgramCache`. Knows nothing of vocabularies beyond the alphabet (the bytes
some token can spell), nor of processes or deadlines. A front end is one file of `grammar/frontends/`, named after its spec's tag, with
`build(spec, limits) -> Grammar`.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from ..errors import GrammarError
from . import frontends
from .analysis import Analysis
from .automaton import Graph
from .emission import emit
from .expr import Grammar, Limits
from .left_recursion import remove_left_recursion
from .lowering import Lowering
from .native.compiling import compile_body
from .native.library import is_built
from .product import build_products
from .program import GrammarProgram
from .spec import Spec
from .unlisted import written_out

__all__ = ["Limits", "ProgramCache", "compile_grammar", "compile_spec"]

_DEFAULT_CACHE_BYTES = 64 << 20


def compile_spec(spec: Spec, alphabet: bytes, limits: Limits | None = None) -> GrammarProgram:
    """Compile `spec` for a vocabulary whose tokens spell the bytes b with alphabet[b] == 1.

    Raises GrammarError with place and keyword if the spec is refused, unsatisfiable, or beyond a limit.
    """
    limits = limits or Limits()
    with _paused_collector():
        return compile_grammar(frontends.build(spec, limits), alphabet, limits)


def compile_grammar(
    grammar: Grammar, alphabet: bytes, limits: Limits | None = None
) -> GrammarProgram:
    """Compile `grammar`, natively where that is built; see `compile_spec`."""
    limits = limits or Limits()
    if is_built():
        return GrammarProgram.of_compiler(compile_body(grammar, alphabet, limits))
    return compile_by_passes(grammar, alphabet, limits)


def compile_by_passes(grammar: Grammar, alphabet: bytes, limits: Limits) -> GrammarProgram:
    """The same in Python: the definition of the native compiler, and what serves without it."""
    if len(alphabet) != 256:
        raise GrammarError(f"an alphabet has 256 entries, not {len(alphabet)}")
    allowed = sum(1 << byte for byte, is_known in enumerate(alphabet) if is_known)
    analysis = Analysis(written_out(grammar), limits)
    products = build_products(analysis, allowed)
    analysis.find_nullable({key: dfa.accepting[:1] == (True,) for key, dfa in products.items()})
    graph = Graph(limits)
    start = _outermost(graph, Lowering(analysis, graph, allowed, products).build(analysis.start))
    remove_left_recursion(graph)
    graph.remove_dead_ends()
    if not graph.states[start].calls and not graph.may_be_empty(start):
        raise GrammarError(
            "no output can satisfy this constraint",
            hint="its parts contradict each other, or need bytes that no token of the model spells",
            keyword="unsatisfiable",
        )
    graph.shorten()
    program = emit(graph, start, allowed)
    if program.num_bytes > limits.program_bytes:
        raise GrammarError(
            f"the compiled grammar has {program.num_bytes} bytes, more than limits.program_bytes={limits.program_bytes}",
            keyword="program_bytes",
        )
    return program


@contextmanager
def _paused_collector() -> Generator[None]:
    """No cyclic garbage collection: a compile makes many small objects and no cycles, and collecting took a third of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _outermost(graph: Graph, start: int) -> int:
    """A state that calls everything from `start` as a region: the frame a match runs in."""
    region = graph.new_region(start)
    is_optional = graph.may_be_empty(start)
    graph.set_entries()
    outer, end = graph.new_state(), graph.new_state()
    graph.states[end].is_end = True
    graph.states[outer].calls.append((region, end))
    if is_optional:
        graph.states[outer].empty.append(end)
    return outer


class ProgramCache:
    """Programs by `spec_key`, least recently used ones dropped once their bytes exceed `max_bytes`."""

    def __init__(self, max_bytes: int = _DEFAULT_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._programs: OrderedDict[str, GrammarProgram] = OrderedDict()

    def get(self, key: str) -> GrammarProgram | None:
        """The program stored under `key`, now the most recently used one."""
        program = self._programs.get(key)
        if program is not None:
            self._programs.move_to_end(key)
        return program

    def put(self, key: str, program: GrammarProgram) -> None:
        """Store a program; one that alone exceeds the budget is not kept."""
        self.drop(key)
        self._programs[key] = program
        self._num_bytes += program.num_bytes
        while self._num_bytes > self._max_bytes:
            _, dropped = self._programs.popitem(last=False)
            self._num_bytes -= dropped.num_bytes

    def drop(self, key: str) -> None:
        """Forget `key` if it is there."""
        dropped = self._programs.pop(key, None)
        if dropped is not None:
            self._num_bytes -= dropped.num_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes of all programs held."""
        return self._num_bytes

    def __len__(self) -> int:
        return len(self._programs)
