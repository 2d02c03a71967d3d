"""The audit behind PrefixCache.check(). Owns nothing; recounts everything from scratch and compares.
Slow on purpose: it must not share a shortcut with the code that it checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..errors import InvariantError
from .eviction import EvictionQueue
from .lease import Lease
from .pages import PagePool
from .tree import Node, RadixTree


def audit(tree: RadixTree, queue: EvictionQueue, pool: PagePool, leases: Iterable[Lease]) -> None:
    """Raise InvariantError at the first contradiction."""
    leases = list(leases)
    nodes = list(tree.walk())
    tree.check()
    pool.check()
    queue.check(nodes)
    _check_locks(tree, nodes, leases)
    _check_holders(tree, pool, nodes, leases)
    for lease in leases:
        _check_lease(tree, lease)
    for node in nodes:
        if node.num_tokens < tree.page_size and not node.num_locks and tree.is_extended(node):
            raise InvariantError("an unlocked tail is a prefix of its sibling")
    for namespace, root in tree.roots.items():
        if not root.children and not root.num_locks:
            raise InvariantError(f"namespace {namespace!r} is empty and unused")


def _path(node: Node) -> list[Node]:
    path: list[Node] = []
    step: Node | None = node
    while step is not None:
        path.append(step)
        step = step.parent
    return path[::-1]


def _check_locks(tree: RadixTree, nodes: list[Node], leases: list[Lease]) -> None:
    counted: Counter[int] = Counter()
    for lease in leases:
        ends = [lease.node if lease.tail is None else lease.tail]
        if lease.copy_source is not None:
            ends.append(lease.copy_source)
        for end in ends:
            counted.update(id(node) for node in _path(end))
    for node in (*tree.roots.values(), *nodes):
        if counted[id(node)] != node.num_locks:
            raise InvariantError(
                f"{counted[id(node)]} paths pass a node locked {node.num_locks} times"
            )


def _check_holders(tree: RadixTree, pool: PagePool, nodes: list[Node], leases: list[Lease]) -> None:
    owners = Counter(page_id for node in nodes for page_id in node.pages)
    pending: Counter[int] = Counter()
    for lease in leases:
        num_published = lease.num_shared // tree.page_size + (lease.tail is not None)
        owners.update(lease.page_ids[num_published:])
        pending.update(copy.source for copy in lease.page_copies)
    home = {page_id: node for node in nodes for page_id in node.pages}
    for lease in leases:
        for copy in lease.page_copies:
            if home.get(copy.source, lease.copy_source) is not lease.copy_source:
                raise InvariantError(
                    "a page still to be copied moved away from the node locked for it"
                )
    twice = [page_id for page_id, count in owners.items() if count > 1]
    if twice:
        raise InvariantError(f"pages {twice} have two owners")
    for page_id in range(pool.num_pages):
        expected = owners[page_id] + pending[page_id]
        if pool.num_holders(page_id) != expected:
            raise InvariantError(
                f"page {page_id} counts {pool.num_holders(page_id)} holders and has {expected}"
            )


def _check_lease(tree: RadixTree, lease: Lease) -> None:
    path = _path(lease.node)
    if path[0] is not tree.roots.get(lease.namespace) or not all(node.in_tree for node in path):
        raise InvariantError("the path of a lease has left the tree")
    pages = [page_id for node in path for page_id in node.pages]
    if len(pages) * tree.page_size != lease.num_shared or lease.page_ids[: len(pages)] != pages:
        raise InvariantError("the page table of a lease differs from its path")
    tail = lease.tail
    if tail is not None and (
        tail.parent is not lease.node or tail.pages != lease.page_ids[len(pages) : len(pages) + 1]
    ):
        raise InvariantError("the tail of a lease is not below its path")
