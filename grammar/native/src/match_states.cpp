// Steps and closures. A region is entered once all its callers are known: they have lower ranks.
#include "match_states.h"

#include <algorithm>
#include <functional>

namespace radix {
namespace {

constexpr u32 kFirstRank = 0x80000000u;  // added to ranks, so that they sort as unsigned numbers

}  // namespace

StateStore::StateStore(Program& program, Moves& moves, const i64* costs)
    : program_(program),
      moves_(moves),
      costs_(costs),
      stacks_(std::make_unique<StackStore>(program, costs)),
      marks_(static_cast<Mark*>(std::calloc(program.num_states, sizeof(Mark))), std::free),
      region_epoch_(program.num_regions, 0),
      region_head_(program.num_regions, NONE) {
    if (!marks_) throw std::bad_alloc();
    begin_closure();
    work_.push_back({program.start, stacks_->bottom()});
    start_ = close();
    if (start_ == NONE) throw Damaged("the compiled grammar is damaged: it accepts nothing");
}

// ---------------------------------------------------------------------------------------------- steps

i32* StateStore::row(u32 state) {
    MatchState& from = states_[state];
    if (!from.row) {
        from.row = arena_.take<i32>(program_.num_classes);
        std::fill(from.row, from.row + program_.num_classes, UNKNOWN);
    }
    return from.row;
}

i32 StateStore::fill(u32 state, u32 byte_class) {
    i32* row = this->row(state);
    const MatchState& from = states_[state];
    const Config* configs = from.configs;
    const u32 num_configs = from.num_configs;
    if (num_configs == 1) {
        const i32 target = moves_.target(configs->state, byte_class);
        i32 result = DEAD;
        if (target >= 0 && program_.is_plain[target]) {
            const Config config{u32(target), configs->stack};
            result = i32(intern(&config, 1, false, nullptr, 0));
        } else if (target != -1) {
            begin_closure();
            moves_.targets(configs->state, byte_class, [&](u32 to) { work_.push_back({to, configs->stack}); });
            const u32 after = close();
            result = after == NONE ? DEAD : i32(after);
        }
        // the classes that lead to the same place need no step of their own
        const i32* targets = moves_.row(configs->state);
        for (u32 other = 0; other < program_.num_classes; ++other)
            if (targets ? targets[other] == target : other != byte_class && target != -1) row[other] = targets ? result : DEAD;
        return row[byte_class] = result;
    }
    begin_closure();
    for (u32 i = 0; i < num_configs; ++i)
        moves_.targets(configs[i].state, byte_class, [&](u32 to) { work_.push_back({to, configs[i].stack}); });
    if (work_.empty()) return row[byte_class] = DEAD;
    // many bytes lead to the same places
    auto is_equal = [](const Config& left, const Config& right) { return left.state == right.state && left.stack == right.stack; };
    if (state != last_state_ || !std::equal(work_.begin(), work_.end(), last_work_.begin(), last_work_.end(), is_equal)) {
        last_state_ = NONE;
        last_work_ = work_;
        const u32 after = close();
        last_after_ = after == NONE ? DEAD : i32(after);
        last_state_ = state;
    }
    return row[byte_class] = last_after_;
}

bool StateStore::is_live(u32 state, u32 byte_class) {
    const MatchState& from = states_[state];
    for (u32 i = 0; i < from.num_configs; ++i)
        if (moves_.target(from.configs[i].state, byte_class) != -1) return true;
    return false;
}

int StateStore::single_byte(u32 state) {
    const MatchState& from = states_[state];
    found_.assign(from.configs, from.configs + from.num_configs);
    Short<u32, 4> states;
    for (const Config& config : found_) states.push(config.state);
    return moves_.single_byte(states);
}

// ---------------------------------------------------------------------------------------------- closure

void StateStore::begin_closure() {
    ++epoch_;
    work_.clear();
    config_states_.clear();
    closed_holes_.clear();
    pending_.clear();
    queue_.clear();
    visited_.clear();
    is_accepting_ = false;
}

u32 StateStore::close() {
    if (work_.size() == 1 && program_.is_plain[work_[0].state] && config_states_.empty() && queue_.empty() &&
        closed_holes_.empty())
        return intern(work_.data(), 1, is_accepting_, nullptr, 0);
    while (!work_.empty()) {
        const Config next = work_.back();
        work_.pop_back();
        visit(next.state, next.stack);
    }
    i64 entered = kFirstRank - 1;
    while (!queue_.empty()) {
        std::pop_heap(queue_.begin(), queue_.end(), std::greater<u64>());
        const i64 rank = i64(queue_.back() >> 32);
        const u32 region = u32(queue_.back());
        queue_.pop_back();
        if (rank <= entered || region_epoch_[region] != epoch_)
            throw Damaged("the compiled grammar is damaged: it calls its regions in a circle");
        entered = rank;
        Frames frames;
        for (u32 at = region_head_[region]; at != NONE; at = pending_[at].next) frames.push(pending_[at].frame);
        region_head_[region] = NONE;
        enter(u32(program_.region_entry[region]), stacks_->unite(frames));
    }
    if (config_states_.empty() && !is_accepting_ && closed_holes_.empty()) return NONE;
    found_.clear();
    for (u32 state : config_states_) found_.push_back({state, marks_[state].config_stack});
    std::sort(found_.begin(), found_.end(), [](const Config& l, const Config& r) { return l.state < r.state; });
    std::sort(closed_holes_.begin(), closed_holes_.end());
    closed_holes_.erase(std::unique(closed_holes_.begin(), closed_holes_.end()), closed_holes_.end());
    return intern(found_.data(), u32(found_.size()), is_accepting_, closed_holes_.data(), u32(closed_holes_.size()));
}

void StateStore::visit(u32 source, u32 stack) {
    Mark& mark = marks_[source];
    if (mark.seen_epoch == epoch_) {
        const u32 before = mark.seen_stack;
        stack = stacks_->merge(before, stack);
        if (stack == before) return;
        // Equal sets of stacks may be written in two ways, one after the other: what has been visited once is not visited again.
        const std::pair<u32, u32> visit{source, stack};
        if (std::find(visited_.begin(), visited_.end(), visit) != visited_.end()) return;
        visited_.emplace_back(source, before);
        visited_.push_back(visit);
    }
    mark.seen_epoch = epoch_;
    mark.seen_stack = stack;
    if (enter(source, stack)) leave(stack);
}

void StateStore::add_config(u32 state, u32 stack) {
    Mark& mark = marks_[state];
    if (mark.config_epoch == epoch_) {
        mark.config_stack = stacks_->merge(mark.config_stack, stack);
        return;
    }
    mark.config_epoch = epoch_;
    mark.config_stack = stack;
    config_states_.push_back(state);
}

void StateStore::call(u32 region, const Frame& frame) {
    if (region_epoch_[region] != epoch_) {
        region_epoch_[region] = epoch_;
        region_head_[region] = NONE;
        queue_.push_back(u64(u32(program_.region_rank[region]) + kFirstRank) << 32 | region);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<u64>());
    } else if (region_head_[region] == NONE) {
        throw Damaged("the compiled grammar is damaged: it calls its regions in a circle");
    }
    pending_.push_back({frame, region_head_[region]});
    region_head_[region] = u32(pending_.size() - 1);
}

