#include "compile_graph.h"

namespace radix_compile {

int32_t Graph::new_state() {
    if (int64_t(states_.size()) >= max_states_) throw too_many_states(max_states_);
    states_.emplace_back();
    return int32_t(states_.size() - 1);
}

int32_t Graph::new_end() {
    int32_t state = new_state();
    states_[state].is_end = true;
    return state;
}

int32_t Graph::new_region(int32_t start, int32_t entry) {
    regions.push_back({start, entry});
    return int32_t(regions.size() - 1);
}

void Graph::add(int32_t source, MoveKind kind, int32_t arg, int32_t target) {
    int32_t number = int32_t(moves.size());
    moves.push_back({target, arg, -1, kind});
    State& state = states_[source];
    (state.last < 0 ? state.first : moves[state.last].next) = number;
    state.last = number;
}

void Graph::add_edge(int32_t source, const Bits256& mask, int32_t target) {
    if (mask.any()) add(source, MoveKind::Edge, mask_number(mask), target);
}

void Graph::add_literal(int32_t source, View<uint8_t> text, int32_t target) {
    literals_.push_back(text);
    add(source, MoveKind::Literal, int32_t(literals_.size() - 1), target);
}

void Graph::add_loop(int32_t source, const Loop& loop) {
    loops.push_back(loop);
    add(source, MoveKind::Loop, int32_t(loops.size() - 1), -1);
}

void Graph::add_set(int32_t source, MemberSet set) {
    sets.push_back(std::move(set));
    add(source, MoveKind::Set, int32_t(sets.size() - 1), -1);
}

int32_t Graph::mask_number(const Bits256& mask) {
    if (2 * masks_.size() >= mask_slots_.size()) {
        mask_slots_.assign(mask_slots_.empty() ? 64 : 4 * mask_slots_.size(), -1);
        for (size_t i = 0; i < masks_.size(); ++i) {
            size_t slot = hash_of(masks_[i]) & (mask_slots_.size() - 1);
            while (mask_slots_[slot] >= 0) slot = (slot + 1) & (mask_slots_.size() - 1);
            mask_slots_[slot] = int32_t(i);
        }
    }
    size_t slot = hash_of(mask) & (mask_slots_.size() - 1);
    while (mask_slots_[slot] >= 0) {
        if (masks_[mask_slots_[slot]] == mask) return mask_slots_[slot];
        slot = (slot + 1) & (mask_slots_.size() - 1);
    }
    masks_.push_back(mask);
    return mask_slots_[slot] = int32_t(masks_.size() - 1);
}

const std::vector<int32_t>& Graph::closure(int32_t source) {
    seen_.resize(states_.size(), 0);
    ++round_;
    closure_.clear();
    closure_.push_back(source);
    seen_[source] = round_;
    for (size_t i = 0; i < closure_.size(); ++i) {
        for (int32_t m = first_move(closure_[i]); m >= 0; m = moves[m].next) {
            int32_t target = moves[m].target;
            if (moves[m].kind != MoveKind::Empty || seen_[target] == round_) continue;
            seen_[target] = round_;
            closure_.push_back(target);
        }
    }
    return closure_;
}

bool Graph::may_be_empty(int32_t source) {
    for (int32_t state : closure(source)) {
        if (is_end(state)) return true;
    }
    return false;
}

int32_t Graph::consuming_entry(int32_t source) {
    if (closure(source).size() == 1 && !is_end(source)) return source;
    int32_t entry = new_state();
    for (int32_t state : closure_) {
        for (int32_t m = first_move(state); m >= 0; m = moves[m].next) {
            Move move = moves[m];
            if (move.kind != MoveKind::Empty) add(entry, move.kind, move.arg, move.target);
        }
    }
    return entry;
}

void Graph::set_entries() {
    for (size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].entry < 0) {
            int32_t entry = consuming_entry(regions[i].start);
            regions[i].entry = entry;
        }
    }
}

void Graph::left_calls(int32_t region, std::vector<int32_t>& found) {
    for (int32_t state : closure(regions[region].entry)) {
        for (int32_t m = first_move(state); m >= 0; m = moves[m].next) {
            const Move& move = moves[m];
            if (move.kind == MoveKind::Call) found.push_back(move.arg);
            if (move.kind == MoveKind::Loop) found.push_back(loops[move.arg].body);
            if (move.kind == MoveKind::Set) {
                for (const Member& member : sets[move.arg].members) found.push_back(member.region);
            }
        }
    }
}

namespace {

// The states that a move needs to be of use.
template <typename Visit>
void for_each_need(const Graph& graph, const Move& move, Visit visit) {
    switch (move.kind) {
        case MoveKind::Edge:
        case MoveKind::Literal:
        case MoveKind::Empty:
            visit(move.target);
            break;
        case MoveKind::Call:
            visit(move.target);
            visit(graph.regions[move.arg].entry);
            break;
        case MoveKind::Loop:
            visit(graph.regions[graph.loops[move.arg].body].entry);
            visit(graph.loops[move.arg].exit);
            break;
        case MoveKind::Set: {
            const MemberSet& set = graph.sets[move.arg];
            for (const Member& member : set.members) visit(graph.regions[member.region].entry);
            if (set.separator >= 0) visit(graph.regions[set.separator].entry);
            visit(set.exit);
            break;
        }
    }
}

}  // namespace

Rows<Dependent> dependents(const Graph& graph) {
    Rows<Dependent> rows(graph.num_states());
    for (int is_filling = 0; is_filling < 2; ++is_filling) {
        for (size_t source = 0; source < graph.num_states(); ++source) {
            for (int32_t m = graph.first_move(int32_t(source)); m >= 0; m = graph.moves[m].next) {
                for_each_need(graph, graph.moves[m], [&](int32_t state) {
                    if (is_filling) {
                        rows.add(size_t(state), {int32_t(source), m});
                    } else {
                        rows.count(size_t(state));
                    }
                });
            }
        }
        if (!is_filling) rows.allocate();
    }
    return rows;
}

}  // namespace radix_compile
