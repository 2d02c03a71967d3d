// Expressions that a process keeps for ever: encoded once, referred to by every later compile.
#pragma once

#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "compile_dag.h"

namespace radix_compile {

struct Dfa;

// Known by the ids of the Python objects, which live as long as the process. All methods are safe to call from any thread,
// but `find` and `node` need `reading()` held.
class PermanentArena {
public:
    static PermanentArena& instance();

    // Keep the records of `encoded`; its buffers are copied. What they call is among them, or was kept before; unknown parts are refused.
    void keep(const Encoded& encoded);

    std::shared_lock<std::shared_mutex> reading() { return std::shared_lock<std::shared_mutex>(lock_); }
    // The number of the expression, or -1.
    int32_t find(int64_t id) const {
        auto found = numbers_.find(id);
        return found == numbers_.end() ? -1 : found->second;
    }
    const Node& node(int32_t number) const { return nodes_[number]; }
    // The numbers of its parts.
    View<int32_t> kids_of(int32_t number) const {
        return {kids_.data() + nodes_[number].first_kid, nodes_[number].kid_ids.size()};
    }
    size_t size() const { return nodes_.size(); }

    // Automata of permanent products, for one alphabet each; null if not yet made.
    std::shared_ptr<const Dfa> automaton(int32_t number, const Bits256& alphabet);
    void put_automaton(int32_t number, const Bits256& alphabet, std::shared_ptr<const Dfa> automaton);

private:
    struct Made {
        Bits256 alphabet;
        std::shared_ptr<const Dfa> automaton;
    };
    struct Buffers {
        std::vector<int64_t> words;
        std::vector<uint8_t> texts, masks;
    };

    std::shared_mutex lock_;
    std::vector<std::unique_ptr<Buffers>> buffers_;
    std::vector<Node> nodes_;
    std::vector<int32_t> kids_;  // numbers of the parts, of all nodes; a node's `first_kid` leads here
    std::unordered_map<int64_t, int32_t> numbers_;
    std::unordered_map<int32_t, std::vector<Made>> automata_;
};

}  // namespace radix_compile
