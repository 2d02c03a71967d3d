// The order of regions by who may enter whom before consuming a byte.
#pragma once

#include <vector>

#include "compile_graph.h"

namespace radix_compile {

// Per region, the regions it may enter before it consumes; empty where `is_used` is false.
Rows<int32_t> all_left_calls(Graph& graph, const std::vector<char>& is_used);

// Regions in strongly connected groups; each group stands behind all groups that it left-calls.
std::vector<std::vector<int32_t>> call_groups(size_t num_regions, const Rows<int32_t>& calls);

// Ranks: a region's left calls have higher ones. A circle is a bug of the caller.
std::vector<int32_t> region_ranks(Graph& graph, const std::vector<char>& is_used);

}  // namespace radix_compile
