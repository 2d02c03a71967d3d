// Depth-first walks: one pass over the run of nodes, dead subtrees skipped.
#include "match_walk.h"

#include <algorithm>

namespace radix {

template <bool Exact>
void Walker::allow(const Trie& trie, u32 token, u32 state, Found& found) {
    if (token == NONE) return;
    const i64 cost = states_[state].cost;
    if (Exact && cost > found.max_cost) return;
    if (!Exact && cost > found.worst_cost) found.worst_cost = cost;
    trie.tokens(token, [&](u32 id) { found.row[id >> 5] |= 1u << (id & 31); });
}

// `node` is alive and `state` the state there.
template <bool Exact>
void Walker::take(const Trie& trie, u32 node, u32 state, Found& found) {
    allow<Exact>(trie, trie.nodes[node].token, state, found);
    if (trie.nodes[node].size() == 1) return;
    if (states_[state].num_holes) {
        found.stopped->push_back({state, node});
    } else {
        below<Exact>(trie, node, state, found);
    }
}

template <bool Exact>
void Walker::from_root(const Trie& trie, u32 state, Found& found) {
    i32* row = states_.row(state);
    for (u32 byte = 0; byte < 256; ++byte) {
        const u32 child = trie.root_child[byte];
        if (!child) continue;
        i32 after = row[class_of_[byte]];
        if (after == UNKNOWN) after = states_.fill(state, class_of_[byte]);
        if (after >= 0) take<Exact>(trie, child, u32(after), found);
    }
}

template <bool Exact>
void Walker::below(const Trie& trie, u32 root, u32 state, Found& found) {
    const Node* nodes = trie.nodes.data();
    u32 at = root + 1, depth = 0;
    levels_[0] = {states_.row(state), root + nodes[root].size(), state};
    for (;;) {
        while (at == levels_[depth].end) {
            if (depth == 0) return;
            --depth;
        }
        const Node node = nodes[at];
        const u32 byte_class = class_of_[node.byte()];
        i32 after = levels_[depth].row[byte_class];
        if (after == UNKNOWN) after = states_.fill(levels_[depth].state, byte_class);
        if (after == DEAD) {
            at += node.size();
            continue;
        }
        if (node.token != NONE) allow<Exact>(trie, node.token, u32(after), found);
        if (node.size() == 1) {
            ++at;
        } else if (states_[u32(after)].num_holes) {
            found.stopped->push_back({u32(after), at});
            at += node.size();
        } else {
            levels_[++depth] = {states_.row(u32(after)), at + node.size(), u32(after)};
            ++at;
        }
    }
}

template void Walker::below<false>(const Trie&, u32, u32, Found&);
template void Walker::below<true>(const Trie&, u32, u32, Found&);
template void Walker::from_root<false>(const Trie&, u32, Found&);
template void Walker::from_root<true>(const Trie&, u32, Found&);
template void Walker::take<false>(const Trie&, u32, u32, Found&);
template void Walker::take<true>(const Trie&, u32, u32, Found&);
template void Walker::allow<false>(const Trie&, u32, u32, Found&);
template void Walker::allow<true>(const Trie&, u32, u32, Found&);

}  // namespace radix
