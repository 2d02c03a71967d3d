// How states take the characters of a slice: all alike, all but a few, or each in its own way. Decided once per state and slice.
#include <algorithm>

#include "match_walk.h"

namespace radix {
namespace {

constexpr std::size_t kMaxExceptions = 40;
constexpr std::size_t kMaxAllStates = 4;
constexpr u32 kMaxExceptionDepth = 60;

struct Range {
    u8 low, high;
};

// The byte ranges of all non-ASCII characters (Unicode, table 3-7).
const std::vector<std::vector<Range>> kNonAscii = {
    {{0xC2, 0xDF}, {0x80, 0xBF}},
    {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
    {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
    {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
    {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
};

void add_once(std::vector<i32>& list, i32 value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

Walker::Walker(const Vocabulary& vocabulary, const Program& program, StateStore& states)
    : vocabulary_(vocabulary), states_(states), class_of_(program.class_of_byte.data), alphabet_(program.alphabet.data), levels_(vocabulary.whole.max_depth + 2) {
    for (u32 slice = 0; slice < NUM_SLICES; ++slice) {
        const Slice& about = vocabulary.slices[slice];
        View& view = views_[slice];
        bool is_single[256] = {};
        for (u32 byte = 0; byte < 128; ++byte)
            if (about.is_ascii_char[byte] && program.alphabet[byte]) is_single[class_of_[byte]] = true;
        for (u32 byte_class = 0; byte_class < 256; ++byte_class)
            if (is_single[byte_class]) view.singles.push_back(byte_class);
        if (!about.has_non_ascii) continue;
        for (const auto& ranges : kNonAscii) {
            std::vector<std::vector<u32>> sequence;
            for (const Range& range : ranges) {
                bool is_there[256] = {};
                for (u32 byte = range.low; byte <= range.high; ++byte)
                    if (program.alphabet[byte]) is_there[class_of_[byte]] = true;
                sequence.emplace_back();
                for (u32 byte_class = 0; byte_class < 256; ++byte_class)
                    if (is_there[byte_class]) sequence.back().push_back(byte_class);
            }
            const bool is_spelled = std::none_of(sequence.begin(), sequence.end(), [](const auto& l) { return l.empty(); });
            if (is_spelled && std::find(view.sequences.begin(), view.sequences.end(), sequence) == view.sequences.end())
                view.sequences.push_back(std::move(sequence));
        }
    }
}

// The states behind all non-ASCII characters (DEAD is one of them); false if some character runs over a region's end.
bool Walker::after_sequences(u32 state, const View& view, std::vector<i32>& ends) {
    ends.clear();
    std::vector<i32> here, next;
    for (const auto& sequence : view.sequences) {
        here.assign(1, i32(state));
        for (const auto& classes : sequence) {
            next.clear();
            for (i32 from : here) {
                if (&classes != &sequence.front() && from >= 0 && states_[u32(from)].num_holes) return false;
                for (u32 byte_class : classes) add_once(next, from < 0 ? DEAD : states_.step(u32(from), byte_class));
            }
            here.swap(next);
        }
        for (i32 after : here) add_once(ends, after);
    }
    return true;
}

// Adds to `reached` the states behind the characters of the slice; false if some character is not possible.
bool Walker::reach(u32 state, const View& view, std::vector<i32>& reached) {
    for (const auto& single : view.singles) {
        const i32 after = states_.step(state, single);
        if (after == DEAD) return false;
        add_once(reached, after);
    }
    if (!after_sequences(state, view, ends_)) return false;
    for (i32 after : ends_) {
        if (after == DEAD) return false;
        add_once(reached, after);
    }
    return true;
}

// Whether all texts of characters of the slice are possible, by coming to few states again and again. What a return into a hole would add
// only makes more possible.
bool Walker::is_all(u32 state, u32 slice) {
    const View& view = views_[slice];
    std::vector<i32> reached;
    if (!reach(state, view, reached)) return false;
    i64 low = MAX_COST, high = 0;
    for (std::size_t at = 0; at < reached.size(); ++at) {
        const u32 here = u32(reached[at]);
        low = std::min(low, states_[here].cost);
        high = std::max(high, states_[here].cost);
        const i32 known = states_[here].text[slice];
        if (known == TEXT_ALL) {
            low = std::min(low, texts_[states_[here].text_number[slice]].low);
            high = std::max(high, texts_[states_[here].text_number[slice]].high);
        } else if (known != TEXT_UNKNOWN || reached.size() > kMaxAllStates || !reach(here, view, reached)) {
            return false;
        }
    }
    reached.push_back(i32(state));
    for (i32 other : reached) {
        if (states_[u32(other)].text[slice] != TEXT_UNKNOWN) continue;
        states_[u32(other)].text[slice] = TEXT_ALL;
        states_[u32(other)].text_number[slice] = u32(texts_.size());
    }
    texts_.push_back({low, high, {}});
    return true;
}

// Whether all characters but a few of ASCII lead to states that are TEXT_ALL.
bool Walker::is_almost(u32 state, u32 slice) {
    const View& view = views_[slice];
    Text found{MAX_COST, 0, {}};
    auto is_covered = [&](i32 after) {
        if (after < 0 || text(u32(after), slice, false) != TEXT_ALL) return false;
        const Text& behind = texts_[states_[u32(after)].text_number[slice]];
        found.low = std::min({found.low, behind.low, states_[u32(after)].cost});
        found.high = std::max({found.high, behind.high, states_[u32(after)].cost});
        return true;
    };
    std::vector<i32> ends;
    if (!after_sequences(state, view, ends)) return false;
    for (i32 after : ends)
        if (!is_covered(after)) return false;
    for (u32 byte = 0; byte < 128; ++byte) {
        if (!vocabulary_.slices[slice].is_ascii_char[byte] || !alphabet_[byte]) continue;
        if (is_covered(states_.step(state, class_of_[byte]))) continue;
        found.exceptions.push_back(u8(byte));
    }
    if (found.exceptions.size() > kMaxExceptions) return false;
    states_[state].text_number[slice] = u32(texts_.size());
    texts_.push_back(std::move(found));
    return true;
}

// How `state` takes the slice; without `is_deep`, one that may be TEXT_ALMOST is left undecided.
i32 Walker::text(u32 state, u32 slice, bool is_deep) {
    if (states_[state].text[slice] != TEXT_UNKNOWN) return states_[state].text[slice];
    const View& view = views_[slice];
    i32 result = TEXT_MIXED;
    if (view.singles.empty()) return states_[state].text[slice] = result;
    if (is_all(state, slice)) return TEXT_ALL;
    bool is_same = !states_[state].num_holes && after_sequences(state, view, ends_);
    for (const auto& single : view.singles) {
        if (!is_same || ends_.size() > 1) break;
        add_once(ends_, states_.step(state, single));
    }
    if (is_same && ends_.size() == 1) {
        result = ends_[0];
    } else if (!is_deep) {
        return TEXT_UNKNOWN;
    } else if (is_almost(state, slice)) {
        result = TEXT_ALMOST;
    }
    return states_[state].text[slice] = result;
}

// ---------------------------------------------------------------------------------------------- walks by slices

namespace {

void add_row(u32* row, const u32* other, u32 num_words) {
    for (u32 word = 0; word < num_words; ++word) row[word] |= other[word];
}

}  // namespace

// If each character leads to one state whatever it is, for as long as tokens are: all tokens of up to as many characters as may come.
template <bool Exact>
bool Walker::by_chain(u32 state, u32 slice, Found& found) {
    const Slice& about = vocabulary_.slices[slice];
    u32 num_chars = 0;
    std::vector<i64> costs;
    u32 current = state;
    while (num_chars < about.max_chars) {
        const i32 after = text(current, slice);
        if (after == DEAD) break;
        if (after == TEXT_ALL) {
            const Text& rest = texts_[states_[current].text_number[slice]];
            found.worst_cost = std::max(found.worst_cost, rest.high);
            if (Exact && rest.low <= found.max_cost && rest.high > found.max_cost) return false;
            costs.resize(about.max_chars, rest.high);
            num_chars = about.max_chars;
            break;
        }
        if (after < 0) return false;
        ++num_chars;
        costs.push_back(states_[u32(after)].cost);
        found.worst_cost = std::max(found.worst_cost, costs.back());
        current = u32(after);
    }
    if (!Exact) {
        if (num_chars) add_row(found.row, vocabulary_.slice_row(about, num_chars), vocabulary_.num_words);
        return true;
    }
    for (u32 count = 1; count <= num_chars; ++count) {
        if (costs[count - 1] > found.max_cost) continue;
        const u32* with = vocabulary_.slice_row(about, count);
        const u32* without = vocabulary_.slice_row(about, count - 1);
        for (u32 word = 0; word < vocabulary_.num_words; ++word) found.row[word] |= with[word] & ~without[word];
    }
    return true;
}

// All tokens of the slice but those below exceptions; false if the budget cuts them apart.
template <bool Exact>
bool Walker::by_exceptions(u32 state, u32 slice, Found& found) {
    const Text about = texts_[states_[state].text_number[slice]];
    const bool is_base = !Exact || about.high <= found.max_cost;
    if (!is_base && about.low <= found.max_cost) return false;
    const Slice& part = vocabulary_.slices[slice];
    found.worst_cost = std::max(found.worst_cost, about.high);
    if (is_base) add_row(found.row, vocabulary_.slice_row(part, part.max_chars), vocabulary_.num_words);
    for (u8 byte : about.exceptions)
        if (const u32 child = vocabulary_.whole.root_child[byte]) exception<Exact>(child, state, slice, is_base, 0, found);
    return true;
}

// Corrects the subtree of an exception: all its tokens of the slice are in the row (`is_base`), or none. Whether all of them may stay.
template <bool Exact>
bool Walker::exception(u32 node, u32 state, u32 slice, bool is_base, u32 depth, Found& found) {
    const Trie& trie = vocabulary_.whole;
    const i32 after = states_.step(state, class_of_[trie.nodes[node].byte()]);
    const Text* about = nullptr;
    if (after >= 0 && depth < kMaxExceptionDepth && text(u32(after), slice) == TEXT_ALMOST)
        about = &texts_[states_[u32(after)].text_number[slice]];
    if (!about || (Exact && (is_base ? about->high > found.max_cost : about->low <= found.max_cost))) {
        clear(node, found);
        if (after >= 0) take<Exact>(trie, node, u32(after), found);
        return false;
    }
    found.worst_cost = std::max({found.worst_cost, about->high, states_[u32(after)].cost});
    if (Exact) {
        trie.tokens(trie.nodes[node].token, [&](u32 token) { found.row[token >> 5] &= ~(1u << (token & 31)); });
        allow<Exact>(trie, trie.nodes[node].token, u32(after), found);
    }
    u64 is_exception[4] = {};
    for (u8 byte : about->exceptions) is_exception[byte >> 6] |= u64(1) << (byte & 63);
    const u32 end = node + trie.nodes[node].size();
    bool is_kept = true;
    for (u32 child = node + 1; child < end; child += trie.nodes[child].size()) {
        const u32 byte = trie.nodes[child].byte();
        if (is_exception[byte >> 6] >> (byte & 63) & 1)
            is_kept = exception<Exact>(child, u32(after), slice, is_base, depth + 1, found) && is_kept;
    }
    // what was taken out below may still be possible behind a return from here
    if (!is_kept && states_[u32(after)].num_holes) found.stopped->push_back({u32(after), node});
    return is_kept;
}

void Walker::clear(u32 node, Found& found) {
    const Trie& trie = vocabulary_.whole;
    for (u32 at = node, end = node + trie.nodes[node].size(); at < end; ++at)
        trie.tokens(trie.nodes[at].token, [&](u32 token) { found.row[token >> 5] &= ~(1u << (token & 31)); });
}

template <bool Exact>
void Walker::whole(u32 state, Found& found) {
    second_begin_ = ~std::size_t(0);
    for (u32 slice = 0; slice < NUM_SLICES; ++slice) {
        if (!vocabulary_.slices[slice].num_tokens) continue;
        const i64 worst = found.worst_cost;
        const bool is_done = text(state, slice) == TEXT_ALMOST ? by_exceptions<Exact>(state, slice, found)
                                                               : by_chain<Exact>(state, slice, found);
        if (!is_done) {
            found.worst_cost = worst;
            continue;
        }
        second_begin_ = found.stopped ? found.stopped->size() : 0;
        second_trie_ = slice + 1;
        from_root<Exact>(vocabulary_.slices[slice].rest, state, found);
        return;
    }
    from_root<Exact>(vocabulary_.whole, state, found);
}

template void Walker::whole<false>(u32, Found&);
template void Walker::whole<true>(u32, Found&);

}  // namespace radix
