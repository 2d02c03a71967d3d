// Source: K. Thompson, "Regular expression search algorithm", CACM 1968. Sets of literals are in compile_radix.cpp.

#include "compile_lowering.h"

#include <algorithm>

namespace radix_compile {

Lowering::Lowering(const Dag& dag, const Analysis* analysis, Graph& graph, const Bits256& alphabet,
                   const Products& products)
    : dag_(dag), analysis_(analysis), graph_(graph), alphabet_(alphabet), products_(products) {
    if (!is_flat()) region_of_.assign(dag.nodes.size(), -1);
}

int32_t Lowering::build(int32_t node) {
    int32_t start = graph_.new_state(), end = graph_.new_end();
    connect(node, start, end);
    while (!work_.empty()) {
        Work work = work_.back();
        work_.pop_back();
        lower(work);
    }
    return start;
}

void Lowering::connect(int32_t node, int32_t source, int32_t target) {
    if (!is_flat() && analysis_->is_region(node)) {
        graph_.add_call(source, region_of(node), target);
        if (analysis_->accepts_empty(node)) graph_.add_empty(source, target);
        return;
    }
    work_.push_back({Task::Whole, node, source, target, 0, 0});
}

int32_t Lowering::region_of(int32_t node) {
    if (region_of_[node] < 0) {
        int32_t start = graph_.new_state(), end = graph_.new_end();
        region_of_[node] = graph_.new_region(start);
        work_.push_back({Task::Whole, node, start, end, 0, 0});
    }
    return region_of_[node];
}

void Lowering::lower(const Work& work) {
    switch (work.task) {
        case Task::Whole:
            lower_whole(work.node, work.source, work.target);
            break;
        case Task::Copies:
            copies(work);
            break;
        case Task::Rest:
            sequence_rest(work);
            break;
    }
}

void Lowering::lower_whole(int32_t number, int32_t source, int32_t target) {
    const Node& node = dag_.nodes[number];
    switch (node.kind) {
        case Kind::Bytes:
            graph_.add_edge(source, node.mask & alphabet_, target);
            break;
        case Kind::Lit:
            literal(node.text, source, target);
            break;
        case Kind::Chars:
            chars(number, source, target);
            break;
        case Kind::Seq:
            sequence_rest({Task::Rest, number, source, target, 0, 0});
            break;
        case Kind::Alt:
            alternatives(number, source, target);
            break;
        case Kind::Choice:
            choice(node, source, target);
            break;
        case Kind::Repeat:
            repeat(number, source, target);
            break;
        case Kind::And:
        case Kind::Minus:
        case Kind::Erase:
            product(*products_[number], source, target);
            break;
        case Kind::Members:
            members(number, source, target);
            break;
        case Kind::Ref:  // the graph has none: see compile_dag.cpp
            break;
    }
}

void Lowering::literal(View<uint8_t> text, int32_t source, int32_t target) {
    if (!std::all_of(text.begin(), text.end(), [this](uint8_t byte) { return alphabet_.has(byte); })) return;
    if (text.size() == 0) {
        graph_.add_empty(source, target);
    } else if (text.size() == 1 || is_flat()) {
        for (size_t i = 0; i + 1 < text.size(); ++i) {
            int32_t after = graph_.new_state();
            graph_.add_edge(source, Bits256::of(text[i]), after);
            source = after;
        }
        graph_.add_edge(source, Bits256::of(text[text.size() - 1]), target);
    } else {
        graph_.add_literal(source, text, target);
    }
}

void Lowering::chars(int32_t number, int32_t source, int32_t target) {
    const Node& node = dag_.nodes[number];
    if (node.info.size() == 0 || node.info[node.info.size() - 1] <= 0x7F) {
        Bits256 mask;
        for (size_t i = 0; i + 1 < node.info.size(); i += 2) mask.add_range(int(node.info[i]), int(node.info[i + 1]));
        graph_.add_edge(source, mask & alphabet_, target);
        return;
    }
    auto found = trees_.find(number);
    if (found == trees_.end()) found = trees_.emplace(number, char_tree(node.info)).first;
    const CharTree& tree = found->second;
    std::vector<int32_t> states(tree.rows.size(), -1);
    states[0] = target;
    states[tree.start] = source;
    for (int32_t row = int32_t(tree.rows.size()) - 1; row > 0; --row) {  // tails stand before what leads to them
        if (states[row] < 0) continue;
        for (const auto& move : tree.rows[row]) {
            Bits256 mask = move.first & alphabet_;
            if (!mask.any()) continue;
            if (states[move.second] < 0) states[move.second] = graph_.new_state();
            graph_.add_edge(states[row], mask, states[move.second]);
        }
    }
}

void Lowering::sequence_rest(const Work& work) {
    View<int32_t> kids = dag_.kids_of(work.node);
    if (size_t(work.lo) == kids.size()) {
        graph_.add_empty(work.source, work.target);
        return;
    }
    int32_t source = work.source;
    for (size_t i = size_t(work.lo); i + 1 < kids.size(); ++i) {
        int32_t after = graph_.new_state();
        connect(kids[i], source, after);
        source = after;
    }
    connect(kids[kids.size() - 1], source, work.target);
}

void Lowering::repeat(int32_t number, int32_t source, int32_t target) {
    const Node& node = dag_.nodes[number];
    int32_t item = dag_.kids_of(number)[0];
    if (is_flat() || !analysis_->is_counted(node)) {
        copies({Task::Copies, item, source, target, node.lo, node.hi});
        return;
    }
    int64_t lo = analysis_->accepts_empty(item) ? 0 : node.lo;
    graph_.add_loop(source, {region_of(item), std::max<int64_t>(lo, 1), node.hi, target});
    if (lo == 0) graph_.add_empty(source, target);
}

void Lowering::copies(const Work& work) {
    bool is_endless = work.hi < 0;
    if (work.hi == 0) {
        graph_.add_empty(work.source, work.target);
        return;
    }
    if (is_endless && work.lo <= 1) {
        int32_t before = graph_.new_state(), after = graph_.new_state();
        graph_.add_empty(work.source, before);
        connect(work.node, before, after);
        graph_.add_empty(after, before);
        graph_.add_empty(after, work.target);
    } else if (work.hi == 1) {
        connect(work.node, work.source, work.target);
    } else {  // one copy now, the rest later: work stays linear and states are counted as they come
        int32_t after = graph_.new_state();
        connect(work.node, work.source, after);
        int64_t lo = std::max<int64_t>(work.lo - 1, 0), hi = is_endless ? -1 : work.hi - 1;
        work_.push_back({Task::Copies, work.node, after, work.target, lo, hi});
    }
    if (work.lo == 0) graph_.add_empty(work.source, work.target);
}

void Lowering::members(int32_t number, int32_t source, int32_t target) {
    View<int32_t> kids = dag_.kids_of(number);
    MemberSet set = read_members(dag_.nodes[number]);
    if (analysis_->accepts_empty(number)) graph_.add_empty(source, target);
    bool has_separator = !dag_.nodes[kids[0]].is_epsilon();
    for (size_t i = has_separator ? 0 : 1; i < kids.size(); ++i) {
        if (analysis_->accepts_empty(kids[i])) {
            throw CompileError{"members", std::string("a set of members has a ") + (i ? "member" : "separator") +
                                              " that accepts the empty string"};
        }
    }
    if (set.members.empty() || set.clauses.empty() || (set.hi >= 0 && set.hi < set.lo)) return;
    if (has_separator) set.separator = region_of(kids[0]);
    for (size_t i = 0; i < set.members.size(); ++i) set.members[i].region = region_of(kids[i + 1]);
    set.exit = target;
    graph_.add_set(source, std::move(set));
}

void Lowering::product(const Dfa& automaton, int32_t source, int32_t target) {
    int32_t first = int32_t(graph_.num_states());
    for (size_t i = 0; i < automaton.num_states(); ++i) graph_.new_state();
    if (automaton.num_states() > 0) graph_.add_empty(source, first);
    for (size_t i = 0; i < automaton.num_states(); ++i) {
        for (const DfaMove& move : automaton.row(i)) {
            graph_.add_edge(first + int32_t(i), move.mask & alphabet_, first + move.target);
        }
        if (automaton.is_accepting[i]) graph_.add_empty(first + int32_t(i), target);
    }
}

}  // namespace radix_compile
