// Dead ends out of a graph, and shortcuts into it.

#include <algorithm>

#include "compile_graph.h"

namespace radix_compile {
namespace {

class Trimming {
public:
    explicit Trimming(Graph& graph) : graph_(graph), live_(graph.num_states(), 0) {}

    bool run(int32_t start) {
        find_live_states();
        std::vector<char> is_set_live;
        for (MemberSet& set : graph_.sets) is_set_live.push_back(trim_set(set));
        for (size_t state = 0; state < live_.size(); ++state) {
            graph_.filter_moves(int32_t(state), [&](int32_t m) {
                const Move& move = graph_.moves[m];
                return move.kind == MoveKind::Set ? is_set_live[move.arg] != 0 : is_live(move);
            });
        }
        return live_[start];
    }

private:
    void find_live_states() {
        Rows<Dependent> waiting = dependents(graph_);
        std::vector<int32_t> work;
        for (size_t state = 0; state < live_.size(); ++state) {
            live_[state] = graph_.is_end(int32_t(state));
            if (live_[state]) work.push_back(int32_t(state));
        }
        while (!work.empty()) {
            int32_t state = work.back();
            work.pop_back();
            for (const Dependent& dependent : waiting.of(size_t(state))) {
                if (live_[dependent.source] || !is_live(graph_.moves[dependent.move])) continue;
                live_[dependent.source] = 1;
                work.push_back(dependent.source);
            }
        }
    }

    bool is_region_live(int32_t region) const { return live_[graph_.regions[region].entry] != 0; }

    bool is_live(const Move& move) const {
        switch (move.kind) {
            case MoveKind::Call:
                return live_[move.target] && is_region_live(move.arg);
            case MoveKind::Loop: {
                const Loop& loop = graph_.loops[move.arg];
                return live_[loop.exit] && is_region_live(loop.body);
            }
            case MoveKind::Set:
                return is_set_live(graph_.sets[move.arg]);
            default:
                return live_[move.target] != 0;
        }
    }

    std::vector<int64_t> member_costs(const MemberSet& set) const {
        std::vector<int64_t> costs;
        for (const Member& member : set.members) costs.push_back(is_region_live(member.region) ? 0 : kNever);
        return costs;
    }

    int64_t separator_cost(const MemberSet& set) const {
        return set.separator < 0 || is_region_live(set.separator) ? 0 : kNever;
    }

    bool is_set_live(const MemberSet& set) const {
        if (!live_[set.exit]) return false;
        std::vector<int64_t> costs = member_costs(set);
        int64_t separator = separator_cost(set);
        return std::any_of(set.clauses.begin(), set.clauses.end(), [&](const Clause& clause) {
            return clause_cost(set, clause, costs, separator) < kNever;
        });
    }

    // Leaves the members and clauses that some text of the set has; whether there is any.
    bool trim_set(MemberSet& set) const {
        if (!live_[set.exit]) return false;
        std::vector<int64_t> costs = member_costs(set);
        if (separator_cost(set) == kNever) {  // then a text has one member
            set.hi = 1;
            set.separator = -1;
            if (set.lo > 1) return false;
        }
        std::vector<Clause> possible;
        for (Clause& clause : set.clauses) {
            if (clause_cost(set, clause, costs, 0) < kNever) possible.push_back(std::move(clause));
        }
        set.clauses = std::move(possible);
        std::vector<char> is_kept;
        for (int64_t cost : costs) is_kept.push_back(cost < kNever);
        set = restricted(set, is_kept);
        return !set.clauses.empty();
    }

    Graph& graph_;
    std::vector<char> live_;
};

// Where a state that only passes on leads to in the end.
std::vector<int32_t> final_targets(const Graph& graph) {
    const int32_t kUnknown = -1, kOpen = -2;
    std::vector<int32_t> target(graph.num_states(), kUnknown);
    std::vector<int32_t> path;
    for (size_t first = 0; first < target.size(); ++first) {
        int32_t state = int32_t(first);
        path.clear();
        while (target[state] == kUnknown) {
            int32_t move = graph.first_move(state);
            bool passes_on = !graph.is_end(state) && move >= 0 && graph.moves[move].next < 0 &&
                             graph.moves[move].kind == MoveKind::Empty;
            if (!passes_on) {
                target[state] = state;
                break;
            }
            target[state] = kOpen;
            path.push_back(state);
            state = graph.moves[move].target;
        }
        int32_t last = target[state] == kOpen ? state : target[state];  // a circle stays as it is
        for (int32_t passed : path) target[passed] = last;
    }
    return target;
}

}  // namespace

bool remove_dead_ends(Graph& graph, int32_t start) { return Trimming(graph).run(start); }

void shorten(Graph& graph) {
    std::vector<int32_t> target = final_targets(graph);
    for (Loop& loop : graph.loops) loop.exit = target[loop.exit];
    for (MemberSet& set : graph.sets) set.exit = target[set.exit];
    for (Region& region : graph.regions) {
        if (region.entry >= 0) region.entry = target[region.entry];
    }
    std::vector<char> is_bare_end;
    for (size_t state = 0; state < graph.num_states(); ++state) {
        is_bare_end.push_back(graph.is_end(int32_t(state)) && graph.first_move(int32_t(state)) < 0);
    }
    std::vector<int32_t> reached(graph.num_states(), -1);  // by an empty move of this state
    for (size_t state = 0; state < graph.num_states(); ++state) {
        graph.filter_moves(int32_t(state), [&](int32_t m) {
            Move& move = graph.moves[m];
            if (move.target >= 0) move.target = target[move.target];
            if (move.kind == MoveKind::Call && is_bare_end[move.target]) {
                // A jump keeps the caller's frame in place of a new one: right recursion runs in constant stack.
                move.kind = MoveKind::Empty;
                move.target = graph.regions[move.arg].entry;
            }
            if (move.kind != MoveKind::Empty) return true;
            bool is_new = reached[move.target] != int32_t(state) && move.target != int32_t(state);
            reached[move.target] = int32_t(state);
            return is_new;
        });
    }
}

}  // namespace radix_compile
