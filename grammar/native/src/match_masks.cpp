// Putting masks together, and their memo.
#include "match_masks.h"

#include <algorithm>

#include "match_costs.h"
#include "match_matcher.h"

namespace radix {
namespace {

constexpr u32 kDenseWordsMin = 256;
constexpr u32 kWordsPerDifference = 4;  // of a row, for each word in which it differs, where it is kept as differences
constexpr u32 kMaxReturns = 64;  // with more callers known, states are taken as they are
constexpr u32 kWholeTrie = 0;

}  // namespace

Masks::Masks(Vocabulary* vocabulary, const u8* body, std::size_t size, std::size_t memo_bytes, std::size_t state_bytes)
    : vocabulary_(vocabulary),
      program_(body, size),
      moves_(program_),
      costs_(token_costs(program_, vocabulary->has_single)),
      states_(std::make_unique<StateStore>(program_, moves_, costs_)),
      walker_(std::make_unique<Walker>(*vocabulary, program_, *states_)),
      memo_limit_(memo_bytes),
      state_budget_(state_bytes),
      state_limit_(state_bytes),
      root_sets_(1),
      row_(vocabulary->num_words) {
    ++vocabulary->num_users;
}

Masks::~Masks() {
    if (--vocabulary_->num_users == 0) delete vocabulary_;
}

std::size_t Masks::num_bytes() const {
    return num_memo_bytes_ + num_root_bytes_ + states_->num_bytes() + program_.num_bytes();
}

void Masks::fill(u32 state, u32* out, i64 budget) {
    const u32 num_words = vocabulary_->num_words;
    const MatchState& from = (*states_)[state];
    const i64 worst_cost = add(kWholeTrie, state, out, 0, true);
    if (budget >= 0 && from.cost <= budget && worst_cost > budget - 1) {
        std::fill(out, out + num_words, 0);
        add_within(state, out, budget - 1);
    }
    if (from.is_accepting)
        for (u32 word = 0; word < num_words; ++word) out[word] |= vocabulary_->end_row[word];
}

// Allows the tokens that go on from `state` below the root set; returns an upper bound on the distance behind any of them. The first call
// of a mask overwrites `out`.
i64 Masks::add(u32 root_set, u32 state, u32* out, u32 num_returns, bool is_first) {
    const u32 num_words = vocabulary_->num_words;
    if (!(*states_)[state].num_configs) {
        if (is_first) std::fill(out, out + num_words, 0);
        return 0;
    }
    u32 holes = NONE, abstract = state;
    if (num_returns <= kMaxReturns) abstract = states_->abstract(state, walker_->trie(0).max_depth, num_returns, holes);
    const Entry& entry = *entries_[entry_of(root_set, abstract)];
    if (entry.is_dense) {
        if (is_first) {
            std::copy(entry.bits.begin(), entry.bits.end(), out);
        } else {
            for (u32 word = 0; word < num_words; ++word) out[word] |= entry.bits[word];
        }
    } else if (is_first) {
        if (entry.base) std::copy(entry.base, entry.base + num_words, out);
        else std::fill(out, out + num_words, 0);
        for (std::size_t i = 0; i < entry.words.size(); ++i) out[entry.words[i]] = entry.bits[i];
    } else {
        for (std::size_t i = 0; i < entry.words.size(); ++i) out[entry.words[i]] |= entry.bits[i];
    }
    i64 worst_cost = cost_sum(entry.worst_cost, (*states_)[state].worst_cost);
    Short<std::pair<u32, u32>, 8> groups;  // a copy: the entry may be dropped meanwhile
    for (const auto& group : entry.groups) groups.push(group);
    for (const auto& [group_state, group_roots] : groups) {
        const u32 after = states_->concrete(group_state, holes);
        worst_cost = std::max(worst_cost, add(group_roots, after, out, num_returns + 1, false));
    }
    return worst_cost;
}

void Masks::add_within(u32 state, u32* out, i64 max_cost) {
    Found found{out, nullptr, 0, max_cost};
    walker_->whole<true>(state, found);
}

// ---------------------------------------------------------------------------------------------- memo

u32 Masks::entry_of(u32 root_set, u32 state) {
    u32 slot = NONE;
    if (root_set == kWholeTrie) {
        slot = (*states_)[state].entry;
    } else if (const auto found = slots_.find(u64(root_set) << 32 | state); found != slots_.end()) {
        slot = found->second;
    }
    if (slot != NONE) {
        if (slot != newest_) unlink(slot), link(slot);
        return slot;
    }
    slot = walk(root_set, state);
    link(slot);
    num_memo_bytes_ += entries_[slot]->num_bytes();
    while (num_memo_bytes_ > memo_limit_ && oldest_ != newest_) drop(oldest_);
    return slot;
}

u32 Masks::walk(u32 root_set, u32 state) {
    auto entry = std::make_unique<Entry>();
    std::fill(row_.begin(), row_.end(), 0);
    stopped_.clear();
    Found found{row_.data(), &stopped_, 0, 0};
    if (root_set == kWholeTrie) {
        walker_->whole<false>(state, found);
        const std::size_t second = std::min(walker_->second_begin(), stopped_.size());
        group(0, 0, second, *entry);
        group(walker_->second_trie(), second, stopped_.size(), *entry);
    } else {
        const u32 number = root_sets_[root_set].trie;
        const Trie& trie = walker_->trie(number);
        const std::vector<u32>& nodes = root_sets_[root_set].nodes;
        for (u32 node : nodes) walker_->below<false>(trie, node, state, found);
        group(number, 0, stopped_.size(), *entry);
    }
    entry->key = u64(root_set) << 32 | state;
    entry->worst_cost = found.worst_cost;
    keep_row(*entry, root_set == kWholeTrie);
    u32 slot = u32(entries_.size());
    if (!free_slots_.empty()) {
        slot = free_slots_.back();
        free_slots_.pop_back();
        entries_[slot] = std::move(entry);
    } else {
        entries_.push_back(std::move(entry));
    }
    if (root_set == kWholeTrie) {
        (*states_)[state].entry = slot;
    } else {
        slots_[u64(root_set) << 32 | state] = slot;
    }
    return slot;
}

// Keeps `row_`: as it is, or the words in which it differs from an empty row or, at the start of a mask, from all tokens of a slice.
void Masks::keep_row(Entry& entry, bool is_start) {
    auto differs = [&](u32 word, const u32* base) { return row_[word] != (base ? base[word] : 0); };
    auto num_different = [&](const u32* base) {
        std::size_t count = 0;
        for (u32 word = 0; word < row_.size(); ++word) count += differs(word, base);
        return count;
    };
    std::size_t used = num_different(nullptr);
    entry.is_dense = used >= kDenseWordsMin;
    for (const Slice& slice : vocabulary_->slices) {
        if (!is_start || !slice.num_tokens || used < kDenseWordsMin) break;
        const u32* base = vocabulary_->slice_row(slice, slice.max_chars);
        const std::size_t count = num_different(base);
        if (count >= used || count * kWordsPerDifference > row_.size()) continue;
        entry.base = base;
        entry.is_dense = false;
        used = count;
    }
    if (entry.is_dense) {
        entry.bits = row_;
        return;
    }
    entry.words.reserve(used);
    entry.bits.reserve(used);
    for (u32 word = 0; word < row_.size(); ++word)
        if (differs(word, entry.base)) entry.words.push_back(word), entry.bits.push_back(row_[word]);
}

// Groups the stopped nodes begin .. end of one trie by state.
void Masks::group(u32 trie, std::size_t begin, std::size_t end, Entry& entry) {
    if (begin == end) return;
    std::sort(stopped_.begin() + std::ptrdiff_t(begin), stopped_.begin() + std::ptrdiff_t(end));
    std::vector<u32> nodes;
    for (std::size_t i = begin; i < end; ++i) {
        nodes.push_back(stopped_[i].second);
        if (i + 1 < end && stopped_[i + 1].first == stopped_[i].first) continue;
        entry.groups.push_back({stopped_[i].first, root_set(trie, nodes)});
        nodes.clear();
    }
}

u32 Masks::root_set(u32 trie, const std::vector<u32>& nodes) {
    u64 hash = trie;
    for (u32 node : nodes) hash = mix(hash, node);
    const auto [begin, end] = root_set_index_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
        if (root_sets_[at->second].trie == trie && root_sets_[at->second].nodes == nodes) return at->second;
    const u32 number = u32(root_sets_.size());
    root_sets_.push_back({trie, nodes});
    root_set_index_.emplace(hash, number);
    num_root_bytes_ += sizeof(RootSet) + 64 + nodes.size() * 4;
    return number;
}

void Masks::unlink(u32 slot) {
    Entry& entry = *entries_[slot];
    (entry.older == NONE ? oldest_ : entries_[entry.older]->newer) = entry.newer;
    (entry.newer == NONE ? newest_ : entries_[entry.newer]->older) = entry.older;
}

void Masks::link(u32 slot) {
    Entry& entry = *entries_[slot];
    entry.older = newest_;
    entry.newer = NONE;
    (newest_ == NONE ? oldest_ : entries_[newest_]->newer) = slot;
    newest_ = slot;
}

void Masks::drop(u32 slot) {
    unlink(slot);
    const u64 key = entries_[slot]->key;
    num_memo_bytes_ -= entries_[slot]->num_bytes();
    if (key >> 32 == kWholeTrie) {
        (*states_)[u32(key)].entry = NONE;
    } else {
        slots_.erase(key);
    }
    entries_[slot].reset();
    free_slots_.push_back(slot);
}

void Masks::forget() {
    auto states = std::make_unique<StateStore>(program_, moves_, costs_);
    std::vector<u32> ids;
    for (Matcher* matcher = matchers; matcher; matcher = matcher->next)
        for (const Point& point : matcher->points()) ids.push_back(point.state);
    std::vector<u32*> places;
    places.reserve(ids.size());
    for (u32& id : ids) places.push_back(&id);
    states->adopt(*states_, places);
    auto walker = std::make_unique<Walker>(*vocabulary_, program_, *states);
    // nothing below can fail
    std::size_t at = 0;
    for (Matcher* matcher = matchers; matcher; matcher = matcher->next)
        for (Point& point : matcher->points()) point.state = ids[at++];
    states_ = std::move(states);
    walker_ = std::move(walker);
    entries_.clear();
    free_slots_.clear();
    slots_.clear();
    oldest_ = newest_ = NONE;
    num_memo_bytes_ = num_root_bytes_ = 0;
    root_sets_.resize(1);
    root_set_index_.clear();
    state_limit_ = std::max(state_budget_, 2 * states_->num_bytes());
}

}  // namespace radix