// Takes the byte states, calls, loops and sets that `source` leads to; whether it also leads to an end.
bool StateStore::enter(u32 source, u32 stack) {
    if (program_.is_plain[source]) {
        add_config(source, stack);
        return false;
    }
    const EmptyMoves& moves = moves_.follow(source);
    for (u32 i = 0; i < moves.num_states; ++i) add_config(moves.states[i], stack);
    for (u32 i = 0; i < moves.num_calls; ++i)
        call(moves.calls[2 * i], {i32(moves.calls[2 * i + 1]), stack, 0, 0});
    for (u32 i = 0; i < moves.num_loops; ++i) {
        const u32 loop = moves.loops[i];
        call(u32(program_.loop_body[loop]), {frame_code(FrameKind::kLoop, loop), stack, next_needed(program_.loop_lo[loop]),
                                             next_possible(program_.loop_hi[loop])});
    }
    for (u32 i = 0; i < moves.num_sets; ++i) begin_members(stacks_->sets().begin(moves.sets[i]), stack);
    return moves.is_end;
}

void StateStore::begin_members(u32 set_state, u32 parent) {
    const SetState& state = stacks_->sets()[set_state];
    const i32 first = program_.member_start[state.set];
    const i32 code = frame_code(FrameKind::kMember, state.set);
    for (u32 i = 0; i < state.num_starts; ++i)
        call(u32(program_.member_region[first + i32(state.starts[i].member)]), {code, parent, set_state, i});
}

