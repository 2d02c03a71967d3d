// The byte-level automaton while it is being built: states with lists of moves, regions (subroutines), counted loops, member sets.
//
// Every region is entered through an entry that cannot end before it has consumed a byte; whoever calls a region that may be
// empty has an empty move beside the call.
#pragma once

#include <cstdint>
#include <vector>

#include "compile_bits.h"
#include "compile_error.h"
#include "compile_members.h"

namespace radix_compile {

enum class MoveKind : uint8_t {
    Edge,     // one byte of mask `arg`
    Literal,  // the bytes of literal `arg`
    Empty,    // nothing
    Call,     // region `arg`, then on to target
    Loop,     // loop `arg`; target is not used
    Set,      // set `arg`; target is not used
};

struct Move {
    int32_t target;
    int32_t arg;
    int32_t next;  // of the same state, or -1
    MoveKind kind;
};

// Region `body` at least once and `lo` to `hi` times (-1: without end), then on to `exit`. lo >= 1.
struct Loop {
    int32_t body;
    int64_t lo, hi;
    int32_t exit;
};

struct Region {
    int32_t start;
    int32_t entry;  // -1 until its language is known
};

class Graph {
public:
    explicit Graph(int64_t max_states) : max_states_(max_states) {}

    int32_t new_state();
    int32_t new_end();
    int32_t new_region(int32_t start, int32_t entry = -1);
    size_t num_states() const { return states_.size(); }

    void add_edge(int32_t source, const Bits256& mask, int32_t target);  // none if the mask is empty
    void add_literal(int32_t source, View<uint8_t> text, int32_t target);
    void add_empty(int32_t source, int32_t target) { add(source, MoveKind::Empty, -1, target); }
    void add_call(int32_t source, int32_t region, int32_t target) { add(source, MoveKind::Call, region, target); }
    void add_loop(int32_t source, const Loop& loop);
    void add_set(int32_t source, MemberSet set);
    void add(int32_t source, MoveKind kind, int32_t arg, int32_t target);

    // Moves of a state, as indices into `moves`: for (m = first_move(s); m >= 0; m = moves[m].next).
    int32_t first_move(int32_t state) const { return states_[state].first; }
    bool is_end(int32_t state) const { return states_[state].is_end; }
    void set_end(int32_t state) { states_[state].is_end = true; }
    // Keeps the moves for which `is_kept(move index)`, in order.
    template <typename Predicate>
    void filter_moves(int32_t state, Predicate is_kept);

    // The states reached from `source` by empty moves, itself included. Valid until the next call.
    const std::vector<int32_t>& closure(int32_t source);
    bool may_be_empty(int32_t source);
    // A state that accepts what `source` accepts, the empty string excepted.
    int32_t consuming_entry(int32_t source);
    // Gives every region that lacks one its consuming entry.
    void set_entries();
    // What a region may enter before it consumes a byte; with repetitions.
    void left_calls(int32_t region, std::vector<int32_t>& found);

    const Bits256& mask(int32_t arg) const { return masks_[arg]; }
    // The number of a mask; equal masks have the same.
    int32_t mask_number(const Bits256& mask);
    const std::vector<Bits256>& masks() const { return masks_; }
    View<uint8_t> literal(int32_t arg) const { return literals_[arg]; }

    std::vector<Move> moves;
    std::vector<Region> regions;
    std::vector<Loop> loops;
    std::vector<MemberSet> sets;

private:
    struct State {
        int32_t first = -1, last = -1;
        bool is_end = false;
    };
    int64_t max_states_;
    std::vector<State> states_;
    std::vector<View<uint8_t>> literals_;
    std::vector<Bits256> masks_;
    std::vector<int32_t> mask_slots_;  // hash table over masks_
    std::vector<int32_t> closure_;
    std::vector<uint32_t> seen_;  // round of the last closure that met a state
    uint32_t round_ = 0;
};

template <typename Predicate>
void Graph::filter_moves(int32_t state, Predicate is_kept) {
    int32_t move = states_[state].first;
    states_[state].first = states_[state].last = -1;
    while (move >= 0) {
        int32_t next = moves[move].next;
        if (is_kept(move)) {
            moves[move].next = -1;
            int32_t last = states_[state].last;
            (last < 0 ? states_[state].first : moves[last].next) = move;
            states_[state].last = move;
        }
        move = next;
    }
}

// compile_trimming.cpp: cuts every move that cannot lead to an end; whether `start` can.
bool remove_dead_ends(Graph& graph, int32_t start);
// compile_trimming.cpp: skips states that only pass on, turns calls right before an end into jumps.
void shorten(Graph& graph);
// compile_left_recursion.cpp: rebuilds each group of regions that call each other before they consume.
void remove_left_recursion(Graph& graph);

// Who may profit once something becomes known of a state: the moves that need it, as (source, move).
struct Dependent {
    int32_t source, move;
};
Rows<Dependent> dependents(const Graph& graph);

}  // namespace radix_compile
