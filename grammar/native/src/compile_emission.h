// Graph -> program: the finished automaton as flat arrays, in the order of `GrammarProgram`'s fields.
#pragma once

#include <cstdint>
#include <vector>

#include "compile_graph.h"

namespace radix_compile {

// The body of a serialised program: each array as its length (8 bytes) and its little-endian bytes. Everything in `graph` that
// `start` leads to must be able to end.
std::vector<uint8_t> emit(Graph& graph, int32_t start, const Bits256& alphabet, const Limits& limits);

}  // namespace radix_compile
