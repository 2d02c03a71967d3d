// Return stacks of a match, as shared sets: one object stands for all stacks that the same point of the text may have.
//
// Owns Stack (a set of frames, each on top of another Stack) and the store that interns, merges and abstracts them. Knows nothing of bytes
// or tokens. This is the graph-structured stack of generalised LR parsing in hash-consed form. A parent always has a lower number than
// what stands on it.
//
//     code >= 0      return to that state
//     BOTTOM         outermost frame: an end here completes the text
//     HOLE           an unknown stack, number `a` (only in abstract states)
//     loop k         code -3 - 3k: `a` further rounds are needed, `b` more are possible (-1: any number)
//     member of set k    code -4 - 3k: start number `b` of the set state `a` is running
//     separator of set k code -5 - 3k: behind it a start of the set state `a` follows
#pragma once

#include "match_sets.h"

namespace radix {

constexpr i32 BOTTOM = -1;
constexpr i32 HOLE = -2;
constexpr i64 ENDLESS = -1;
constexpr i64 FAR_ROUNDS = i64(1) << 62;

enum class FrameKind { kLoop = 0, kMember = 1, kSeparator = 2 };
inline i32 frame_code(FrameKind kind, u32 number) { return -3 - (i32(number) * 3 + i32(kind)); }
inline FrameKind kind_of(i32 code) { return FrameKind((-3 - code) % 3); }
inline u32 number_of(i32 code) { return u32((-3 - code) / 3); }
inline bool is_loop(i32 code) { return code <= -3 && kind_of(code) == FrameKind::kLoop; }
inline i64 next_needed(i64 rounds) { return rounds == 0 || rounds == FAR_ROUNDS ? rounds : rounds - 1; }
inline i64 next_possible(i64 rounds) { return rounds == ENDLESS ? rounds : rounds - 1; }

struct Frame {
    i32 code;
    u32 parent;  // NONE for BOTTOM and HOLE
    i64 a, b;
};

struct Stack {
    i64 cost;        // least bytes from the end of the region above to the end of the text
    i64 worst_cost;  // the same if only its most expensive stack survives
    u32 num_frames;
    u32 mark;        // scratch of passes that visit each stack once
    u32 mark_epoch;
    u32 hash;
    const Frame* begin() const { return reinterpret_cast<const Frame*>(this + 1); }
    const Frame* end() const { return begin() + num_frames; }
};

using Frames = Short<Frame, 8>;
using Holes = std::vector<u32>;

class StackStore {
public:
    StackStore(const Program& program, const i64* costs) : program_(program), costs_(costs), sets_(program, costs) {}

    u32 bottom() { return single({BOTTOM, NONE, 0, 0}); }
    u32 single(const Frame& frame) { return intern(&frame, 1); }
    // The stack of `frames`; those that return to the same place become one over the union of their parents. Reorders `frames`.
    u32 unite(Frames& frames, u32 depth = 0);
    u32 merge(u32 left, u32 right, u32 depth = 0);
    // `stack` as far as the next `max_bytes` bytes can tell until a region's end goes back `num_returns` + 1 callers; what lies deeper
    // becomes holes. `holes` belongs to one abstraction, between begin_holes() and the next.
    void begin_holes() { ++hole_epoch_; }
    u32 abstract(u32 stack, i64 max_bytes, u32 num_returns, Holes& holes, u32 num_loops = 0);
    // `stack` with each hole replaced by its filling.
    u32 fill_holes(u32 stack, const u32* fillings);

    Stack& operator[](u32 id) { return *stacks_[id]; }
    const Stack& operator[](u32 id) const { return *stacks_[id]; }
    u32 size() const { return stacks_.size(); }
    SetStore& sets() { return sets_; }
    // Takes over a stack of another store whose parents and set states are renumbered already.
    u32 adopt(const Frame* frames, u32 count) { return intern(frames, count); }
    std::size_t num_bytes() const {
        return arena_.num_bytes() + stacks_.num_bytes() + index_.num_bytes() + merged_.num_bytes() + sets_.num_bytes();
    }

private:
    u32 intern(const Frame* frames, u32 count);
    void prune_loops(Frames& frames);
    i64 cost(const Frame& frame) const;
    u32 hole(u32 stack, Holes& holes);

    const Program& program_;
    const i64* costs_;
    SetStore sets_;
    Arena arena_;
    Blocks<Stack*, 10> stacks_;
    HashIndex index_;
    PairMap merged_;
    u32 hole_epoch_ = 0;
};

}  // namespace radix
