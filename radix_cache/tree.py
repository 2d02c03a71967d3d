"""A radix tree over token ids whose edges are whole pages. Owns the structure: match, attach, detach, split, grow, trim.
Knows nothing of page counts, leases or eviction; the two fields of `Node` that others write are named there.

The tree is a compressed prefix tree (Morrison's PATRICIA idea, over token ids) with one restriction: an edge is cut only
at a page boundary, because a page of K/V cannot belong to two nodes. Two kinds of node follow:

    root ──[0..31: two whole pages]── A ──[32..79: three whole pages]── B        whole nodes: any number of full pages
                                      ├──[32..47]── C
                                      └──[32..36: 5 tokens]                      a tail: one page, not full, never a parent

A hit is exact to the token although edges are not: children stand sorted by the tokens of their first page, so the child
that agrees longest with a query is one of the two neighbours of the query's place in that order. One binary search finds
it, whatever the fan-out, and the caller copies the agreeing part of its first page.

Sort keys are the tokens as big-endian bytes: byte order is then token order, a prefix sorts before what extends it, and
`bisect` compares in C.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..errors import InvariantError

I32 = npt.NDArray[np.int32]
KEY_BYTES = 4  # bytes of one token in a sort key


def sort_key(token_ids: I32) -> bytes:
    """The tokens as bytes whose order is the tokens' order."""
    return token_ids.astype(">u4").tobytes()


