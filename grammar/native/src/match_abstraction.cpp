// Abstract states and their way back, and moving live states into a new store.
#include <algorithm>

#include "match_states.h"

namespace radix {

u32 StateStore::intern_list(const std::vector<u32>& stacks) {
    u64 hash = stacks.size();
    for (u32 stack : stacks) hash = mix(hash, stack);
    const u32 known = list_index_.find(u32(hash), [&](u32 id) {
        const List& other = lists_[id];
        return other.size == stacks.size() && std::equal(stacks.begin(), stacks.end(), other.stacks);
    });
    if (known != NONE) return known;
    auto* kept = arena_.take<u32>(stacks.size());
    std::copy(stacks.begin(), stacks.end(), kept);
    lists_.push_back({kept, u32(stacks.size())});
    list_index_.insert(u32(hash), u32(lists_.size() - 1));
    return u32(lists_.size() - 1);
}

u32 StateStore::abstract(u32 state, i64 max_bytes, u32 num_returns, u32& hole_list) {
    if (num_returns == 0 && states_[state].abstraction != NONE) {
        hole_list = states_[state].hole_list;
        return states_[state].abstraction;
    }
    if (num_returns)
        if (const u64* known = abstractions_.find(state, num_returns)) {
            hole_list = u32(*known);
            return u32(*known >> 32);
        }
    stacks_->begin_holes();
    hole_stacks_.clear();
    found_.assign(states_[state].configs, states_[state].configs + states_[state].num_configs);
    u32 last_before = NONE, last_after = NONE;
    for (Config& config : found_) {
        if (config.stack != last_before) {
            last_before = config.stack;
            last_after = stacks_->abstract(config.stack, max_bytes, num_returns, hole_stacks_);
        }
        config.stack = last_after;
    }
    const u32 result = intern(found_.data(), u32(found_.size()), states_[state].is_accepting, nullptr, 0);
    hole_list = intern_list(hole_stacks_);
    if (num_returns) {
        abstractions_.insert(state, num_returns, u64(result) << 32 | hole_list);
    } else {
        states_[state].abstraction = result;
        states_[state].hole_list = hole_list;
    }
    return result;
}

u32 StateStore::concrete(u32 state, u32 hole_list) {
    if (const u64* known = concretes_.find(state, hole_list)) return u32(*known);
    const u32* fillings = lists_[hole_list].stacks;
    begin_closure();
    const MatchState& from = states_[state];
    const Config* configs = from.configs;
    const u32* holes = from.holes;
    const u32 num_configs = from.num_configs, num_holes = from.num_holes;
    is_accepting_ = false;
    u32 last_before = NONE, last_after = NONE;
    for (u32 i = 0; i < num_configs; ++i) {
        if (configs[i].stack != last_before) {
            last_before = configs[i].stack;
            last_after = stacks_->fill_holes(last_before, fillings);
        }
        add_config(configs[i].state, last_after);
    }
    for (u32 i = 0; i < num_holes; ++i) leave(fillings[holes[i]]);
    const u32 result = close();
    if (result == NONE) throw Damaged("the compiled grammar is damaged: a region ends in nothing");
    concretes_.insert(state, hole_list, result);
    return result;
}

void StateStore::adopt(StateStore& other, std::vector<u32*>& ids) {
    StackStore& from = *other.stacks_;
    std::vector<u32> stack_ids(from.size(), NONE), set_ids(from.sets().size(), NONE);
    constexpr u32 kLive = NONE - 1;
    for (u32* id : ids) {
        const MatchState& state = other[*id];
        for (u32 i = 0; i < state.num_configs; ++i) stack_ids[state.configs[i].stack] = kLive;
    }
    for (u32 id = from.size(); id-- > 0;)  // parents have lower numbers
        if (stack_ids[id] == kLive)
            for (const Frame& frame : from[id]) {
                if (frame.parent != NONE) stack_ids[frame.parent] = kLive;
                if (frame.code <= -3 && !is_loop(frame.code)) set_ids[u32(frame.a)] = kLive;
            }
    for (u32 id = 0; id < set_ids.size(); ++id)
        if (set_ids[id] == kLive) set_ids[id] = stacks_->sets().copy(from.sets()[id]);
    Frames frames;
    for (u32 id = 0; id < stack_ids.size(); ++id) {
        if (stack_ids[id] != kLive) continue;
        frames.clear();
        for (Frame frame : from[id]) {
            if (frame.parent != NONE) frame.parent = stack_ids[frame.parent];
            if (frame.code <= -3 && !is_loop(frame.code)) frame.a = set_ids[u32(frame.a)];
            frames.push(frame);
        }
        stack_ids[id] = stacks_->unite(frames);
    }
    std::vector<u32> state_ids(other.states_.size(), NONE);
    std::vector<Config> configs;
    for (u32* id : ids) {
        u32& here = state_ids[*id];
        if (here == NONE) {
            const MatchState& state = other[*id];
            configs.assign(state.configs, state.configs + state.num_configs);
            for (Config& config : configs) config.stack = stack_ids[config.stack];
            here = intern(configs.data(), u32(configs.size()), state.is_accepting, state.holes, state.num_holes);
        }
        *id = here;
    }
}

std::size_t StateStore::num_bytes() const {
    return arena_.num_bytes() + states_.num_bytes() + index_.num_bytes() + stacks_->num_bytes() +
           list_index_.num_bytes() + lists_.size() * sizeof(List) + abstractions_.num_bytes() + concretes_.num_bytes() +
           program_.num_states * sizeof(Mark);
}

}  // namespace radix
