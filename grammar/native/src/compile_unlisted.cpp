// Texts off a list, written out from the ends of the texts towards their beginning. Only forks inside forks are a recursion, and each of
// those is a text that goes on where another one ends or parts.

#include "compile_unlisted.h"

namespace radix_compile {

UnlistedTree::UnlistedTree(Dag& dag, Interner& interner, const Node& node, int32_t tail, int32_t special)
    : dag_(dag), interner_(interner), node_(node), tail_(tail), special_(special), empty_(add(Kind::Seq, {})) {
    starts_.push_back(0);
    for (int64_t size : node.info) starts_.push_back(starts_.back() + size);
}

// The place at `depth` on the way to the texts low .. high-1, which agree up to there.
int32_t UnlistedTree::place(size_t low, size_t high, int64_t depth) {
    int64_t shared = depth;  // how far they agree: the first and the last of them, since they are sorted
    int64_t most = std::min(size_of(low), size_of(high - 1));
    while (shared < most && byte_of(low, shared) == byte_of(high - 1, shared)) ++shared;
    int32_t below = fork(low, high, shared);
    while (shared > depth) {
        uint8_t byte = byte_of(low, --shared);
        below = ways({step(byte, below)}, false, node_.mask.without(Bits256::of(byte)));
    }
    return below;
}

// The place where they part, or where the only one ends.
int32_t UnlistedTree::fork(size_t low, size_t high, int64_t depth) {
    bool is_end = size_of(low) == depth;
    if (is_end) ++low;
    std::vector<int32_t> inside;
    Bits256 free = node_.mask;
    while (low < high) {
        uint8_t byte = byte_of(low, depth);
        size_t next = low + 1;
        while (next < high && byte_of(next, depth) == byte) ++next;
        inside.push_back(step(byte, place(low, next, depth + 1)));
        free = free.without(Bits256::of(byte));
        low = next;
    }
    return ways(inside, is_end, free);
}

int32_t UnlistedTree::ways(const std::vector<int32_t>& inside, bool is_end, const Bits256& free) {
    std::vector<int32_t> all = inside;
    if (!is_end) all.push_back(empty_);
    Node bytes;
    bytes.kind = Kind::Bytes;
    bytes.mask = free;
    int32_t off = interner_.intern(bytes, int32_t(dag_.kids.size()));
    all.push_back(add(Kind::Seq, {off, tail_}));
    all.push_back(special_);
    return add(Kind::Alt, all);
}

int32_t UnlistedTree::step(uint8_t byte, int32_t below) {
    static const std::vector<uint8_t> every = [] {
        std::vector<uint8_t> bytes(256);
        for (size_t i = 0; i < 256; ++i) bytes[i] = uint8_t(i);
        return bytes;
    }();
    Node letter;
    letter.kind = Kind::Lit;
    letter.text = {every.data() + byte, 1};
    int32_t number = interner_.intern(letter, int32_t(dag_.kids.size()));
    return add(Kind::Seq, {number, below});
}

int32_t UnlistedTree::add(Kind kind, const std::vector<int32_t>& kids) {
    Node node;
    node.kind = kind;
    node.num_kids = int32_t(kids.size());
    int32_t first = int32_t(dag_.kids.size());
    dag_.kids.insert(dag_.kids.end(), kids.begin(), kids.end());
    return interner_.intern(node, first);
}

}  // namespace radix_compile
