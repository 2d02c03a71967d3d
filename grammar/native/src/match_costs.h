// Distances to a complete text in tokens, per program state, for one vocabulary.
//
// Owns the costs that a match's distance is made of. A completion is counted by single-byte tokens; where the vocabulary lacks one for
// some byte, the program's own distances are computed again without it. Knows nothing of stacks.
// Source: Knuth, "A generalization of Dijkstra's algorithm", 1977.
#pragma once

#include "program.h"

namespace radix {

// `has_single[byte]`: some token is this byte alone. The result has one entry per state, at most MAX_COST.
const i64* token_costs(Program& program, const u8* has_single);

}  // namespace radix
