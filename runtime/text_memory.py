"""What the gateway remembers of its own outputs: rendered text -> the token ids that stand for it.

A model's output tokenized again often gives other ids than were sampled, and a prompt that sends a history back as text would then
miss the cache from the first such place on. So every finished output is kept under the rendered text of its whole branch, and a new
prompt starts with the ids of the longest remembered text that begins it.

    b"...user\\nHi\\xff\\x00\\x00\\x02" --+-- b"Yes, I do." --> ids [.. 15 2 88 9 4 ..]
                                     `-- b"No."         --> ids [.. 15 2 31 4 ..]

Texts are keys of a radix trie over bytes, one trie a namespace: look-up and insertion walk at most as many nodes as texts branch off
the given one, comparing whole edges, so thousands of entries do not slow them down. Special tokens stand in a key as `special_key`
(0xFF and four bytes; UTF-8 never holds 0xFF), hence a special token and its spelling in user text differ. The memory is bounded by
bytes; entries leave in order of last use, and their trie nodes with them.

Owns the trie and its bound. Knows nothing of tokenizers, branches or sockets.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

from ..errors import InvariantError

NODE_BYTES = (
    250  # a node with its dict slot, measured roughly; keeps the bound honest for tiny entries
)


def special_key(token_id: int) -> bytes:
    """How special token `token_id` stands in a key: five bytes that no UTF-8 text holds."""
    return b"\xff" + token_id.to_bytes(4, "big")


class _Node:
    __slots__ = ("children", "edge", "ids", "parent", "replaced")

    def __init__(self, edge: bytes, parent: _Node | None) -> None:
        self.edge = edge
        self.parent = parent
        self.children: dict[int, _Node] = {}  # by first byte of the child's edge
        self.ids: array[int] | None = None
        self.replaced: tuple[str, ...] = ()

    @property
    def num_bytes(self) -> int:
        held = NODE_BYTES + len(self.edge)
        return held + len(self.ids) * self.ids.itemsize if self.ids is not None else held


class Remembered:
    """A remembered beginning: `num_bytes` of the key are spelled by `token_ids`; `replaced` are its unspellable characters."""

    __slots__ = ("num_bytes", "replaced", "token_ids")

    def __init__(self, num_bytes: int, token_ids: list[int], replaced: tuple[str, ...]) -> None:
        self.num_bytes = num_bytes
        self.token_ids = token_ids
        self.replaced = replaced


class TextMemory:
    """Longest-prefix memory of texts, bounded by `max_bytes` over all namespaces. `max_bytes=0` remembers nothing."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self.num_hits = 0
        self._roots: dict[str, _Node] = {}
        self._order: OrderedDict[_Node, str] = (
            OrderedDict()
        )  # entries, least recently used first -> namespace

    def __len__(self) -> int:
        return len(self._order)

    def remember(
        self,
        key: bytes,
        token_ids: Sequence[int],
        namespace: str = "",
        replaced: tuple[str, ...] = (),
    ) -> None:
        """Keep `token_ids` as the spelling of `key`, replacing what was kept for it."""
        if not key or (len(key) + 4 * len(token_ids) + 2 * NODE_BYTES) * 4 > self.max_bytes:
            return  # one text must not push out everything else
        node = self._node_for(key, namespace)
        self.num_bytes -= node.num_bytes
        node.ids = array("i", token_ids)
        node.replaced = replaced
        self.num_bytes += node.num_bytes
        self._order[node] = namespace
        self._order.move_to_end(node)
        while self.num_bytes > self.max_bytes:
            self._forget_oldest()

    def longest(self, key: bytes, namespace: str = "") -> Remembered | None:
        """The longest remembered text that `key` starts with, or None."""
        node = self._roots.get(namespace)
        best: _Node | None = None
        best_end = position = 0
        while node is not None and position < len(key):
            node = node.children.get(key[position])
            if node is None or not key.startswith(node.edge, position):
                break
            position += len(node.edge)
            if node.ids is not None:
                best, best_end = node, position
        if best is None or best.ids is None:
            return None
        self.num_hits += 1
        self._order.move_to_end(best)
        return Remembered(best_end, best.ids.tolist(), best.replaced)

    def clear(self) -> None:
        """Forget everything."""
        self._roots.clear()
        self._order.clear()
        self.num_bytes = 0

    def counters(self) -> dict[str, float]:
        """What it holds and how often it helped."""
        return {
            "text_memory_entries": len(self),
            "text_memory_bytes": self.num_bytes,
            "text_memory_hits": self.num_hits,
        }

    def check(self) -> None:
        """Raise InvariantError when trie, order and byte count disagree."""
        total = 0
        entries: set[_Node] = set()
        stack = [(root, True) for root in self._roots.values()]
        while stack:
            node, is_root = stack.pop()
            total += node.num_bytes
            if node.ids is not None:
                entries.add(node)
            elif not is_root and len(node.children) < 2:
                raise InvariantError("a trie node holds no entry and does not branch")
            for first, child in node.children.items():
                if not child.edge or child.edge[0] != first or child.parent is not node:
                    raise InvariantError("a trie node hangs at the wrong place")
                stack.append((child, False))
        if total != self.num_bytes or entries != set(self._order):
            raise InvariantError("the text memory's count or order disagrees with its trie")

    # ------------------------------------------------------------------------------------------ the trie

    def _new_node(self, edge: bytes, parent: _Node | None) -> _Node:
        node = _Node(edge, parent)
        if parent is not None:
            parent.children[edge[0]] = node
        self.num_bytes += node.num_bytes
        return node

    def _node_for(self, key: bytes, namespace: str) -> _Node:
        """The node whose path spells `key`, made when missing."""
        node = self._roots.get(namespace)
        if node is None:
            node = self._roots[namespace] = self._new_node(b"", None)
        position = 0
        while position < len(key):
            child = node.children.get(key[position])
            if child is None:
                return self._new_node(key[position:], node)
            if not key.startswith(child.edge, position):
                child = self._split(child, _common_length(child.edge, key, position))
            position += len(child.edge)
            node = child
        return node

    def _split(self, node: _Node, at: int) -> _Node:
        """Cut `node`'s edge after `at` bytes; the new upper node is returned."""
        assert node.parent is not None
        self.num_bytes -= node.num_bytes
        upper = self._new_node(node.edge[:at], node.parent)
        node.edge = node.edge[at:]
        node.parent = upper
        upper.children[node.edge[0]] = node
        self.num_bytes += node.num_bytes
        return upper

    def _forget_oldest(self) -> None:
        node, namespace = self._order.popitem(last=False)
        self.num_bytes -= node.num_bytes
        node.ids = None
        node.replaced = ()
        self.num_bytes += node.num_bytes
        parent = node.parent
        self._prune(node)
        if parent is not None and parent.ids is None:
            self._prune(parent)
        root = self._roots[namespace]
        if not root.children:
            self.num_bytes -= root.num_bytes
            del self._roots[namespace]

    def _prune(self, node: _Node) -> None:
        """Remove a node without entry that ends nothing, or join it with its only child."""
        parent = node.parent
        if parent is None or len(node.children) > 1:
            return
        self.num_bytes -= node.num_bytes
        del parent.children[node.edge[0]]
        for child in node.children.values():
            self.num_bytes -= child.num_bytes
            child.edge = node.edge + child.edge
            child.parent = parent
            parent.children[child.edge[0]] = child
            self.num_bytes += child.num_bytes


def _common_length(edge: bytes, key: bytes, position: int) -> int:
    """Length of the common prefix of `edge` and `key[position:]`, by halving (slices compare at C speed)."""
    low, high = 0, min(len(edge), len(key) - position)
    while low < high:
        middle = (low + high + 1) // 2
        if key.startswith(edge[:middle], position):
            low = middle
        else:
            high = middle - 1
    return low
