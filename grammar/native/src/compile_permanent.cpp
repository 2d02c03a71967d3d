#include "compile_permanent.h"

#include <mutex>

#include "compile_product.h"

namespace radix_compile {

// A process sees one alphabet for each model it serves: few. Beyond this many, the oldest automaton is dropped.
static const size_t kMaxAlphabets = 4;

PermanentArena& PermanentArena::instance() {
    static PermanentArena* arena = new PermanentArena();  // never destroyed: compiles may run while the process exits
    return *arena;
}

void PermanentArena::keep(const Encoded& encoded) {
    std::unique_lock<std::shared_mutex> writing(lock_);
    auto copy = std::make_unique<Buffers>();
    copy->words.assign(encoded.words.begin(), encoded.words.end());
    copy->texts.assign(encoded.texts.begin(), encoded.texts.end());
    copy->masks.assign(encoded.masks.begin(), encoded.masks.end());
    Encoded kept{{copy->words.data(), copy->words.size()},
                 {copy->texts.data(), copy->texts.size()},
                 {copy->masks.data(), copy->masks.size()}};
    std::vector<Node> nodes;
    std::vector<int64_t> ids;
    read_records(kept, nodes, ids);
    std::unordered_map<int64_t, int32_t> added;
    for (size_t i = 0; i < nodes.size(); ++i) added.emplace(ids[i], int32_t(nodes_.size() + i));
    for (const Node& node : nodes) {
        for (int64_t id : node.kid_ids) {
            if (!added.count(id) && !numbers_.count(id)) {
                throw CompileError{"encoding", "the encoded grammar is damaged: a part is missing"};
            }
        }
    }
    buffers_.push_back(std::move(copy));
    numbers_.insert(added.begin(), added.end());
    for (Node& node : nodes) {
        node.origin = int32_t(nodes_.size());
        node.first_kid = int32_t(kids_.size());
        for (int64_t id : node.kid_ids) kids_.push_back(numbers_.at(id));
        nodes_.push_back(node);
    }
}

std::shared_ptr<const Dfa> PermanentArena::automaton(int32_t number, const Bits256& alphabet) {
    auto holding = reading();
    auto found = automata_.find(number);
    if (found != automata_.end()) {
        for (const Made& made : found->second) {
            if (made.alphabet == alphabet) return made.automaton;
        }
    }
    return nullptr;
}

void PermanentArena::put_automaton(int32_t number, const Bits256& alphabet, std::shared_ptr<const Dfa> automaton) {
    std::unique_lock<std::shared_mutex> writing(lock_);
    std::vector<Made>& made = automata_[number];
    if (made.size() >= kMaxAlphabets) made.erase(made.begin());
    made.push_back({alphabet, std::move(automaton)});
}

}  // namespace radix_compile
