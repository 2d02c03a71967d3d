// The machine of a program: the set of all configurations after some bytes, as one interned state.
//
// Owns MatchState, the byte step with its closure, and the transition rows. Knows nothing of tokens or masks. A configuration is (program
// state, stack); a state holds one merged stack per program state. Steps are computed on first use and kept, which determinises lazily what
// the text and the walks really visit.
#pragma once

#include "match_moves.h"
#include "match_stacks.h"

namespace radix {

constexpr i32 UNKNOWN = -2;
constexpr i32 DEAD = -1;
constexpr u32 NUM_SLICES = 2;

struct Config {
    u32 state;
    u32 stack;
};

// How one state takes the characters of a slice.
enum : i32 {
    TEXT_UNKNOWN = -9,
    TEXT_MIXED = -8,   // each in its own way
    TEXT_ALL = -7,     // all texts of such characters are possible
    TEXT_ALMOST = -6,  // the same if they do not begin with a few exceptions
};                     // else the one state behind any character, or DEAD

struct MatchState {
    i32* row;               // [num_classes] state after a byte, DEAD or UNKNOWN; null before the first step
    i64 cost;               // least bytes to a complete text; of abstract states: as far as they know
    i64 worst_cost;         // the largest worst cost of its stacks
    const Config* configs;  // ascending program states
    const u32* holes;       // abstract stacks that an end has returned into, ascending
    u32 num_configs;
    u32 num_holes;
    i32 text[NUM_SLICES];   // see TEXT_UNKNOWN
    u32 abstraction;        // the abstract state and
    u32 hole_list;          // the stacks behind its holes, for no return; NONE before they are asked for
    u32 entry;              // of the memo, for the whole trie; NONE
    u32 text_number[NUM_SLICES];  // where the walker keeps more about TEXT_ALL and TEXT_ALMOST
    bool is_accepting;
    bool is_row_full;
};

class StateStore {
public:
    StateStore(Program& program, Moves& moves, const i64* costs);

    u32 start() const { return start_; }
    MatchState& operator[](u32 id) { return states_[id]; }
    const MatchState& operator[](u32 id) const { return states_[id]; }

    // The state after one byte of the class, or DEAD.
    i32 step(u32 state, u32 byte_class) {
        const MatchState& from = states_[state];
        const i32 known = from.row ? from.row[byte_class] : UNKNOWN;
        return known != UNKNOWN ? known : fill(state, byte_class);
    }
    i32 fill(u32 state, u32 byte_class);
    i32* row(u32 state);
    u8 class_of(u32 byte) const { return moves_.class_of_byte()[byte]; }
    bool is_live(u32 state, u32 byte_class);
    // The only byte that some configuration can take; -1: none, -2: several.
    int single_byte(u32 state);

    // The state as far as `max_bytes` bytes can tell up to `num_returns` callers back, and the list of stacks behind its holes.
    u32 abstract(u32 state, i64 max_bytes, u32 num_returns, u32& hole_list);
    // An abstract state with its holes filled; an end that had returned into a hole returns into its filling.
    u32 concrete(u32 state, u32 hole_list);

    // Takes over states (and their stacks) of another store; `ids` are replaced by the numbers here.
    void adopt(StateStore& other, std::vector<u32*>& ids);
    std::size_t num_bytes() const;
    u32 num_states() const { return states_.size(); }

private:
    struct Pending {  // a frame that waits until all callers of its region are known
        Frame frame;
        u32 next;
    };
    void begin_closure();
    u32 close();  // the state of everything in work_; NONE if that is nothing
    void visit(u32 source, u32 stack);
    bool enter(u32 source, u32 stack);
    void leave(u32 stack);
    void begin_members(u32 set_state, u32 parent);
    void add_config(u32 state, u32 stack);
    void call(u32 region, const Frame& frame);
    u32 intern(const Config* configs, u32 num_configs, bool is_accepting, const u32* holes, u32 num_holes);
    u32 intern_list(const std::vector<u32>& stacks);

    Program& program_;
    Moves& moves_;
    const i64* costs_;
    std::unique_ptr<StackStore> stacks_;
    Arena arena_;
    Blocks<MatchState, 6> states_;
    HashIndex index_;
    std::size_t num_row_bytes_ = 0;
    u32 start_ = 0;

    struct List {
        const u32* stacks;
        u32 size;
    };
    std::vector<List> lists_;
    HashIndex list_index_;
    PairMap abstractions_;  // (state, num_returns) -> (abstract state, list)
    PairMap concretes_;     // (abstract state, list) -> state
    Holes hole_stacks_;

    // one closure in progress; marks hold its epoch
    u32 epoch_ = 0;
    struct Mark {
        u32 seen_epoch, seen_stack, config_epoch, config_stack;
    };
    std::unique_ptr<Mark[], void (*)(void*)> marks_;
    std::vector<u32> region_epoch_, region_head_;
    std::vector<Config> work_, found_;
    std::vector<Config> last_work_;  // of the last step from several configurations, and what it gave
    u32 last_state_ = NONE;
    i32 last_after_ = DEAD;
    std::vector<u32> config_states_, closed_holes_;
    std::vector<Pending> pending_;
    std::vector<u64> queue_;  // (rank, region), a heap
    std::vector<std::pair<u32, u32>> visited_;  // (state, stack) where stacks were merged
    bool is_accepting_ = false;
};

}  // namespace radix
