// Texts off a list: the tree of the listed texts as plain expressions.
#pragma once

#include <vector>

#include "compile_interner.h"

namespace radix_compile {

// The expression that `node` (an Unlisted) stands for; `tail` and `special` are the nodes of its parts. Each step off the tree leads to the
// same tail, so it is deterministic and about as large as the texts.
class UnlistedTree {
public:
    UnlistedTree(Dag& dag, Interner& interner, const Node& node, int32_t tail, int32_t special);
    int32_t build() { return place(0, starts_.size() - 1, 0); }

private:
    int32_t place(size_t low, size_t high, int64_t depth);
    int32_t fork(size_t low, size_t high, int64_t depth);
    int32_t ways(const std::vector<int32_t>& inside, bool is_end, const Bits256& free);
    int32_t step(uint8_t byte, int32_t below);
    int32_t add(Kind kind, const std::vector<int32_t>& kids);
    int64_t size_of(size_t text) const { return node_.info[text]; }
    uint8_t byte_of(size_t text, int64_t depth) const { return node_.text[size_t(starts_[text] + depth)]; }

    Dag& dag_;
    Interner& interner_;
    const Node& node_;
    int32_t tail_, special_, empty_;
    std::vector<int64_t> starts_;  // of the texts in node.text, and their end
};

}  // namespace radix_compile
