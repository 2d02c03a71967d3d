// The nodes of a graph under construction, by content: equal parts are one node.
#pragma once

#include <algorithm>
#include <vector>

#include "compile_dag.h"

namespace radix_compile {

template <typename T>
inline bool is_same(View<T> left, View<T> right) {
    return left.size() == right.size() &&
           (left.size() == 0 || std::memcmp(left.first, right.first, left.size() * sizeof(T)) == 0);
}

template <typename T>
inline uint64_t hash_of_view(View<T> view) {
    return hash_of(reinterpret_cast<const uint8_t*>(view.first), view.size() * sizeof(T));
}

// Nodes by content: kind, payload and the numbers of the parts.
class Interner {
public:
    explicit Interner(Dag& dag) : dag_(dag), slots_(256, -1) {}

    // The node equal to `node` with the parts dag.kids[first..], which are dropped again if it was known.
    int32_t intern(Node node, int32_t first) {
        node.first_kid = first;
        uint64_t hash = hash_node(node);
        size_t slot = hash & (slots_.size() - 1);
        while (slots_[slot] >= 0) {
            int32_t known = slots_[slot];
            if (hashes_[known] == hash && is_equal(dag_.nodes[known], node)) {
                dag_.kids.resize(first);
                if (dag_.nodes[known].origin < 0) dag_.nodes[known].origin = node.origin;
                return known;
            }
            slot = (slot + 1) & (slots_.size() - 1);
        }
        int32_t number = slots_[slot] = int32_t(dag_.nodes.size());
        dag_.nodes.push_back(node);
        hashes_.push_back(hash);
        if (2 * dag_.nodes.size() > slots_.size()) grow();
        return number;
    }

private:
    View<int32_t> kids(const Node& node) const {
        return {dag_.kids.data() + node.first_kid, size_t(node.num_kids)};
    }
    uint64_t hash_node(const Node& node) const {
        uint64_t hash = mix(uint64_t(node.kind), uint64_t(node.num_kids));
        hash = mix(hash, uint64_t(node.lo) * 31 + uint64_t(node.hi));
        for (int32_t kid : kids(node)) hash = mix(hash, uint64_t(int64_t(kid)));
        hash = mix(hash, hash_of_view(node.text));
        hash = mix(hash, hash_of_view(node.info));
        return mix(hash, hash_of(node.mask));
    }
    bool is_equal(const Node& left, const Node& right) const {
        return left.kind == right.kind && left.lo == right.lo && left.hi == right.hi && left.mask == right.mask &&
               is_same(kids(left), kids(right)) && is_same(left.text, right.text) && is_same(left.info, right.info);
    }
    void grow() {
        slots_.assign(slots_.size() * 4, -1);
        for (size_t i = 0; i < hashes_.size(); ++i) {
            size_t slot = hashes_[i] & (slots_.size() - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = int32_t(i);
        }
    }
    Dag& dag_;
    std::vector<int32_t> slots_;
    std::vector<uint64_t> hashes_;
};

}  // namespace radix_compile
