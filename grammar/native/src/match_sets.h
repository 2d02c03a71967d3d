// Sets of members in a match: which members may begin after those that came, when the set may end, and what is still to be paid.
//
// Owns SetState, the interned (set, members begun, their number). Knows nothing of stacks or configurations.
#pragma once

#include "program.h"

namespace radix {

// One member that may begin now; `cost` is the least to the set's end behind it, without the set's exit.
struct Start {
    u32 member;
    i64 cost;
};

struct SetState {
    u32 set;
    i64 count;             // members begun, no more than set_lo where their number has no upper bound
    const u64* bits;       // [num_words] members begun, as far as it matters
    const Start* starts;   // members that may begin now, ascending
    u32* next;             // per start: the set state behind it, NONE until it is asked for
    u32 num_starts;
    u32 hash;
    bool is_done;          // the set may end here
    i64 separated_cost;    // least from the end of a separator to the set's end, without its exit
};

// What the members and clauses of one set demand, in the form that planning needs.
class SetRules {
public:
    SetRules(const Program& program, u32 set);
    // Members that may begin after `bits` with `count` begun, with what is left to pay behind each.
    void plan(const u64* bits, i64 count, const i64* costs, std::vector<Start>& starts) const;
    bool is_done(const u64* bits, i64 count) const;
    // Writes the bits after `member`.
    void after(const u64* bits, u32 member, u64* out) const;
    i64 count_after(i64 count) const { return hi_ < 0 && count >= lo_ ? count : count + 1; }
    u32 num_words() const { return num_words_; }
    i64 entry_cost(u32 member, const i64* costs) const {
        return costs[program_.region_entry[program_.member_region[first_ + member]]];
    }

private:
    struct Clause {
        std::vector<u64> needs, bars;
    };
    struct Demand;
    bool is_run(u32 member) const { return program_.member_flags[first_ + member] & 1; }
    void prepare(Demand& demand, const Clause& clause, const u64* bits, i64 count, const i64* prices) const;
    bool cost_behind(const Demand& demand, u32 member, i64 count, const i64* prices, i64& cost) const;

    const Program& program_;
    u32 first_, num_members_, num_words_;
    i64 lo_, hi_;
    i32 separator_;
    bool is_ordered_;
    std::vector<Clause> clauses_;
    std::vector<u64> mentioned_;
};

// The least cost of a set from its beginning to its end, without its exit.
i64 first_cost(const Program& program, u32 set, const i64* costs);

class SetStore {
public:
    SetStore(const Program& program, const i64* costs) : program_(program), costs_(costs) {}
    u32 begin(u32 set);
    // The set state when start number `start` of `state` has begun.
    u32 next(u32 state, u32 start);
    const SetState& operator[](u32 id) const { return *states_[id]; }
    u32 size() const { return states_.size(); }
    // The same set state of another store.
    u32 copy(const SetState& other) { return intern(other.set, other.bits, other.count); }
    std::size_t num_bytes() const { return arena_.num_bytes() + states_.num_bytes() + index_.num_bytes(); }

private:
    const SetRules& rules(u32 set);
    u32 intern(u32 set, const u64* bits, i64 count);
    const Program& program_;
    const i64* costs_;
    std::vector<std::unique_ptr<SetRules>> rules_;
    Arena arena_;
    Blocks<SetState*> states_;
    HashIndex index_;
    std::vector<Start> starts_;
    std::vector<u64> bits_;
};

}  // namespace radix
