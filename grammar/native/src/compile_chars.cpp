// The split is the usual one of byte-oriented regex engines: cut where the encoded length changes, then wherever a continuation
// byte would not run over its full range.

#include "compile_chars.h"

#include <algorithm>

namespace radix_compile {
namespace {

struct Sequence {
    int length;
    uint8_t low[4], high[4];
};

int encode(int64_t code_point, uint8_t* bytes) {
    if (code_point <= 0x7F) {
        bytes[0] = uint8_t(code_point);
        return 1;
    }
    int length = code_point <= 0x7FF ? 2 : code_point <= 0xFFFF ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = length - 1; i > 0; --i) {
        bytes[i] = uint8_t(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    bytes[0] = uint8_t(lead[length] | code_point);
    return length;
}

// The sequences of low..high, whose encodings all have the same length.
void split(int64_t low, int64_t high, std::vector<Sequence>& found) {
    std::vector<std::pair<int64_t, int64_t>> work{{low, high}};
    while (!work.empty()) {
        low = work.back().first;
        high = work.back().second;
        work.pop_back();
        Sequence sequence;
        sequence.length = encode(low, sequence.low);
        encode(high, sequence.high);
        bool is_cut = false;
        for (int level = 1; level < sequence.length && !is_cut; ++level) {
            int64_t tail = (int64_t(1) << (6 * level)) - 1;
            if ((low & ~tail) == (high & ~tail)) continue;
            if (low & tail) {
                work.push_back({(low | tail) + 1, high});
                work.push_back({low, low | tail});
                is_cut = true;
            } else if ((high & tail) != tail) {
                work.push_back({high & ~tail, high});
                work.push_back({low, (high & ~tail) - 1});
                is_cut = true;
            }
        }
        if (!is_cut) found.push_back(sequence);
    }
}

class TreeBuilder {
public:
    CharTree build(const std::vector<Sequence>& sequences) {
        tree_.rows.emplace_back();
        tree_.start = state_of(sequences, 0, sequences.size(), 0);
        return std::move(tree_);
    }

private:
    using Row = std::vector<std::pair<Bits256, int32_t>>;

    // The state from which the tails (from byte `depth` on) of some neighbouring sequences are read; at most four levels deep.
    int32_t state_of(const std::vector<Sequence>& sequences, size_t first, size_t last, int depth) {
        if (depth == 4 || sequences[first].length == depth) return 0;
        Row row;
        while (first < last) {
            const Sequence& head = sequences[first];
            size_t group_end = first;
            while (group_end < last && sequences[group_end].length > depth &&
                   sequences[group_end].low[depth] == head.low[depth] &&
                   sequences[group_end].high[depth] == head.high[depth]) {
                ++group_end;
            }
            int32_t tail = state_of(sequences, first, group_end, depth + 1);
            auto same = std::find_if(row.begin(), row.end(), [&](const auto& move) { return move.second == tail; });
            if (same == row.end()) same = row.insert(row.end(), {Bits256(), tail});
            same->first.add_range(head.low[depth], head.high[depth]);
            first = group_end;
        }
        auto known = std::find(tree_.rows.begin() + 1, tree_.rows.end(), row);
        if (known != tree_.rows.end()) return int32_t(known - tree_.rows.begin());
        tree_.rows.push_back(std::move(row));
        return int32_t(tree_.rows.size() - 1);
    }

    CharTree tree_;
};

}  // namespace

CharTree char_tree(View<int64_t> ranges) {
    static const int64_t cuts[4] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    std::vector<Sequence> sequences;
    for (size_t i = 0; i + 1 < ranges.size(); i += 2) {
        int64_t low = ranges[i], high = ranges[i + 1];
        for (int64_t cut : cuts) {
            if (low > high) break;
            if (low > cut) continue;
            split(low, std::min(high, cut), sequences);
            low = cut + 1;
        }
    }
    if (sequences.empty()) {  // nothing: a start that leads nowhere
        CharTree tree;
        tree.rows.resize(2);
        tree.start = 1;
        return tree;
    }
    return TreeBuilder().build(sequences);
}

}  // namespace radix_compile
