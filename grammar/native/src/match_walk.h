// Walks of a token trie against a program's states: which tokens keep the match alive, and where walks have to stop.
//
// Owns the walk, and the shortcuts for free text: what a state does with the characters of a slice decides all tokens made of such
// characters at once. A state that treats a few characters in their own way (a key that may also be a known one, text that watches for a
// trigger) gets all tokens of the slice, and only the subtrees below those characters are walked. Knows nothing of memos or budgets.
#pragma once

#include "match_states.h"
#include "match_vocabulary.h"

namespace radix {

// What one walk finds, added to `row`.
struct Found {
    u32* row;                                   // [num_words]
    std::vector<std::pair<u32, u32>>* stopped;  // (state that has returned into a hole, node with children)
    i64 worst_cost;                             // the largest cost of a state behind a token
    i64 max_cost;                               // exact walks: tokens of a larger cost are left out
};

class Walker {
public:
    Walker(const Vocabulary& vocabulary, const Program& program, StateStore& states);

    // Everything that may follow `state`. `stopped` nodes belong to the trie with the number returned.
    template <bool Exact>
    void whole(u32 state, Found& found);
    // Everything strictly below a node, when `state` is the state there.
    template <bool Exact>
    void below(const Trie& trie, u32 root, u32 state, Found& found);

    const Trie& trie(u32 number) const { return number == 0 ? vocabulary_.whole : vocabulary_.slices[number - 1].rest; }
    // The trie that stopped nodes from this place of the list on belong to: walks of one state may use two tries.
    u32 second_trie() const { return second_trie_; }
    std::size_t second_begin() const { return second_begin_; }

private:
    struct View {  // a slice by the program's byte classes
        std::vector<u32> singles;
        std::vector<std::vector<std::vector<u32>>> sequences;
    };
    struct Text {  // of states that are TEXT_ALL or TEXT_ALMOST: least and largest cost behind tokens of the slice, and exceptions
        i64 low, high;
        std::vector<u8> exceptions;
    };
    struct Level {
        i32* row;
        u32 end;
        u32 state;
    };
    i32 text(u32 state, u32 slice, bool is_deep = true);
    bool is_all(u32 state, u32 slice);
    bool is_almost(u32 state, u32 slice);
    bool reach(u32 state, const View& view, std::vector<i32>& reached);
    bool after_sequences(u32 state, const View& view, std::vector<i32>& ends);
    template <bool Exact>
    bool by_chain(u32 state, u32 slice, Found& found);
    template <bool Exact>
    bool by_exceptions(u32 state, u32 slice, Found& found);
    template <bool Exact>
    bool exception(u32 node, u32 state, u32 slice, bool is_base, u32 depth, Found& found);
    template <bool Exact>
    void from_root(const Trie& trie, u32 state, Found& found);
    template <bool Exact>
    void take(const Trie& trie, u32 node, u32 state, Found& found);
    template <bool Exact>
    void allow(const Trie& trie, u32 token, u32 state, Found& found);
    void clear(u32 node, Found& found);

    const Vocabulary& vocabulary_;
    StateStore& states_;
    const u8 *class_of_, *alphabet_;
    View views_[NUM_SLICES];
    std::vector<Text> texts_;
    std::vector<Level> levels_;
    std::vector<i32> ends_;
    u32 second_trie_ = 0;
    std::size_t second_begin_ = 0;
};

}  // namespace radix
