// Groups by R. Tarjan, "Depth-first search and linear graph algorithms", 1972, with a stack of its own instead of recursion.

#include "compile_call_order.h"

#include <algorithm>

namespace radix_compile {

Rows<int32_t> all_left_calls(Graph& graph, const std::vector<char>& is_used) {
    std::vector<int32_t> found;
    std::vector<size_t> first{0};
    for (size_t region = 0; region < is_used.size(); ++region) {
        if (is_used[region]) graph.left_calls(int32_t(region), found);
        std::sort(found.begin() + int64_t(first.back()), found.end());
        found.erase(std::unique(found.begin() + int64_t(first.back()), found.end()), found.end());
        first.push_back(found.size());
    }
    Rows<int32_t> rows(is_used.size());
    for (size_t region = 0; region < is_used.size(); ++region) {
        for (size_t i = first[region]; i < first[region + 1]; ++i) rows.count(region);
    }
    rows.allocate();
    for (size_t region = 0; region < is_used.size(); ++region) {
        for (size_t i = first[region]; i < first[region + 1]; ++i) rows.add(region, found[i]);
    }
    return rows;
}

std::vector<std::vector<int32_t>> call_groups(size_t num_regions, const Rows<int32_t>& calls) {
    struct Open {
        int32_t region;
        size_t next;  // call to follow
    };
    std::vector<std::vector<int32_t>> groups;
    std::vector<int32_t> index(num_regions, -1), low(num_regions, 0), pending;
    std::vector<char> is_pending(num_regions, 0);
    std::vector<Open> stack;
    int32_t next_index = 0;
    auto open = [&](int32_t region) {
        index[region] = low[region] = next_index++;
        pending.push_back(region);
        is_pending[region] = 1;
        stack.push_back({region, 0});
    };
    for (size_t root = 0; root < num_regions; ++root) {
        if (index[root] < 0) open(int32_t(root));
        while (!stack.empty()) {
            int32_t region = stack.back().region;
            View<int32_t> called = calls.of(size_t(region));
            if (stack.back().next < called.size()) {
                int32_t target = called[stack.back().next++];
                if (index[target] < 0) {
                    open(target);
                } else if (is_pending[target]) {
                    low[region] = std::min(low[region], index[target]);
                }
                continue;
            }
            stack.pop_back();
            if (!stack.empty()) {
                int32_t caller = stack.back().region;
                low[caller] = std::min(low[caller], low[region]);
            }
            if (low[region] != index[region]) continue;
            groups.emplace_back();
            int32_t member;
            do {
                member = pending.back();
                pending.pop_back();
                is_pending[member] = 0;
                groups.back().push_back(member);
            } while (member != region);
        }
    }
    return groups;
}

std::vector<int32_t> region_ranks(Graph& graph, const std::vector<char>& is_used) {
    Rows<int32_t> calls = all_left_calls(graph, is_used);
    std::vector<int32_t> ranks(is_used.size(), 0);
    int32_t rank = int32_t(is_used.size());
    for (const std::vector<int32_t>& group : call_groups(is_used.size(), calls)) {
        View<int32_t> called = calls.of(size_t(group[0]));
        bool calls_itself = std::find(called.begin(), called.end(), group[0]) != called.end();
        if (group.size() > 1 || calls_itself) {
            throw CompileError{"left recursion", "the grammar is left-recursive in a way that is not supported"};
        }
        ranks[group[0]] = --rank;
    }
    return ranks;
}

}  // namespace radix_compile
