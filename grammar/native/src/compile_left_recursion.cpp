// Left recursion out of a graph of regions, so that a call chain without consumed bytes always ends.
//
// Regions that call each other (or themselves) before consuming form a group, which is rebuilt bottom-up: a member starts with
// something that is no call into the group (a seed), and when a member is complete, it may go on as the left part of another. For a
// member i, the state after[i, j] means "on the way to i, a j has just ended":
//
//     start of i  --call seed of j-->  after[i, j]
//     after[i, j] --call (rest of k behind its leading j)-->  after[i, k]        for each k that may begin with a j
//     after[i, i] is an end state
//
// Source: the left-corner reading of left recursion (Rosenkrantz & Lewis, 1970), on automata.

#include <algorithm>
#include <unordered_map>

#include "compile_call_order.h"
#include "compile_graph.h"

namespace radix_compile {
namespace {

const size_t kMaxGroup = 100;

class GroupRebuild {
public:
    GroupRebuild(Graph& graph, const std::vector<int32_t>& group)
        : graph_(graph), group_(group), is_member_(graph.regions.size(), 0) {
        for (int32_t member : group) is_member_[member] = 1;
    }

    void run() {
        for (int32_t member : group_) make_seed(member);
        for (const Lead& lead : leads_) {
            if (rests_.count(lead.state)) continue;
            Rest rest;
            rest.may_be_empty = graph_.may_be_empty(lead.state);
            rest.region = graph_.new_region(lead.state, graph_.consuming_entry(lead.state));
            rests_.emplace(lead.state, rest);
        }
        for (size_t i = 0; i < group_.size(); ++i) rebuild(i);
    }

private:
    struct Lead {
        int32_t whole, first, state;  // `whole` may begin with `first` and goes on at `state`
    };
    struct Rest {
        int32_t region;
        bool may_be_empty;
    };

    void make_seed(int32_t member) {
        int32_t seed = graph_.new_state();
        std::vector<int32_t> leading = graph_.closure(graph_.regions[member].entry);
        for (int32_t state : leading) {
            peel(state);
            for (int32_t m = graph_.first_move(state); m >= 0; m = graph_.moves[m].next) {
                Move move = graph_.moves[m];
                if (move.kind == MoveKind::Empty) continue;
                if (move.kind == MoveKind::Call && is_member_[move.arg]) {
                    leads_.push_back({member, move.arg, move.target});
                } else {
                    graph_.add(seed, move.kind, move.arg, move.target);
                }
            }
        }
        seeds_.push_back(graph_.new_region(seed, seed));
    }

    // Turns leading loops and sets over members into calls and what is left then, so that only calls lead.
    void peel(int32_t state) {
        std::vector<int32_t> loops, sets;
        graph_.filter_moves(state, [&](int32_t m) {
            const Move& move = graph_.moves[m];
            if (move.kind == MoveKind::Loop && is_member_[graph_.loops[move.arg].body]) {
                loops.push_back(move.arg);
                return false;
            }
            if (move.kind == MoveKind::Set && has_member(graph_.sets[move.arg])) {
                sets.push_back(move.arg);
                return false;
            }
            return true;
        });
        for (int32_t number : loops) peel_loop(state, graph_.loops[number]);
        for (int32_t number : sets) {
            MemberSet set = graph_.sets[number];
            for (size_t first = 0; first < set.members.size(); ++first) peel_set(state, set, first);
        }
    }

    bool has_member(const MemberSet& set) const {
        return std::any_of(set.members.begin(), set.members.end(),
                           [this](const Member& member) { return is_member_[member.region] != 0; });
    }

    void peel_loop(int32_t state, Loop loop) {
        int32_t after = graph_.new_state();
        if (loop.lo <= 1) graph_.add_empty(after, loop.exit);
        if (loop.hi < 0 || loop.hi > 1) {
            int64_t hi = loop.hi < 0 ? -1 : loop.hi - 1;
            graph_.add_loop(after, {loop.body, std::max<int64_t>(loop.lo - 1, 1), hi, loop.exit});
        }
        graph_.add_call(state, loop.body, after);
    }

    void peel_set(int32_t state, const MemberSet& set, size_t first) {
        int32_t after = graph_.new_state();
        if (may_end_after(set, first)) graph_.add_empty(after, set.exit);
        MemberSet rest = after_first(set, first);
        if (!rest.clauses.empty() && !rest.members.empty()) {
            int32_t again = after;
            if (set.separator >= 0) {
                again = graph_.new_state();
                graph_.add_call(after, set.separator, again);
            }
            graph_.add_set(again, std::move(rest));
        }
        graph_.add_call(state, set.members[first].region, after);
    }

    void rebuild(size_t which) {
        std::unordered_map<int32_t, int32_t> after;
        for (int32_t other : group_) after[other] = graph_.new_state();
        graph_.set_end(after[group_[which]]);
        int32_t start = graph_.new_state();
        for (size_t i = 0; i < group_.size(); ++i) graph_.add_call(start, seeds_[i], after[group_[i]]);
        for (const Lead& lead : leads_) {
            const Rest& rest = rests_[lead.state];
            graph_.add_call(after[lead.first], rest.region, after[lead.whole]);
            if (rest.may_be_empty) graph_.add_empty(after[lead.first], after[lead.whole]);
        }
        graph_.regions[group_[which]].entry = start;
    }

    Graph& graph_;
    std::vector<int32_t> group_;
    std::vector<char> is_member_;
    std::vector<int32_t> seeds_;  // as `group_`
    std::vector<Lead> leads_;
    std::unordered_map<int32_t, Rest> rests_;  // by the state where a lead goes on
};

}  // namespace

void remove_left_recursion(Graph& graph) {
    size_t num_regions = graph.regions.size();
    Rows<int32_t> calls = all_left_calls(graph, std::vector<char>(num_regions, 1));
    for (const std::vector<int32_t>& group : call_groups(num_regions, calls)) {
        View<int32_t> called = calls.of(size_t(group[0]));
        bool calls_itself = std::find(called.begin(), called.end(), group[0]) != called.end();
        if (group.size() == 1 && !calls_itself) continue;
        if (group.size() > kMaxGroup) {
            throw CompileError{"left recursion", "more than " + std::to_string(kMaxGroup) +
                                                     " rules call each other as their first part"};
        }
        GroupRebuild(graph, group).run();
    }
}

}  // namespace radix_compile
