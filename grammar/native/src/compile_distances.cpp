// Source: D. Knuth, "A generalization of Dijkstra's algorithm", 1977 (a call costs its region plus what follows).

#include "compile_distances.h"

#include <algorithm>
#include <queue>

namespace radix_compile {
namespace {

class Completions {
public:
    explicit Completions(const Graph& graph)
        : graph_(graph), cost_(graph.num_states(), kNever), is_settled_(graph.num_states(), 0) {
        for (const MemberSet& set : graph.sets) clause_costs_.emplace_back(set.clauses.size(), kNever);
    }

    std::vector<int64_t> run() {
        Rows<Dependent> waiting = dependents(graph_);
        for (size_t state = 0; state < cost_.size(); ++state) {
            if (graph_.is_end(int32_t(state))) offer(int32_t(state), 0);
        }
        while (!heap_.empty()) {
            Candidate best = heap_.top();
            heap_.pop();
            if (is_settled_[best.state]) continue;
            is_settled_[best.state] = 1;
            for (const Dependent& dependent : waiting.of(size_t(best.state))) {
                if (!is_settled_[dependent.source]) offer(dependent.source, move_cost(graph_.moves[dependent.move]));
            }
        }
        return std::move(cost_);
    }

private:
    struct Candidate {
        int64_t cost;
        int32_t state;
        bool operator<(const Candidate& other) const { return cost > other.cost; }  // cheapest on top
    };

    void offer(int32_t state, int64_t cost) {
        if (cost > cost_[state] || (cost == cost_[state] && cost < kNever)) return;
        cost_[state] = cost;
        if (cost < kNever) heap_.push({cost, state});
    }

    int64_t known(int32_t state) const { return is_settled_[state] ? cost_[state] : kNever; }
    int64_t region_cost(int32_t region) const { return known(graph_.regions[region].entry); }

    int64_t move_cost(const Move& move) {
        switch (move.kind) {
            case MoveKind::Edge:
                return add_costs(1, known(move.target));
            case MoveKind::Literal:
                return add_costs(int64_t(graph_.literal(move.arg).size()), known(move.target));
            case MoveKind::Empty:
                return known(move.target);
            case MoveKind::Call:
                return add_costs(region_cost(move.arg), known(move.target));
            case MoveKind::Loop: {
                const Loop& loop = graph_.loops[move.arg];
                return add_costs(multiply_costs(loop.lo, region_cost(loop.body)), known(loop.exit));
            }
            case MoveKind::Set:
                return set_cost(move.arg);
        }
        return kNever;
    }

    // Members become known from the cheapest on, so the first cost of a clause is its least.
    int64_t set_cost(int32_t number) {
        const MemberSet& set = graph_.sets[number];
        int64_t after = known(set.exit), least = kNever;
        if (after >= kNever) return kNever;
        std::vector<int64_t> costs;
        for (size_t i = 0; i < set.clauses.size(); ++i) {
            int64_t& cost = clause_costs_[number][i];
            if (cost >= kNever) {
                if (costs.empty()) {
                    for (const Member& member : set.members) costs.push_back(region_cost(member.region));
                }
                int64_t separator = set.separator < 0 ? 0 : region_cost(set.separator);
                cost = clause_cost(set, set.clauses[i], costs, separator);
            }
            least = std::min(least, cost);
        }
        return add_costs(least, after);
    }

    const Graph& graph_;
    std::vector<int64_t> cost_;
    std::vector<char> is_settled_;
    std::vector<std::vector<int64_t>> clause_costs_;  // by set
    std::priority_queue<Candidate> heap_;
};

}  // namespace

std::vector<int64_t> shortest_completions(const Graph& graph) { return Completions(graph).run(); }

}  // namespace radix_compile
