// A program's moves as stepping wants them: empty moves followed, targets by byte class.
//
// Owns the tables made per state on first use. Knows nothing of stacks, configurations or tokens.
#pragma once

#include "program.h"

namespace radix {

// Everything that a state leads to without a byte.
struct EmptyMoves {
    u32 num_states, num_calls, num_loops, num_sets;
    const u32* states;      // states with byte edges
    const u32* calls;       // pairs (region, state to return to)
    const u32* loops;
    const u32* sets;
    bool is_end;
};

class Moves {
public:
    explicit Moves(Program& program);

    const EmptyMoves& follow(u32 state) {
        const EmptyMoves* known = followed_[state];
        return known ? *known : *(followed_[state] = make(state));
    }

    // Calls visit(target) for each state that an edge of `state` over the class leads to.
    template <class Visit>
    void targets(u32 state, u32 byte_class, Visit visit) {
        const i32 found = target(state, byte_class);
        if (found >= 0) {
            visit(u32(found));
        } else if (found < -1) {
            const u32* list = lists_[u32(-2 - found)];
            for (u32 i = 1; i <= list[0]; ++i) visit(list[i]);
        }
    }

    // The only target, -1 for none, or -2 - number of a list of several.
    i32 target(u32 state, u32 byte_class) {
        const u32 begin = program_.edge_start[state], end = program_.edge_start[state + 1];
        if (end - begin <= 1) {
            if (begin == end) return -1;
            if (program_.edge_lo[begin] == program_.edge_hi[begin])
                return program_.class_of_byte[program_.edge_lo[begin]] == byte_class ? program_.edge_to[begin] : -1;
        }
        const i32* row = rows_[state];
        return (row ? row : make_row(state))[byte_class];
    }

    // The row of targets by class where there is one; null for states with a single byte.
    const i32* row(u32 state) const { return rows_[state]; }

    // The byte that alone leaves all of these states: its value, -1 if there is none, -2 if there are several.
    template <class States>
    int single_byte(const States& states) const;

    const u8* class_of_byte() const { return program_.class_of_byte.data; }
    u32 class_size(u32 byte_class) const { return class_size_[byte_class]; }

private:
    const EmptyMoves* make(u32 state);
    const i32* make_row(u32 state);

    Program& program_;
    const EmptyMoves** followed_;
    const i32** rows_;
    u32* seen_;
    u32 epoch_ = 0;
    u32 class_size_[256] = {};
    std::vector<u32> reached_;
    std::vector<const u32*> lists_;
};

template <class States>
int Moves::single_byte(const States& states) const {
    int found = -1;
    for (u32 state : states)
        for (u32 edge = program_.edge_start[state]; edge < program_.edge_start[state + 1]; ++edge) {
            const int low = program_.edge_lo[edge];
            if (low != program_.edge_hi[edge] || class_size_[program_.class_of_byte[low]] != 1) return -2;
            if (found >= 0 && found != low) return -2;
            found = low;
        }
    return found;
}

}  // namespace radix
