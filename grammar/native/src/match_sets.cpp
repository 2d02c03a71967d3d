// Planning of sets: per clause, what it still needs and the cheapest further members that reach the least number.
#include "match_sets.h"

#include <algorithm>

namespace radix {
namespace {

bool has(const u64* bits, u32 index) { return bits[index >> 6] >> (index & 63) & 1; }
bool has(const std::vector<u64>& bits, u32 index) { return has(bits.data(), index); }
void add(u64* bits, u32 index) { bits[index >> 6] |= u64(1) << (index & 63); }

bool meet(const std::vector<u64>& left, const u64* right) {
    for (std::size_t word = 0; word < left.size(); ++word)
        if (left[word] & right[word]) return true;
    return false;
}

i64 last_of(const u64* bits, u32 num_words) {
    for (u32 word = num_words; word-- > 0;)
        if (bits[word]) return i64(word) * 64 + 63 - __builtin_clzll(bits[word]);
    return -1;
}

}  // namespace

// One clause after some members: what it still needs, and what else may come.
struct SetRules::Demand {
    const Clause* clause;
    bool is_possible;
    std::vector<u64> needs;     // needed and not there
    i64 num_needs, needs_cost;  // their number, and their prices together
    i64 lowest_need;            // -1: none
    bool is_sorted;
    std::vector<std::pair<i64, u32>> extras;  // (price, member): singles that may come and need not, cheapest first
    std::vector<std::pair<u32, i64>> runs;    // (member, price) of runs that may come
    // makes `extras` and `runs`; only sets with a least number need them
    void sort(const SetRules& rules, const u64* bits, const i64* prices);
};

SetRules::SetRules(const Program& program, u32 set)
    : program_(program),
      first_(u32(program.member_start[set])),
      num_members_(u32(program.member_start[set + 1]) - first_),
      num_words_((num_members_ + 63) / 64),
      lo_(program.set_lo[set]),
      hi_(program.set_hi[set]),
      separator_(program.set_separator[set]),
      is_ordered_(program.set_flags[set] & 1),
      mentioned_(num_words_, 0) {
    for (i32 c = program.clause_start[set]; c < program.clause_start[set + 1]; ++c) {
        Clause clause{std::vector<u64>(num_words_, 0), std::vector<u64>(num_words_, 0)};
        for (i32 at = program.literal_start[c]; at < program.literal_start[c + 1]; ++at) {
            const i32 literal = program.literals[at];
            const u32 member = u32(literal >= 0 ? literal : -1 - literal);
            add((literal >= 0 ? clause.needs : clause.bars).data(), member);
            add(mentioned_.data(), member);
        }
        if (!meet(clause.needs, clause.bars.data())) clauses_.push_back(std::move(clause));
    }
}

bool SetRules::is_done(const u64* bits, i64 count) const {
    if (count < lo_) return false;
    for (const Clause& clause : clauses_) {
        if (meet(clause.bars, bits)) continue;
        bool is_met = true;
        for (u32 word = 0; word < num_words_; ++word) is_met = is_met && !(clause.needs[word] & ~bits[word]);
        if (is_met) return true;
    }
    return false;
}

void SetRules::after(const u64* bits, u32 member, u64* out) const {
    std::copy(bits, bits + num_words_, out);
    // in order only the last member and those that clauses ask about matter
    if (is_ordered_)
        for (u32 word = 0; word < num_words_; ++word) out[word] &= mentioned_[word];
    if (is_ordered_ || !is_run(member) || has(mentioned_, member)) add(out, member);
}

void SetRules::prepare(Demand& demand, const Clause& clause, const u64* bits, i64 count, const i64* prices) const {
    demand.clause = &clause;
    demand.is_possible = !meet(clause.bars, bits);
    demand.num_needs = demand.needs_cost = 0;
    demand.lowest_need = -1;
    demand.is_sorted = false;
    if (!demand.is_possible) return;
    demand.needs.assign(num_words_, 0);
    for (u32 word = 0; word < num_words_; ++word) {
        u64 left = demand.needs[word] = clause.needs[word] & ~bits[word];
        for (; left; left &= left - 1) {
            const u32 member = word * 64 + u32(__builtin_ctzll(left));
            if (demand.lowest_need < 0) demand.lowest_need = member;
            ++demand.num_needs;
            demand.needs_cost = cost_sum(demand.needs_cost, prices[member]);
        }
    }
    if (lo_ > count + 1) demand.sort(*this, bits, prices);
}

void SetRules::Demand::sort(const SetRules& rules, const u64* bits, const i64* prices) {
    is_sorted = true;
    extras.clear();
    runs.clear();
    for (u32 member = 0; member < rules.num_members_; ++member) {
        if (has(clause->bars, member)) continue;
        if (rules.is_run(member)) {
            runs.push_back({member, prices[member]});
        } else if (!has(bits, member) && !has(needs, member)) {
            extras.push_back({prices[member], member});
        }
    }
    std::sort(extras.begin(), extras.end());
}

// Whether the clause can still hold when `member` has begun, and the least cost behind it.
bool SetRules::cost_behind(const Demand& demand, u32 member, i64 count, const i64* prices, i64& cost) const {
    if (!demand.is_possible || has(demand.clause->bars, member)) return false;
    if (is_ordered_ && demand.lowest_need >= 0 && demand.lowest_need < i64(member)) return false;
    i64 num_needs = demand.num_needs;
    cost = demand.needs_cost;
    if (has(demand.needs, member)) {
        --num_needs;
        if (cost < MAX_COST) {
            cost -= prices[member];
        } else {  // the sum was cut off: add the others again
            cost = 0;
            for (u32 other = 0; other < num_members_; ++other)
                if (other != member && has(demand.needs, other)) cost = cost_sum(cost, prices[other]);
        }
    }
    if (hi_ >= 0 && count + 1 + num_needs > hi_) return false;
    i64 missing = lo_ - (count + 1 + num_needs);
    if (missing <= 0) return true;
    i64 run_price = -1;
    for (const auto& [run, price] : demand.runs)
        if ((!is_ordered_ || run >= member) && (run_price < 0 || price < run_price)) run_price = price;
    for (const auto& [price, other] : demand.extras) {
        if (missing == 0 || (run_price >= 0 && price >= run_price)) break;
        if (other == member || (is_ordered_ && other < member)) continue;
        cost = cost_sum(cost, price);
        --missing;
    }
    if (missing && run_price < 0) return false;
    if (missing) cost = cost_sum(cost, cost_product(missing, run_price));
    return true;
}

void SetRules::plan(const u64* bits, i64 count, const i64* costs, std::vector<Start>& starts) const {
    starts.clear();
    const i64 separator_cost = separator_ < 0 ? 0 : costs[program_.region_entry[separator_]];
    std::vector<i64> prices(num_members_);
    for (u32 member = 0; member < num_members_; ++member)
        prices[member] = cost_sum(separator_cost, entry_cost(member, costs));
    std::vector<Demand> demands(clauses_.size());
    for (std::size_t k = 0; k < clauses_.size(); ++k) prepare(demands[k], clauses_[k], bits, count, prices.data());
    const i64 last = is_ordered_ ? last_of(bits, num_words_) : -1;
    for (u32 member = is_ordered_ && last > 0 ? u32(last) : 0; member < num_members_; ++member) {
        const bool may_come = is_ordered_ ? i64(member) > last || is_run(member) : is_run(member) || !has(bits, member);
        if (!may_come) continue;
        bool is_feasible = false;
        i64 least = MAX_COST, cost = 0;
        for (const Demand& demand : demands)
            if (cost_behind(demand, member, count, prices.data(), cost)) {
                is_feasible = true;
                least = std::min(least, cost);
            }
        if (is_feasible) starts.push_back({member, least});
    }
}

i64 first_cost(const Program& program, u32 set, const i64* costs) {
    const SetRules rules(program, set);
    std::vector<Start> starts;
    const std::vector<u64> bits(rules.num_words(), 0);
    rules.plan(bits.data(), 0, costs, starts);
    i64 least = MAX_COST;
    for (const Start& start : starts) least = std::min(least, cost_sum(start.cost, rules.entry_cost(start.member, costs)));
    return least;
}

const SetRules& SetStore::rules(u32 set) {
    if (rules_.size() < program_.num_sets) rules_.resize(program_.num_sets);
    if (!rules_[set]) rules_[set] = std::make_unique<SetRules>(program_, set);
    return *rules_[set];
}

u32 SetStore::begin(u32 set) {
    const std::vector<u64> none(rules(set).num_words(), 0);
    return intern(set, none.data(), 0);
}

u32 SetStore::next(u32 state, u32 start) {
    const SetState& before = *states_[state];
    if (before.next[start] == NONE) {
        const SetRules& about = rules(before.set);
        std::vector<u64> bits(about.num_words());
        about.after(before.bits, before.starts[start].member, bits.data());
        before.next[start] = intern(before.set, bits.data(), about.count_after(before.count));
    }
    return before.next[start];
}

u32 SetStore::intern(u32 set, const u64* bits, i64 count) {
    const SetRules& about = rules(set);
    const u32 num_words = about.num_words();
    u64 hash = mix(set, u64(count));
    for (u32 word = 0; word < num_words; ++word) hash = mix(hash, bits[word]);
    const u32 found = index_.find(u32(hash), [&](u32 id) {
        const SetState& other = *states_[id];
        return other.set == set && other.count == count && !std::memcmp(other.bits, bits, num_words * sizeof(u64));
    });
    if (found != NONE) return found;
    about.plan(bits, count, costs_, starts_);
    auto* state = arena_.take<SetState>(1);
    auto* kept_bits = arena_.take<u64>(num_words);
    auto* kept_starts = arena_.take<Start>(starts_.size());
    auto* next = arena_.take<u32>(starts_.size());
    std::copy(bits, bits + num_words, kept_bits);
    std::copy(starts_.begin(), starts_.end(), kept_starts);
    std::fill(next, next + starts_.size(), NONE);
    i64 separated = MAX_COST;
    for (const Start& start : starts_) separated = std::min(separated, cost_sum(start.cost, about.entry_cost(start.member, costs_)));
    *state = {set, count, kept_bits, kept_starts, next, u32(starts_.size()), u32(hash), about.is_done(bits, count), separated};
    const u32 id = states_.push(state);
    index_.insert(u32(hash), id);
    return id;
}

}  // namespace radix
