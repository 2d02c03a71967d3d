// Token masks of one program over one vocabulary: exact, lazy, memoised. Shared by all matchers of that program, on one thread.
//
// Owns the memo, the closing-in-time rule and the trimming of states. One mask is put together from walks:
//
// 1. The state is taken abstractly: return addresses of the regions it stands in become holes, loop bounds farther than the longest token
//    become far. Many states share one abstract state, and so one memoised walk of the trie.
// 2. Where that walk returns into a hole, the token may go on only if the real caller agrees. Such nodes are left aside, grouped by their
//    abstract state; each group is walked on from the real state, again abstractly and memoised, with one more caller known.
//
// With a budget, a token is allowed only if the distance behind it is at most budget - 1. Each walk keeps the largest distance inside it,
// abstractly; with the worst cost of the real stack added this bounds every token's distance, and only if that bound does not fit are the
// real distances computed, by a walk of the real state.
#pragma once

#include <unordered_map>

#include "match_walk.h"

namespace radix {

class Matcher;

class Masks {
public:
    Masks(Vocabulary* vocabulary, const u8* body, std::size_t size, std::size_t memo_bytes, std::size_t state_bytes);
    ~Masks();

    // Writes the mask of `state` to `out` ([num_words]). A negative budget is none, one below the state's cost is ignored.
    void fill(u32 state, u32* out, i64 budget);
    // Forgets what no live matcher stands on, if the states have grown past their budget. Only between walks.
    void trim() {
        if (states_->num_bytes() > state_limit_) forget();
    }
    std::size_t num_memo_bytes() const { return num_memo_bytes_; }
    std::size_t num_bytes() const;

    StateStore& states() { return *states_; }
    const Vocabulary& vocabulary() const { return *vocabulary_; }
    u32 num_users = 1;          // this object's opener and its matchers
    Matcher* matchers = nullptr;  // a list of the live ones

private:
    struct Entry {
        u64 key;  // root set << 32 | abstract state
        u32 older, newer;
        bool is_dense;
        i64 worst_cost;
        const u32* base = nullptr;  // all tokens of a slice, where the row is that but for some words
        std::vector<u32> words;     // places of what differs from `base` or from nothing; empty if dense
        std::vector<u32> bits;
        std::vector<std::pair<u32, u32>> groups;  // (abstract state, root set)
        std::size_t num_bytes() const {
            return sizeof(Entry) + 64 + (words.capacity() + bits.capacity()) * 4 + groups.capacity() * 8;
        }
    };
    struct RootSet {
        u32 trie;
        std::vector<u32> nodes;
    };
    i64 add(u32 root_set, u32 state, u32* out, u32 num_returns, bool is_first);
    u32 entry_of(u32 root_set, u32 state);
    u32 walk(u32 root_set, u32 state);
    void keep_row(Entry& entry, bool is_start);
    void group(u32 trie, std::size_t begin, std::size_t end, Entry& entry);
    u32 root_set(u32 trie, const std::vector<u32>& nodes);
    void add_within(u32 state, u32* out, i64 max_cost);
    void forget();
    void unlink(u32 slot);
    void link(u32 slot);
    void drop(u32 slot);

    Vocabulary* vocabulary_;
    Program program_;
    Moves moves_;
    const i64* costs_;
    std::unique_ptr<StateStore> states_;
    std::unique_ptr<Walker> walker_;
    std::size_t memo_limit_, num_memo_bytes_ = 0, state_budget_, state_limit_;
    std::vector<std::unique_ptr<Entry>> entries_;
    std::vector<u32> free_slots_;
    std::unordered_map<u64, u32> slots_;  // of entries for root sets other than the whole trie
    u32 oldest_ = NONE, newest_ = NONE;
    std::vector<RootSet> root_sets_;
    std::unordered_multimap<u64, u32> root_set_index_;
    std::size_t num_root_bytes_ = 0;
    std::vector<u32> row_;
    std::vector<std::pair<u32, u32>> stopped_;
};

}  // namespace radix
