#include "compile_product.h"

#include <algorithm>
#include <deque>

#include "compile_lowering.h"
#include "compile_minimise.h"
#include "compile_permanent.h"
#include "compile_subsets.h"

namespace radix_compile {
namespace {

// All operands at once; with `is_difference`, the first and not the second.
class Product {
public:
    Product(std::deque<Subsets>& operands, bool is_difference, std::vector<Bits256> classes, int64_t limit)
        : operands_(operands), is_difference_(is_difference), classes_(std::move(classes)), limit_(limit) {}

    Dfa run() {
        explore();
        return minimised(live_states());
    }

private:
    void explore() {
        std::vector<int32_t> tuple;
        for (Subsets& operand : operands_) tuple.push_back(operand.start());
        add(tuple);
        size_t num_operands = operands_.size();
        std::vector<const int32_t*> rows(num_operands);
        std::vector<int32_t> after(num_operands);
        for (size_t state = 0; state < table_.size(); ++state) {
            tuple.assign(table_[state].begin(), table_[state].end());
            for (size_t k = 0; k < num_operands; ++k) {
                rows[k] = tuple[k] == kDead ? nullptr : operands_[k].row(tuple[k]);
            }
            for (size_t index = 0; index < classes_.size(); ++index) {
                bool is_open = true;
                for (size_t k = 0; k < num_operands; ++k) {
                    after[k] = rows[k] == nullptr ? kDead : rows[k][index];
                    is_open = is_open && (after[k] != kDead || (is_difference_ && k == 1));
                }
                if (is_open) transitions_.push_back({int32_t(state), int32_t(index), add(after)});
            }
        }
    }

    int32_t add(const std::vector<int32_t>& tuple) {
        size_t num_known = table_.size();
        int32_t state = table_.intern(tuple);
        if (table_.size() == num_known) return state;
        if (int64_t(num_known) >= limit_ && num_known > 0) throw product_too_large(limit_);
        bool is_accepting = true;
        for (size_t k = 0; k < tuple.size(); ++k) {
            bool accepts = tuple[k] != kDead && operands_[k].is_accepting(tuple[k]);
            is_accepting = is_accepting && (is_difference_ && k == 1 ? !accepts : accepts);
        }
        is_accepting_.push_back(is_accepting);
        return state;
    }

    // New numbers of the states that can reach acceptance, -1 for the others.
    std::vector<int32_t> live_states() {
        size_t num_states = table_.size();
        Rows<int32_t> sources(num_states);
        for (const Transition& move : transitions_) sources.count(size_t(move.target));
        sources.allocate();
        for (const Transition& move : transitions_) sources.add(size_t(move.target), move.source);
        std::vector<char> is_live(is_accepting_.begin(), is_accepting_.end());
        std::vector<int32_t> work;
        for (size_t state = 0; state < num_states; ++state) {
            if (is_live[state]) work.push_back(int32_t(state));
        }
        while (!work.empty()) {
            int32_t state = work.back();
            work.pop_back();
            for (int32_t source : sources.of(size_t(state))) {
                if (is_live[source]) continue;
                is_live[source] = 1;
                work.push_back(source);
            }
        }
        std::vector<int32_t> number(num_states, -1);
        int32_t next = 0;
        for (size_t state = 0; state < num_states; ++state) {
            if (is_live[state]) number[state] = next++;
        }
        return number;
    }

    Dfa minimised(const std::vector<int32_t>& number) {
        if (number[0] < 0) return Dfa();
        std::vector<char> is_accepting;
        for (size_t state = 0; state < number.size(); ++state) {
            if (number[state] >= 0) is_accepting.push_back(is_accepting_[state]);
        }
        std::vector<Transition> kept;
        for (const Transition& move : transitions_) {
            int32_t source = number[move.source], target = number[move.target];
            if (source >= 0 && target >= 0) kept.push_back({source, move.label, target});
        }
        return merged(equal_states(is_accepting.size(), kept, is_accepting), kept, is_accepting);
    }

