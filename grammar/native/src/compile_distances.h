// Shortest completions: the least bytes from each state to the end of its region.
#pragma once

#include <vector>

#include "compile_graph.h"

namespace radix_compile {

// Per graph state; kNever for states that reach no end.
std::vector<int64_t> shortest_completions(const Graph& graph);

}  // namespace radix_compile
