// Intersection, difference and erasure of regular expressions: one small deterministic automaton for each And, Minus and Erase.
#pragma once

#include <memory>
#include <vector>

#include "compile_bits.h"
#include "compile_dag.h"

namespace radix_compile {

struct DfaMove {
    Bits256 mask;
    int32_t target;
};

// State 0 starts; every state can reach acceptance; no states at all: the empty language. No two states accept the same texts.
struct Dfa {
    std::vector<size_t> row_start{0};
    std::vector<DfaMove> moves;
    std::vector<char> is_accepting;

    size_t num_states() const { return is_accepting.size(); }
    View<DfaMove> row(size_t state) const {
        return {moves.data() + row_start[state], row_start[state + 1] - row_start[state]};
    }
};

// The automaton of every product node, inner ones first; null for all other nodes. They may still hold marker bytes from outside
// the alphabet: whoever embeds one in a graph filters its edges.
std::vector<std::shared_ptr<const Dfa>> build_products(const Dag& dag, const Bits256& alphabet, const Limits& limits);

}  // namespace radix_compile
