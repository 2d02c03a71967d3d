// Alternatives that begin with literals: a radix tree, so that common beginnings share their states.

#include <algorithm>

#include "compile_lowering.h"

namespace radix_compile {
namespace {

int compare(View<uint8_t> left, View<uint8_t> right) {
    size_t shared = std::min(left.size(), right.size());
    int order = shared == 0 ? 0 : std::memcmp(left.first, right.first, shared);
    if (order != 0) return order;
    return left.size() < right.size() ? -1 : left.size() > right.size();
}

View<uint8_t> part(View<uint8_t> text, size_t from, size_t to) { return {text.first + from, to - from}; }

size_t common_length(View<uint8_t> left, View<uint8_t> right) {
    size_t limit = std::min(left.size(), right.size()), length = 0;
    while (length < limit && left[length] == right[length]) ++length;
    return length;
}

}  // namespace

// A literal, or a sequence that is copied in here and begins with one.
bool Lowering::has_literal_head(int32_t number, Entry& entry) const {
    const Node& node = dag_.nodes[number];
    if (node.kind == Kind::Lit) {
        entry = {node.text, -1};
        return true;
    }
    if (node.kind != Kind::Seq || node.num_kids < 2 || (!is_flat() && analysis_->is_region(number))) return false;
    const Node& head = dag_.nodes[dag_.kids[node.first_kid]];
    if (head.kind != Kind::Lit) return false;
    entry = {head.text, number};
    return true;
}

void Lowering::alternatives(int32_t number, int32_t source, int32_t target) {
    View<int32_t> kids = dag_.kids_of(number);
    std::vector<Entry> entries;
    Entry entry;
    for (int32_t kid : kids) {
        if (has_literal_head(kid, entry)) entries.push_back(entry);
    }
    bool is_tree = entries.size() >= 2;
    for (int32_t kid : kids) {
        if (!is_tree || !has_literal_head(kid, entry)) connect(kid, source, target);
    }
    if (is_tree) radix_tree(entries, source, target);
}

void Lowering::choice(const Node& node, int32_t source, int32_t target) {
    std::vector<Entry> entries;
    entries.reserve(node.info.size());
    size_t position = 0;
    for (int64_t size : node.info) {
        entries.push_back({{node.text.first + position, size_t(size)}, -1});
        position += size_t(size);
    }
    radix_tree(entries, source, target);
}

void Lowering::radix_tree(std::vector<Entry>& entries, int32_t source, int32_t target) {
    auto is_outside = [this](const Entry& entry) {
        return !std::all_of(entry.text.begin(), entry.text.end(), [this](uint8_t byte) { return alphabet_.has(byte); });
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), is_outside), entries.end());
    std::sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
        int order = compare(left.text, right.text);
        return order != 0 ? order < 0 : left.rest_node < right.rest_node;
    });
    auto is_same = [](const Entry& left, const Entry& right) {
        return left.rest_node == right.rest_node && compare(left.text, right.text) == 0;
    };
    entries.erase(std::unique(entries.begin(), entries.end(), is_same), entries.end());

    struct Group {
        size_t first, last, depth;  // entries[first..last) agree in their first `depth` bytes, read up to `state`
        int32_t state;
    };
    std::vector<Group> work;
    if (!entries.empty()) work.push_back({0, entries.size(), 0, source});
    while (!work.empty()) {
        Group group = work.back();
        work.pop_back();
        size_t first = group.first;
        for (; first < group.last && entries[first].text.size() == group.depth; ++first) {
            entry_tail({}, entries[first].rest_node, group.state, target);
        }
        while (first < group.last) {
            View<uint8_t> text = entries[first].text;
            size_t last = first + 1;
            while (last < group.last && entries[last].text[group.depth] == text[group.depth]) ++last;
            if (last == first + 1) {
                entry_tail(part(text, group.depth, text.size()), entries[first].rest_node, group.state, target);
            } else {
                size_t shared = common_length(text, entries[last - 1].text);
                int32_t after = graph_.new_state();
                literal(part(text, group.depth, shared), group.state, after);
                work.push_back({first, last, shared, after});
            }
            first = last;
        }
    }
}

// The last bytes of an entry, and what follows them.
void Lowering::entry_tail(View<uint8_t> text, int32_t rest_node, int32_t source, int32_t target) {
    if (rest_node < 0) {
        literal(text, source, target);
        return;
    }
    if (text.size() > 0) {
        int32_t after = graph_.new_state();
        literal(text, source, after);
        source = after;
    }
    work_.push_back({Task::Rest, rest_node, source, target, 1, 0});
}

}  // namespace radix_compile
