// Subset construction, lazily: a flat graph (byte edges and empty moves only) made deterministic as far as it is asked.
// Source: Rabin & Scott, "Finite automata and their decision problems", 1959.
#pragma once

#include <unordered_map>
#include <vector>

#include "compile_graph.h"

namespace radix_compile {

const int32_t kDead = -1;

// Numbers for sequences of integers, all kept in one array.
class SequenceTable {
public:
    // The number of `sequence`; new ones are numbered on.
    int32_t intern(const std::vector<int32_t>& sequence);
    View<int32_t> operator[](size_t number) const {
        return {elements_.data() + start_[number], start_[number + 1] - start_[number]};
    }
    size_t size() const { return start_.size() - 1; }

private:
    std::vector<int32_t> elements_;
    std::vector<size_t> start_{0};
    std::vector<uint64_t> hashes_;
    std::vector<int32_t> slots_;
};

// The bytes that no mask tells apart, grouped into disjoint sets; bytes in no mask are left out.
std::vector<Bits256> byte_classes(const std::vector<Bits256>& masks);

class Subsets {
public:
    Subsets(Graph& graph, int32_t start, const std::vector<Bits256>& classes);

    int32_t start() const { return start_; }
    bool is_accepting(int32_t subset) const { return is_accepting_[subset] != 0; }
    // For each byte class, the subset after it, or kDead. Valid until the next call.
    const int32_t* row(int32_t subset);

private:
    int32_t closed(const std::vector<int32_t>& targets);
    int32_t add(const std::vector<int32_t>& states);

    Graph& graph_;
    size_t num_classes_;
    std::vector<std::vector<int32_t>> classes_of_;  // mask number -> classes
    std::vector<std::vector<int32_t>> closures_;    // per graph state: what it leads to and has edges or ends
    std::vector<int32_t> single_;                   // per graph state: the subset of its closure, or -1
    SequenceTable table_;
    std::vector<char> is_accepting_;
    std::vector<int32_t> rows_;
    std::vector<char> has_row_;
    std::vector<std::vector<int32_t>> after_;  // per class, while a row is made
    int32_t start_;
};

}  // namespace radix_compile
