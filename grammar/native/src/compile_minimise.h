// Merges the states of a deterministic automaton that accept the same texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace radix_compile {

struct Transition {
    int32_t source, label, target;
};

// The class of each state, numbered from 0. Missing transitions mean rejection; every state must be able to reach acceptance.
std::vector<int32_t> equal_states(size_t num_states, const std::vector<Transition>& transitions,
                                  const std::vector<char>& is_accepting);

}  // namespace radix_compile
