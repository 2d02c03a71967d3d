// token_costs: the program's distances if every byte has a token, else the shortest ways over the bytes that have.
#include "match_costs.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "match_sets.h"

namespace radix {
namespace {

struct Joint {  // `times` rounds of the region that starts at `entry`, then on from `after`; or a set, if `set` >= 0
    u32 source, entry, after;
    i64 times;
    i32 set;
};

class Shortest {
public:
    Shortest(Program& program, const std::vector<u8>& is_usable) : p_(program), joints_(program.num_states), simple_(program.num_states) {
        for (u32 edge = 0; edge < p_.edge_from.size; ++edge)
            if (is_usable[edge]) simple_[p_.edge_to[edge]].push_back({u32(p_.edge_from[edge]), 1});
        for (u32 row = 0; row < p_.empty_from.size; ++row)
            simple_[p_.empty_to[row]].push_back({u32(p_.empty_from[row]), 0});
        for (u32 row = 0; row < p_.call_from.size; ++row)
            add(u32(p_.call_from[row]), u32(p_.call_region[row]), 1, u32(p_.call_to[row]));
        for (u32 row = 0; row < p_.loop_from.size; ++row) {
            const u32 loop = u32(p_.loop_id[row]);
            add(u32(p_.loop_from[row]), u32(p_.loop_body[loop]), p_.loop_lo[loop], u32(p_.loop_exit[loop]));
        }
        for (u32 row = 0; row < p_.set_from.size; ++row) add_set(u32(p_.set_from[row]), p_.set_id[row]);
    }

    i64* run() {
        costs_ = p_.arena().take<i64>(p_.num_states);
        std::fill(costs_, costs_ + p_.num_states, MAX_COST);
        for (u32 i = 0; i < p_.ends.size; ++i) heap_.push({0, u32(p_.ends[i])});
        while (!heap_.empty()) {
            const auto [cost, state] = heap_.top();
            heap_.pop();
            if (costs_[state] != MAX_COST) continue;
            costs_[state] = cost;
            for (const auto& [source, extra] : simple_[state]) offer(source, cost_sum(cost, extra));
            for (u32 at : joints_[state]) offer(rows_[at].source, value(rows_[at]));
        }
        return costs_;
    }

private:
    void offer(u32 source, i64 cost) {
        if (cost < MAX_COST && costs_[source] == MAX_COST) heap_.push({cost, source});
    }
    i64 value(const Joint& row) const {
        if (row.set >= 0) {
            const i64 cost = first_cost(p_, u32(row.set), costs_);
            return cost_sum(cost, costs_[row.after]);
        }
        return cost_sum(cost_product(row.times, costs_[row.entry]), costs_[row.after]);
    }
    void add(u32 source, u32 region, i64 times, u32 after) {
        const u32 entry = u32(p_.region_entry[region]);
        joints_[entry].push_back(u32(rows_.size()));
        if (after != entry) joints_[after].push_back(u32(rows_.size()));
        rows_.push_back({source, entry, after, times, -1});
    }
    void add_set(u32 source, i32 set) {
        std::vector<u32> about{u32(p_.set_exit[set])};
        if (p_.set_separator[set] >= 0) about.push_back(u32(p_.region_entry[p_.set_separator[set]]));
        for (i32 m = p_.member_start[set]; m < p_.member_start[set + 1]; ++m)
            about.push_back(u32(p_.region_entry[p_.member_region[m]]));
        std::sort(about.begin(), about.end());
        about.erase(std::unique(about.begin(), about.end()), about.end());
        for (u32 state : about) joints_[state].push_back(u32(rows_.size()));
        rows_.push_back({source, 0, u32(p_.set_exit[set]), 0, set});
    }

    Program& p_;
    std::vector<Joint> rows_;
    std::vector<std::vector<u32>> joints_;
    std::vector<std::vector<std::pair<u32, i64>>> simple_;
    using Item = std::pair<i64, u32>;
    std::priority_queue<Item, std::vector<Item>, std::greater<Item>> heap_;
    i64* costs_ = nullptr;
};

}  // namespace

const i64* token_costs(Program& program, const u8* has_single) {
    bool is_missing[256];
    bool is_any_missing = false;
    for (u32 byte = 0; byte < 256; ++byte) {
        is_missing[byte] = program.alphabet[byte] && !has_single[byte];
        is_any_missing = is_any_missing || is_missing[byte];
    }
    bool is_needed = false;
    std::vector<u8> is_usable;
    if (is_any_missing) {
        u32 missing_before[257] = {}, single_before[257] = {};
        for (u32 byte = 0; byte < 256; ++byte) {
            missing_before[byte + 1] = missing_before[byte] + is_missing[byte];
            single_before[byte + 1] = single_before[byte] + (has_single[byte] ? 1 : 0);
        }
        is_usable.resize(program.edge_from.size);
        for (u32 edge = 0; edge < program.edge_from.size; ++edge) {
            const u32 low = program.edge_lo[edge], high = program.edge_hi[edge] + 1u;
            is_needed = is_needed || missing_before[high] > missing_before[low];
            is_usable[edge] = single_before[high] > single_before[low];
        }
    }
    if (is_needed) return Shortest(program, is_usable).run();
    for (u32 state = 0; state < program.num_states; ++state)
        program.distances.data[state] = std::min(program.distances[state], MAX_COST);
    return program.distances.data;
}

}  // namespace radix
