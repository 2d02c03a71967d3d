#include "compile_subsets.h"

#include <algorithm>

namespace radix_compile {

int32_t SequenceTable::intern(const std::vector<int32_t>& sequence) {
    if (2 * hashes_.size() >= slots_.size()) {
        slots_.assign(slots_.empty() ? 64 : 4 * slots_.size(), -1);
        for (size_t i = 0; i < hashes_.size(); ++i) {
            size_t slot = hashes_[i] & (slots_.size() - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = int32_t(i);
        }
    }
    uint64_t hash = hash_of(reinterpret_cast<const uint8_t*>(sequence.data()), sequence.size() * sizeof(int32_t));
    size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] >= 0) {
        View<int32_t> known = (*this)[size_t(slots_[slot])];
        if (hashes_[slots_[slot]] == hash && known.size() == sequence.size() &&
            std::equal(known.begin(), known.end(), sequence.begin())) {
            return slots_[slot];
        }
        slot = (slot + 1) & (slots_.size() - 1);
    }
    elements_.insert(elements_.end(), sequence.begin(), sequence.end());
    start_.push_back(elements_.size());
    hashes_.push_back(hash);
    return slots_[slot] = int32_t(hashes_.size() - 1);
}

std::vector<Bits256> byte_classes(const std::vector<Bits256>& masks) {
    std::vector<Bits256> classes;
    Bits256 covered;
    for (const Bits256& mask : masks) {
        size_t num_old = classes.size();
        for (size_t i = 0; i < num_old; ++i) {
            Bits256 inside = classes[i] & mask;
            if (!inside.any() || inside == classes[i]) continue;
            classes.push_back(classes[i].without(mask));
            classes[i] = inside;
        }
        Bits256 rest = mask.without(covered);
        if (rest.any()) classes.push_back(rest);
        covered = covered | mask;
    }
    return classes;
}

Subsets::Subsets(Graph& graph, int32_t start, const std::vector<Bits256>& classes)
    : graph_(graph), num_classes_(classes.size()), after_(classes.size()) {
    for (const Bits256& mask : graph.masks()) {
        classes_of_.emplace_back();
        for (size_t i = 0; i < classes.size(); ++i) {
            if ((classes[i] & mask).any()) classes_of_.back().push_back(int32_t(i));
        }
    }
    closures_.resize(graph.num_states());
    single_.assign(graph.num_states(), -1);
    start_ = closed({start});
}

int32_t Subsets::closed(const std::vector<int32_t>& targets) {
    bool is_single = targets.size() == 1;
    if (is_single && single_[targets[0]] >= 0) return single_[targets[0]];
    std::vector<int32_t> found;
    for (int32_t target : targets) {
        std::vector<int32_t>& closure = closures_[target];
        if (closure.empty()) {
            for (int32_t state : graph_.closure(target)) {
                bool matters = graph_.is_end(state);
                for (int32_t m = graph_.first_move(state); m >= 0 && !matters; m = graph_.moves[m].next) {
                    matters = graph_.moves[m].kind == MoveKind::Edge;
                }
                if (matters) closure.push_back(state);
            }
            if (closure.empty()) closure.push_back(-1);  // leads nowhere
        }
        for (int32_t state : closure) {
            if (state >= 0) found.push_back(state);
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    int32_t subset = add(found);
    if (is_single) single_[targets[0]] = subset;
    return subset;
}

int32_t Subsets::add(const std::vector<int32_t>& states) {
    size_t num_known = table_.size();
    int32_t subset = table_.intern(states);
    if (table_.size() > num_known) {
        is_accepting_.push_back(std::any_of(states.begin(), states.end(), [this](int32_t s) { return graph_.is_end(s); }));
        has_row_.push_back(0);
        rows_.resize(rows_.size() + num_classes_, kDead);
    }
    return subset;
}

const int32_t* Subsets::row(int32_t subset) {
    if (!has_row_[subset]) {
        has_row_[subset] = 1;
        for (int32_t state : table_[size_t(subset)]) {
            for (int32_t m = graph_.first_move(state); m >= 0; m = graph_.moves[m].next) {
                const Move& move = graph_.moves[m];
                if (move.kind != MoveKind::Edge) continue;
                for (int32_t index : classes_of_[move.arg]) after_[index].push_back(move.target);
            }
        }
        int32_t before = kDead;
        for (size_t index = 0; index < num_classes_; ++index) {
            if (after_[index].empty()) continue;
            bool is_repeated = before >= 0 && after_[before] == after_[index];  // neighbouring classes often agree
            int32_t target = is_repeated ? rows_[subset * num_classes_ + size_t(before)] : closed(after_[index]);
            rows_[subset * num_classes_ + index] = target;
            before = int32_t(index);
        }
        for (std::vector<int32_t>& targets : after_) targets.clear();
    }
    return rows_.data() + size_t(subset) * num_classes_;
}

}  // namespace radix_compile
