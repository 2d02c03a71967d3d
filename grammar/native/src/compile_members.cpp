#include "compile_members.h"

#include <algorithm>

namespace radix_compile {
namespace {

bool contains(const std::vector<int32_t>& list, size_t value) {
    return std::find(list.begin(), list.end(), int32_t(value)) != list.end();
}

std::vector<int32_t> read_list(const Node& node, size_t& at) {
    auto fail = [] { throw CompileError{"members", "a clause names a member that is not there"}; };
    if (at >= node.info.size()) fail();
    int64_t count = node.info[at++];
    if (count < 0 || uint64_t(count) > node.info.size() - at) fail();
    std::vector<int32_t> list;
    for (int64_t i = 0; i < count; ++i) {
        int64_t index = node.info[at++];
        if (index < 0 || index >= node.num_kids - 1) fail();
        list.push_back(int32_t(index));
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
}

}  // namespace

int64_t add_costs(int64_t left, int64_t right) { return std::min(kNever, left + right); }

int64_t multiply_costs(int64_t times, int64_t cost) {
    __int128 product = __int128(times) * cost;
    return product > kNever ? kNever : int64_t(product);
}

MemberSet read_members(const Node& node) {
    MemberSet set;
    size_t num_members = size_t(node.num_kids) - 1;
    set.lo = std::max<int64_t>(node.lo, 1);
    set.hi = node.hi;
    set.is_ordered = node.info[0] != 0;
    for (size_t i = 0; i < num_members; ++i) set.members.push_back({-1, node.info[1 + i] != 0});
    size_t at = 1 + num_members;
    int64_t num_clauses = node.info[at++];
    for (int64_t i = 0; i < num_clauses; ++i) {
        Clause clause;
        clause.needs = read_list(node, at);
        clause.bars = read_list(node, at);
        set.clauses.push_back(std::move(clause));
    }
    return set;
}

int64_t clause_cost(const MemberSet& set, const Clause& clause, const std::vector<int64_t>& costs,
                    int64_t separator_cost) {
    int64_t num_needed = int64_t(clause.needs.size());
    if (set.hi >= 0 && num_needed > set.hi) return kNever;
    int64_t total = 0;
    for (int32_t member : clause.needs) total = add_costs(total, costs[member]);
    if (total >= kNever) return kNever;
    std::vector<char> is_out(set.members.size(), 0);  // barred, or needed and thus counted
    for (int32_t member : clause.bars) is_out[member] = 1;
    for (int32_t member : clause.needs) {
        if (is_out[member]) return kNever;
    }
    int64_t num_members = std::max(set.lo, num_needed);
    int64_t num_extra = num_members - num_needed;
    if (num_extra > 0) {  // the cheapest others, each single one once
        int64_t run_cost = kNever;
        std::vector<int64_t> singles;
        for (int32_t member : clause.needs) is_out[member] = !set.members[member].is_run;
        for (size_t i = 0; i < set.members.size(); ++i) {
            if (is_out[i] || costs[i] >= kNever) continue;
            if (set.members[i].is_run) {
                run_cost = std::min(run_cost, costs[i]);
            } else {
                singles.push_back(costs[i]);
            }
        }
        std::sort(singles.begin(), singles.end());
        for (int64_t cost : singles) {
            if (num_extra == 0 || cost >= run_cost) break;
            total = add_costs(total, cost);
            --num_extra;
        }
        if (num_extra > 0) total = add_costs(total, multiply_costs(num_extra, run_cost));
    }
    if (num_members > 1 && set.separator >= 0) {
        total = add_costs(total, multiply_costs(num_members - 1, separator_cost));
    }
    return total;
}

MemberSet restricted(const MemberSet& set, const std::vector<char>& is_kept) {
    std::vector<char> is_useful(set.members.size(), 0);
    std::vector<const Clause*> kept;
    for (const Clause& clause : set.clauses) {
        bool is_possible = std::all_of(clause.needs.begin(), clause.needs.end(),
                                       [&](int32_t member) { return is_kept[member] && !contains(clause.bars, size_t(member)); });
        if (!is_possible) continue;
        kept.push_back(&clause);
        std::vector<char> is_barred(set.members.size(), 0);
        for (int32_t member : clause.bars) is_barred[member] = 1;
        for (size_t i = 0; i < set.members.size(); ++i) is_useful[i] |= !is_barred[i];
    }
    MemberSet result;
    result.exit = set.exit;
    result.separator = set.separator;
    result.lo = set.lo;
    result.hi = set.hi;
    result.is_ordered = set.is_ordered;
    std::vector<int32_t> number(set.members.size(), -1);
    for (size_t i = 0; i < set.members.size(); ++i) {
        if (!is_kept[i] || !is_useful[i]) continue;
        number[i] = int32_t(result.members.size());
        result.members.push_back(set.members[i]);
    }
    for (const Clause* clause : kept) {
        Clause renumbered;
        for (int32_t member : clause->needs) renumbered.needs.push_back(number[member]);
        for (int32_t member : clause->bars) {
            if (number[member] >= 0) renumbered.bars.push_back(number[member]);
        }
        result.clauses.push_back(std::move(renumbered));
    }
    return result;
}

MemberSet after_first(const MemberSet& set, size_t first) {
    MemberSet rest = set;
    rest.lo = std::max<int64_t>(set.lo - 1, 1);
    rest.hi = set.hi < 0 ? -1 : set.hi - 1;
    rest.clauses.clear();
    if (rest.hi == 0) return rest;
    bool is_run = set.members[first].is_run;
    for (const Clause& clause : set.clauses) {
        if (contains(clause.bars, first)) continue;
        Clause reduced = clause;
        reduced.needs.erase(std::remove(reduced.needs.begin(), reduced.needs.end(), int32_t(first)), reduced.needs.end());
        rest.clauses.push_back(std::move(reduced));
    }
    std::vector<char> is_kept(set.members.size(), 1);
    for (size_t i = 0; i < is_kept.size(); ++i) {
        if (i == first ? !is_run : set.is_ordered && i < first) is_kept[i] = 0;
    }
    return restricted(rest, is_kept);
}

bool may_end_after(const MemberSet& set, size_t first) {
    if (set.lo > 1) return false;
    return std::any_of(set.clauses.begin(), set.clauses.end(), [&](const Clause& clause) {
        bool needs_others = std::any_of(clause.needs.begin(), clause.needs.end(),
                                        [&](int32_t member) { return size_t(member) != first; });
        return !needs_others && !contains(clause.bars, first);
    });
}

}  // namespace radix_compile
