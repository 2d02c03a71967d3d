// Interning, union and abstraction of stacks.
#include "match_stacks.h"

#include <algorithm>

namespace radix {
namespace {

constexpr u32 kMaxMergeDepth = 150;   // deeper, frames of one place stay apart: exact still, only less shared
constexpr u32 kMaxAbstractLoops = 3;  // loops inside loops beyond this depth are holes too

bool is_same_place(const Frame& left, const Frame& right) {
    return left.code == right.code && left.a == right.a && left.b == right.b;
}

bool is_before(const Frame& left, const Frame& right) {
    if (left.code != right.code) return left.code < right.code;
    if (left.a != right.a) return left.a < right.a;
    if (left.b != right.b) return left.b < right.b;
    return left.parent < right.parent;
}

i64 reach(i64 possible) { return possible == ENDLESS ? FAR_ROUNDS : possible; }

}  // namespace

i64 StackStore::cost(const Frame& frame) const {
    if (frame.parent == NONE) return 0;
    if (frame.code >= 0) return costs_[frame.code];
    const u32 number = number_of(frame.code);
    if (kind_of(frame.code) == FrameKind::kLoop) {
        // a loop that is far in an abstract state counts as nothing: the real stack's worst cost has it
        const i64 rounds = frame.a == FAR_ROUNDS ? 0 : frame.a;
        const i64 round = costs_[program_.region_entry[program_.loop_body[number]]];
        return cost_sum(cost_product(rounds, round), costs_[program_.loop_exit[number]]);
    }
    const SetState& state = sets_[u32(frame.a)];
    const i64 behind = kind_of(frame.code) == FrameKind::kMember ? state.starts[frame.b].cost : state.separated_cost;
    return cost_sum(behind, costs_[program_.set_exit[number]]);
}

u32 StackStore::intern(const Frame* frames, u32 count) {
    u64 hash = count;
    for (u32 i = 0; i < count; ++i) {
        hash = mix(hash, u64(u32(frames[i].code)) << 32 | frames[i].parent);
        hash = mix(hash, u64(frames[i].a) * 31 + u64(frames[i].b));
    }
    auto is_equal = [&](u32 id) {
        const Stack& other = *stacks_[id];
        if (other.num_frames != count) return false;
        for (u32 i = 0; i < count; ++i)
            if (!is_same_place(frames[i], other.begin()[i]) || frames[i].parent != other.begin()[i].parent) return false;
        return true;
    };
    const u32 found = index_.find(u32(hash), is_equal);
    if (found != NONE) return found;
    auto* stack = reinterpret_cast<Stack*>(arena_.take<char>(sizeof(Stack) + count * sizeof(Frame)));
    *stack = {MAX_COST, 0, count, 0, 0, u32(hash)};
    std::copy(frames, frames + count, reinterpret_cast<Frame*>(stack + 1));
    for (const Frame& frame : *stack) {
        const i64 own = cost(frame);
        const Stack* parent = frame.parent == NONE ? nullptr : stacks_[frame.parent];
        stack->cost = std::min(stack->cost, cost_sum(own, parent ? parent->cost : 0));
        stack->worst_cost = std::max(stack->worst_cost, cost_sum(own, parent ? parent->worst_cost : 0));
    }
    const u32 id = stacks_.push(stack);
    index_.insert(u32(hash), id);
    return id;
}

u32 StackStore::merge(u32 left, u32 right, u32 depth) {
    if (left == right) return left;
    if (left > right) std::swap(left, right);
    if (const u64* known = merged_.find(left, right)) return u32(*known);
    Frames frames;
    for (const Frame& frame : *stacks_[left]) frames.push(frame);
    for (const Frame& frame : *stacks_[right]) frames.push(frame);
    const u32 result = unite(frames, depth);
    merged_.insert(left, right, result);
    return result;
}

u32 StackStore::unite(Frames& frames, u32 depth) {
    if (frames.size() == 1) return intern(frames.begin(), 1);
    std::sort(frames.begin(), frames.end(), is_before);
    const bool is_deep = depth >= kMaxMergeDepth;
    u32 kept = 0;
    bool is_merged = false;
    for (u32 i = 0; i < frames.size(); ++i) {
        const Frame frame = frames[i];
        if (kept && is_same_place(frames[kept - 1], frame)) {
            u32& parent = frames[kept - 1].parent;
            if (parent == frame.parent) continue;
            if (!is_deep && frame.parent != NONE) {
                parent = merge(parent, frame.parent, depth + 1);
                is_merged = true;
                continue;
            }
        }
        frames[kept++] = frame;
    }
    frames.resize_down(kept);
    (void)is_merged;  // one frame a place is left then, so the order holds
    prune_loops(frames);
    return intern(frames.begin(), frames.size());
}

// Drops loop frames that another one of the same loop and parent covers: fewer rounds needed, more possible.
void StackStore::prune_loops(Frames& frames) {
    u32 kept = 0;
    for (u32 begin = 0, end; begin < frames.size(); begin = end) {
        for (end = begin + 1; end < frames.size() && frames[end].code == frames[begin].code;) ++end;
        if (end - begin == 1 || !is_loop(frames[begin].code)) {
            for (u32 i = begin; i < end; ++i) frames[kept++] = frames[i];
            continue;
        }
        // ascending in needed rounds: a frame is covered by an earlier one that reaches as far, or by a farther one of as many rounds
        for (u32 i = begin; i < end; ++i) {
            bool is_covered = false;
            for (u32 j = begin; j < end && !is_covered; ++j) {
                const Frame &one = frames[i], &other = frames[j];
                if (other.a > one.a) break;
                is_covered = j != i && other.parent == one.parent && other.a <= one.a && reach(other.b) > reach(one.b);
                is_covered = is_covered || (other.parent == one.parent && other.a < one.a && reach(other.b) == reach(one.b));
            }
            if (is_covered) frames[i].code = HOLE;  // marks it; holes have another code than loops
        }
        for (u32 i = begin; i < end; ++i)
            if (frames[i].code != HOLE) frames[kept++] = frames[i];
    }
    frames.resize_down(kept);
}

u32 StackStore::hole(u32 stack, Holes& holes) {
    Stack& about = *stacks_[stack];
    if (about.mark_epoch != hole_epoch_) {
        about.mark_epoch = hole_epoch_;
        about.mark = u32(holes.size());
        holes.push_back(stack);
    }
    return about.mark;
}

u32 StackStore::abstract(u32 stack, i64 max_bytes, u32 num_returns, Holes& holes, u32 num_loops) {
    if (num_loops > kMaxAbstractLoops) return single({HOLE, NONE, hole(stack, holes), 0});
    Frames kept, cut;
    const Stack& about = *stacks_[stack];
    for (Frame frame : about) {
        if (frame.parent == NONE) {
            kept.push(frame);
        } else if (is_loop(frame.code)) {
            if (frame.a > max_bytes) frame.a = FAR_ROUNDS;
            if (frame.b > max_bytes) frame.b = ENDLESS;
            frame.parent = abstract(frame.parent, max_bytes, num_returns, holes, num_loops + 1);
            kept.push(frame);
        } else if (num_returns) {
            frame.parent = abstract(frame.parent, max_bytes, num_returns - 1, holes);
            kept.push(frame);
        } else {
            cut.push(frame);
        }
    }
    if (cut.size()) {
        const u32 deeper = cut.size() == about.num_frames ? stack : unite(cut);
        kept.push({HOLE, NONE, hole(deeper, holes), 0});
    }
    return unite(kept);
}

u32 StackStore::fill_holes(u32 stack, const u32* fillings) {
    Frames frames;
    u32 filled = NONE;
    for (Frame frame : *stacks_[stack]) {
        if (frame.code == HOLE) {
            const u32 filling = fillings[frame.a];
            filled = filled == NONE ? filling : merge(filled, filling);
            continue;
        }
        if (frame.parent != NONE) frame.parent = fill_holes(frame.parent, fillings);
        frames.push(frame);
    }
    if (!frames.size()) return filled;
    const u32 rest = unite(frames);
    return filled == NONE ? rest : merge(filled, rest);
}

}  // namespace radix
