// Expressions -> automaton graph: Thompson's construction without recursion.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "compile_analysis.h"
#include "compile_chars.h"
#include "compile_dag.h"
#include "compile_graph.h"
#include "compile_product.h"

namespace radix_compile {

// Automata of the product nodes, by node; null elsewhere.
using Products = std::vector<std::shared_ptr<const Dfa>>;

// Builds one graph. Shared or recursive parts become regions, large repeats counted loops over a region, sets of literals a radix
// tree; products are embedded as the automata they are. In `flat` mode (the operands of a product) everything is copied out: no
// regions, loops or literals. Bytes outside the alphabet never enter the graph.
class Lowering {
public:
    // `analysis` may be null in flat mode.
    Lowering(const Dag& dag, const Analysis* analysis, Graph& graph, const Bits256& alphabet, const Products& products);

    // Builds the automaton of a part and of all it calls; the state where it starts.
    int32_t build(int32_t node);

private:
    enum class Task : uint8_t { Whole, Copies, Rest };
    // Paths from `source` to `target` for: a whole node; `lo` to `hi` copies of it; the parts of a sequence from number `lo` on.
    struct Work {
        Task task;
        int32_t node, source, target;
        int64_t lo, hi;
    };
    // One of several texts with a common way in: `text`, then (rest_node >= 0) the parts of that sequence behind its first.
    struct Entry {
        View<uint8_t> text;
        int32_t rest_node;
    };

    bool is_flat() const { return analysis_ == nullptr; }
    void connect(int32_t node, int32_t source, int32_t target);
    int32_t region_of(int32_t node);
    void lower(const Work& work);
    void lower_whole(int32_t number, int32_t source, int32_t target);
    void literal(View<uint8_t> text, int32_t source, int32_t target);
    void chars(int32_t number, int32_t source, int32_t target);
    void sequence_rest(const Work& work);
    void alternatives(int32_t number, int32_t source, int32_t target);
    void choice(const Node& node, int32_t source, int32_t target);
    bool has_literal_head(int32_t number, Entry& entry) const;
    void radix_tree(std::vector<Entry>& entries, int32_t source, int32_t target);
    void entry_tail(View<uint8_t> text, int32_t rest_node, int32_t source, int32_t target);
    void repeat(int32_t number, int32_t source, int32_t target);
    void copies(const Work& work);
    void members(int32_t number, int32_t source, int32_t target);
    void product(const Dfa& automaton, int32_t source, int32_t target);

    const Dag& dag_;
    const Analysis* analysis_;
    Graph& graph_;
    Bits256 alphabet_;
    const Products& products_;
    std::vector<int32_t> region_of_;
    std::unordered_map<int32_t, CharTree> trees_;
    std::vector<Work> work_;
};

}  // namespace radix_compile
