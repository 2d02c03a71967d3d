// UTF-8 as byte ranges: which bytes spell the code points of a set, as a small automaton with shared tails.
#pragma once

#include <cstdint>
#include <vector>

#include "compile_bits.h"

namespace radix_compile {

// State 0 is where a code point is complete; `start` is where it begins. Rows list (bytes, state after).
struct CharTree {
    std::vector<std::vector<std::pair<Bits256, int32_t>>> rows;
    int32_t start = 0;
};

// `ranges` are pairs of inclusive code point bounds, sorted, disjoint, without surrogates.
CharTree char_tree(View<int64_t> ranges);

}  // namespace radix_compile