    // The automaton of the classes, numbered as its states are first met.
    Dfa merged(const std::vector<int32_t>& class_of, const std::vector<Transition>& transitions,
               const std::vector<char>& is_accepting) {
        std::vector<size_t> first_move(is_accepting.size() + 1, 0);  // transitions are sorted by source
        for (const Transition& move : transitions) ++first_move[size_t(move.source) + 1];
        for (size_t i = 1; i < first_move.size(); ++i) first_move[i] += first_move[i - 1];
        std::vector<int32_t> new_number(is_accepting.size(), -1);  // by class
        std::vector<int32_t> order{0};                             // one state of each class
        new_number[class_of[0]] = 0;
        Dfa result;
        std::vector<int32_t> slot(is_accepting.size(), -1);
        for (size_t i = 0; i < order.size(); ++i) {
            size_t state = size_t(order[i]), row_first = result.moves.size();
            for (size_t m = first_move[state]; m < first_move[state + 1]; ++m) {
                int32_t& target = new_number[class_of[transitions[m].target]];
                if (target < 0) {
                    target = int32_t(order.size());
                    order.push_back(transitions[m].target);
                }
                int32_t& place = slot[target];
                if (place < int32_t(row_first)) {
                    place = int32_t(result.moves.size());
                    result.moves.push_back({Bits256(), target});
                }
                result.moves[place].mask = result.moves[place].mask | classes_[transitions[m].label];
            }
            result.row_start.push_back(result.moves.size());
            result.is_accepting.push_back(is_accepting[state]);
        }
        return result;
    }

    std::deque<Subsets>& operands_;
    bool is_difference_;
    std::vector<Bits256> classes_;
    int64_t limit_;
    SequenceTable table_;
    std::vector<char> is_accepting_;
    std::vector<Transition> transitions_;
};

// Turns moves over the erased bytes into empty ones.
void erase(Graph& graph, const Bits256& erased) {
    size_t num_states = graph.num_states();
    for (size_t state = 0; state < num_states; ++state) {
        std::vector<Move> added;
        graph.filter_moves(int32_t(state), [&](int32_t m) {
            Move& move = graph.moves[m];
            if (move.kind != MoveKind::Edge) return true;
            Bits256 mask = graph.mask(move.arg);
            if (!(mask & erased).any()) return true;
            added.push_back(move);
            Bits256 rest = mask.without(erased);
            if (rest.any()) move.arg = graph.mask_number(rest);
            return rest.any();
        });
        for (const Move& move : added) graph.add_empty(int32_t(state), move.target);
    }
}

Dfa product_of(const Dag& dag, int32_t number, const Bits256& alphabet, const Products& products, int64_t limit) {
    const Node& node = dag.nodes[number];
    std::deque<Graph> graphs;
    std::vector<int32_t> starts;
    std::vector<Bits256> masks;
    for (int32_t kid : dag.kids_of(number)) {
        graphs.emplace_back(limit);
        try {
            starts.push_back(Lowering(dag, nullptr, graphs.back(), alphabet, products).build(kid));
        } catch (const CompileError&) {
            throw product_too_large(limit);
        }
        if (node.kind == Kind::Erase) erase(graphs.back(), node.mask);
        masks.insert(masks.end(), graphs.back().masks().begin(), graphs.back().masks().end());
    }
    if (graphs.empty()) throw CompileError{"and", "an intersection of no parts has no meaning"};
    std::vector<Bits256> classes = byte_classes(masks);
    std::deque<Subsets> operands;
    for (size_t k = 0; k < graphs.size(); ++k) operands.emplace_back(graphs[k], starts[k], classes);
    return Product(operands, node.kind == Kind::Minus, classes, limit).run();
}

}  // namespace

Products build_products(const Dag& dag, const Bits256& alphabet, const Limits& limits) {
    Products products(dag.nodes.size());
    Bits256 wide = alphabet;
    for (const Node& node : dag.nodes) {
        if (node.kind == Kind::Erase) wide = wide | node.mask;
    }
    PermanentArena& arena = PermanentArena::instance();
    for (size_t i = 0; i < dag.nodes.size(); ++i) {
        const Node& node = dag.nodes[i];
        if (!node.is_product()) continue;
        if (node.origin >= 0) products[i] = arena.automaton(node.origin, wide);
        if (products[i]) continue;
        products[i] = std::make_shared<const Dfa>(product_of(dag, int32_t(i), wide, products, limits.product_states));
        if (node.origin >= 0) arena.put_automaton(node.origin, wide, products[i]);
    }
    return products;
}

}  // namespace radix_compile