def common_prefix_length(left: I32, right: I32) -> int:
    """How many leading elements of the two arrays are equal."""
    length = min(left.size, right.size)
    differs = left[:length] != right[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length


class Node:
    """One edge of the tree and the place it leads to.

    `num_locks`, `last_access`, `outlook` and `queue_serial` belong to eviction.py: how many paths in use end here or below, when
    this node was last on a path, what is expected of it, and its live entry in the heap (0: none). `in_tree` is False once the node was detached. A split keeps the identity of the lower part, so
    whoever remembers a node still stands at the end of the same tokens.
    """

    __slots__ = (
        "_buffer", "child_keys", "children", "in_tree", "last_access", "namespace", "num_locks", "num_tokens",
        "outlook", "pages", "parent", "queue_serial",
    )  # fmt: skip

    def __init__(self, token_ids: I32, pages: list[int]) -> None:
        self._buffer: I32 = token_ids.astype(np.int32, copy=True)
        self.num_tokens = int(token_ids.size)
        self.pages = pages
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.child_keys: list[bytes] = []
        self.in_tree = False
        self.num_locks = 0
        self.last_access = 0
        self.outlook = 0
        self.queue_serial = 0
        self.namespace: str | None = None  # set on roots only

    @property
    def token_ids(self) -> I32:
        """The tokens of this edge (a view)."""
        return self._buffer[: self.num_tokens]

    def append_tokens(self, token_ids: I32) -> None:
        """Add tokens at the end, O(1) amortised per token."""
        end = self.num_tokens + int(token_ids.size)
        if end > self._buffer.size:
            grown = np.empty(max(end, 2 * self._buffer.size), dtype=np.int32)
            grown[: self.num_tokens] = self.token_ids
            self._buffer = grown
        self._buffer[self.num_tokens : end] = token_ids
        self.num_tokens = end

    def replace_tokens(self, token_ids: I32) -> None:
        """Let the edge spell other tokens; the caller moves the pages and the sort key."""
        self._buffer = token_ids.astype(np.int32, copy=True)
        self.num_tokens = int(token_ids.size)

    def drop_pages(self, num_pages: int, page_size: int) -> list[int]:
        """Cut the last `num_pages` pages off the end of a whole node and return them."""
        cut = len(self.pages) - num_pages
        dropped = self.pages[cut:]
        del self.pages[cut:]
        self.num_tokens = cut * page_size
        return dropped


@dataclass(frozen=True, slots=True)
class Match:
    """How far a query follows the tree: whole nodes to `node`, then whole pages of `edge`, then a part of one page."""

    node: Node  # deepest node that the query passes completely (maybe the root)
    num_node_tokens: int  # tokens from the root to the end of `node`
    edge: (
        Node | None
    )  # the child of `node` on which the query stops, None when it agrees with no child
    num_edge_pages: (
        int  # whole pages of `edge` that agree; page `num_edge_pages` of it holds the partial part
    )
    num_partial_tokens: int  # leading tokens of that page that agree, fewer than a page

    def num_tokens(self, page_size: int) -> int:
        """Length of the longest common prefix."""
        return self.num_node_tokens + self.num_edge_pages * page_size + self.num_partial_tokens


class RadixTree:
    """The trees of all namespaces, one root each, so that namespaces share nothing. Tokens are int32 arrays."""

    __slots__ = ("page_size", "roots")

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.roots: dict[str, Node] = {}

    def root_of(self, namespace: str) -> Node:
        """The root of a namespace, made when missing."""
        root = self.roots.get(namespace)
        if root is None:
            root = self.roots[namespace] = Node(np.empty(0, dtype=np.int32), [])
            root.in_tree, root.namespace = True, namespace
        return root

    def prune_root(self, node: Node) -> None:
        """Forget a namespace of which nothing is left, so that salts do not pile up. Other nodes are ignored."""
        if node.namespace is not None and not node.children and not node.num_locks:
            self.roots.pop(node.namespace, None)
            node.in_tree = False

    def match(self, root: Node, token_ids: I32) -> Match:
        """Longest common prefix of `token_ids` with any path from `root`. O(tokens matched + nodes passed * log fan-out)."""
        node, position = root, 0
        while True:
            page_ids = token_ids[position : position + self.page_size]
            child, agreeing = self.closest_child(node, page_ids)
            if child is None or agreeing < self.page_size:
                return Match(node, position, child, 0, agreeing)
            agreeing = common_prefix_length(child.token_ids, token_ids[position:])
            if agreeing < child.num_tokens:
                return Match(node, position, child, *divmod(agreeing, self.page_size))
            node, position = child, position + agreeing

    def closest_child(self, node: Node, page_token_ids: I32) -> tuple[Node | None, int]:
        """The child of `node` whose first page agrees longest with `page_token_ids`, and how many tokens agree.

        (None, 0) when no child shares even the first token.
        """
        if not node.children or not page_token_ids.size:
            return None, 0
        place = bisect_left(node.child_keys, sort_key(page_token_ids))
        best, best_length = None, 0
        for child in node.children[max(place - 1, 0) : place + 1]:
            first_page = child.token_ids[: self.page_size]
            length = common_prefix_length(first_page, page_token_ids)
            if length > best_length:
                best, best_length = child, length
        return best, best_length

    def attach(self, parent: Node, node: Node) -> None:
        """Make `node`, whose first page differs from that of every child, a child of `parent`."""
        key = self.key_of(node)
        place = bisect_left(parent.child_keys, key)
        parent.child_keys.insert(place, key)
        parent.children.insert(place, node)
        node.parent = parent
        node.in_tree = True

    def covers(self, parent: Node, key: bytes) -> bool:
        """Whether some child of `parent` has a first page that starts with the tokens of `key`."""
        place = bisect_left(parent.child_keys, key)
        return place < len(parent.child_keys) and parent.child_keys[place].startswith(key)

    def previous_prefix(self, node: Node) -> Node | None:
        """The sibling just before `node` when its page is a prefix of the first page of `node`."""
        parent, place = self.parent_of(node), self.place_of(node)
        if place and parent.child_keys[place].startswith(parent.child_keys[place - 1]):
            return parent.children[place - 1]
        return None

    def grow_only_child(self, node: Node, token_ids: I32) -> None:
        """Append tokens to a tail that has no siblings: its sort key changes, its place cannot. O(tokens)."""
        node.append_tokens(token_ids)
        self.parent_of(node).child_keys[0] = self.key_of(node)

    def detach(self, node: Node) -> None:
        """Take a leaf out of the tree. It keeps `parent`, so that locks through it can still be undone."""
        parent = self.parent_of(node)
        place = self.place_of(node)
        del parent.child_keys[place]
        del parent.children[place]
        node.in_tree = False

    def split(self, node: Node, num_pages: int) -> Node:
        """Cut a whole node after `num_pages` pages. Returns the new upper part; `node` becomes the lower one."""
        parent, place = self.parent_of(node), self.place_of(node)
        cut = num_pages * self.page_size
        upper = Node(node.token_ids[:cut], node.pages[:num_pages])
        upper.parent, upper.in_tree = parent, True
        upper.num_locks, upper.last_access = node.num_locks, node.last_access
        parent.children[place] = upper  # same first page, same key
        node.pages = node.pages[num_pages:]
        node.replace_tokens(node.token_ids[cut:])
        node.parent = upper
        upper.children, upper.child_keys = [node], [self.key_of(node)]
        return upper

    def key_of(self, node: Node) -> bytes:
        """Sort key of a node among its siblings: the tokens of its first page."""
        return sort_key(node.token_ids[: self.page_size])

    def parent_of(self, node: Node) -> Node:
        """The parent of a node that is in the tree and not the root."""
        if node.parent is None or not node.in_tree:
            raise InvariantError("a node outside the tree has no parent")
        return node.parent

    def place_of(self, node: Node) -> int:
        """Index of the node among its parent's children."""
        parent = self.parent_of(node)
        place = bisect_left(parent.child_keys, self.key_of(node))
        if place == len(parent.children) or parent.children[place] is not node:
            raise InvariantError("a node is not where its first page sorts it")
        return place

    def is_extended(self, node: Node) -> bool:
        """Whether the page after a tail in the order of siblings starts with all of the tail's tokens.

        Then the tail answers no query that its sibling does not answer as well.
        """
        parent, place = self.parent_of(node), self.place_of(node)
        following = parent.child_keys[place + 1 : place + 2]
        return bool(following) and following[0].startswith(parent.child_keys[place])

    def walk(self) -> Iterator[Node]:
        """All nodes but the roots, parents first. Without recursion: a chain may be deep."""
        waiting = [child for root in self.roots.values() for child in root.children]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children)

    def check(self) -> None:
        """Raise InvariantError when the structure contradicts itself."""
        for parent in (*self.roots.values(), *self.walk()):
            if any(a >= b for a, b in pairwise(parent.child_keys)):
                raise InvariantError("children are not in strictly ascending order")
            if parent.child_keys != [self.key_of(child) for child in parent.children]:
                raise InvariantError("a sort key differs from the tokens of its node")
            if any(child.parent is not parent or not child.in_tree for child in parent.children):
                raise InvariantError("a child does not know its parent")
        for node in self.walk():
            if not node.num_tokens or len(node.pages) != -(-node.num_tokens // self.page_size):
                raise InvariantError(f"{node.num_tokens} tokens stand in {len(node.pages)} pages")
            if node.num_tokens % self.page_size and (node.children or len(node.pages) > 1):
                raise InvariantError("a page that is not full is not a lone leaf")
