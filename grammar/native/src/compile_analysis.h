// Decisions about the expression graph: what becomes a region (subroutine), what a counted loop, what accepts the empty string.
#pragma once

#include <vector>

#include "compile_dag.h"

namespace radix_compile {

class Analysis {
public:
    explicit Analysis(const Dag& dag);

    // Whether a part is built once and called: it is recursive, or large and used more than once.
    bool is_region(int32_t node) const { return is_region_[node]; }
    // Whether a repeat becomes a counted loop; otherwise its copies are built.
    bool is_counted(const Node& repeat) const;
    // Whether a part accepts the empty string; valid after `find_nullable`.
    bool accepts_empty(int32_t node) const { return nullable_[node]; }
    // `product_accepts_empty` says it of every product node; other entries are not read.
    void find_nullable(const std::vector<char>& product_accepts_empty);

private:
    int64_t size_in_parent(int32_t node) const;
    int64_t size_of(const Node& node) const;
    bool is_nullable(int32_t node) const;

    const Dag& dag_;
    std::vector<char> is_region_, nullable_;
    std::vector<int64_t> sizes_;
};

}  // namespace radix_compile