// Leaves the region above `stack`.
void StateStore::leave(u32 stack) {
    const Stack& about = (*stacks_)[stack];
    for (const Frame& frame : about) {
        if (frame.parent == NONE) {
            if (frame.code == HOLE) {
                closed_holes_.push_back(u32(frame.a));
            } else {
                is_accepting_ = true;
            }
            continue;
        }
        if (frame.code >= 0) {
            work_.push_back({u32(frame.code), frame.parent});
            continue;
        }
        const u32 number = number_of(frame.code);
        if (kind_of(frame.code) == FrameKind::kLoop) {
            if (frame.a == 0) work_.push_back({u32(program_.loop_exit[number]), frame.parent});
            if (frame.b != 0)
                call(u32(program_.loop_body[number]),
                     {frame.code, frame.parent, next_needed(frame.a), next_possible(frame.b)});
            continue;
        }
        u32 set_state = u32(frame.a);
        if (kind_of(frame.code) == FrameKind::kMember) {
            set_state = stacks_->sets().next(set_state, u32(frame.b));
            const SetState& now = stacks_->sets()[set_state];
            if (now.is_done) work_.push_back({u32(program_.set_exit[number]), frame.parent});
            if (!now.num_starts) continue;
            if (program_.set_separator[number] >= 0) {
                call(u32(program_.set_separator[number]),
                     {frame_code(FrameKind::kSeparator, number), frame.parent, set_state, 0});
                continue;
            }
        }
        begin_members(set_state, frame.parent);
    }
}

// ---------------------------------------------------------------------------------------------- interning

u32 StateStore::intern(const Config* configs, u32 num_configs, bool is_accepting, const u32* holes, u32 num_holes) {
    u64 hash = mix(num_configs, u64(num_holes) << 1 | u64(is_accepting));
    for (u32 i = 0; i < num_configs; ++i) hash = mix(hash, u64(configs[i].state) << 32 | configs[i].stack);
    for (u32 i = 0; i < num_holes; ++i) hash = mix(hash, holes[i]);
    const u32 known = index_.find(u32(hash), [&](u32 id) {
        const MatchState& other = states_[id];
        return other.num_configs == num_configs && other.num_holes == num_holes && other.is_accepting == is_accepting &&
               !std::memcmp(other.configs, configs, num_configs * sizeof(Config)) &&
               (!num_holes || !std::memcmp(other.holes, holes, num_holes * sizeof(u32)));
    });
    if (known != NONE) return known;
    MatchState state{};
    auto* kept = arena_.take<Config>(num_configs);
    std::copy(configs, configs + num_configs, kept);
    state.configs = kept;
    state.num_configs = num_configs;
    auto* kept_holes = arena_.take<u32>(num_holes);
    std::copy(holes, holes + num_holes, kept_holes);
    state.holes = kept_holes;
    state.num_holes = num_holes;
    state.is_accepting = is_accepting;
    state.cost = is_accepting || num_holes ? 0 : MAX_COST;
    for (u32 i = 0; i < num_configs; ++i) {
        const Stack& stack = (*stacks_)[configs[i].stack];
        state.cost = std::min(state.cost, cost_sum(costs_[configs[i].state], stack.cost));
        state.worst_cost = std::max(state.worst_cost, stack.worst_cost);
    }
    for (u32 slice = 0; slice < NUM_SLICES; ++slice) state.text[slice] = TEXT_UNKNOWN, state.text_number[slice] = NONE;
    state.abstraction = state.hole_list = state.entry = NONE;
    const u32 id = states_.push(state);
    if (id >= u32(1) << 31) throw std::bad_alloc();
    index_.insert(u32(hash), id);
    return id;
}

}  // namespace radix
