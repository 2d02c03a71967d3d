// Sets of members in one text: which texts a set has at all, what the shortest costs, and what is left of it after a first member.
#pragma once

#include <cstdint>
#include <vector>

#include "compile_dag.h"

namespace radix_compile {

const int64_t kNever = int64_t(1) << 60;  // the cost of what cannot be; also the largest cost told apart

int64_t add_costs(int64_t left, int64_t right);
int64_t multiply_costs(int64_t times, int64_t cost);

struct Member {
    int32_t region;
    bool is_run;
};

// Members that must be there and members that must not, by position in the set.
struct Clause {
    std::vector<int32_t> needs, bars;
};

// `lo` to `hi` (-1: any number) members with the separator (-1: none) between neighbours, then on to state `exit`. lo >= 1.
struct MemberSet {
    int32_t exit = -1;
    int32_t separator = -1;  // region
    int64_t lo = 1, hi = -1;
    bool is_ordered = false;
    std::vector<Member> members;
    std::vector<Clause> clauses;
};

// The set that a Members node describes, its regions not yet known. `members` keeps the node's order.
MemberSet read_members(const Node& node);

// Least cost of a text of the set under one clause; kNever if there is none. `costs` are those of one text of each member.
int64_t clause_cost(const MemberSet& set, const Clause& clause, const std::vector<int64_t>& costs, int64_t separator_cost);

// The set of those members alone for which `is_kept`, without the clauses that need others and the members no clause allows.
MemberSet restricted(const MemberSet& set, const std::vector<char>& is_kept);

// What may follow (at least one member, each behind a separator) once the first member was `first`. It may have no clauses left.
MemberSet after_first(const MemberSet& set, size_t first);

// Whether the set may end right after a first member `first`.
bool may_end_after(const MemberSet& set, size_t first);

}  // namespace radix_compile
