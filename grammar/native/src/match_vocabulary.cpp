// Building the tries and slices: one sort of all tokens, one pass for each.
#include "match_vocabulary.h"

#include <algorithm>

namespace radix {
namespace {

constexpr u32 kMaxSliceChars = 48;  // longer tokens are walked: the rows of a slice stay small

u64 first_bytes(const u8* data, u32 size) {
    u64 key = 0;
    for (u32 i = 0; i < 8; ++i) key = key << 8 | (i < size ? data[i] : 0);
    return key;
}

// Bytes of the UTF-8 character at `data`, 0 if there is none (no surrogates, no overlong forms).
u32 character(const u8* data, u32 size) {
    const u32 first = data[0];
    if (first < 0x80) return 1;
    const u32 length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!length || size < length) return 0;
    for (u32 i = 1; i < length; ++i)
        if ((data[i] & 0xC0) != 0x80) return 0;
    const u32 second = data[1];
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
        return 0;
    return length;
}

// Characters of a token that the slice holds, 0 if it is not one of them.
u32 num_chars_inside(const Slice& slice, const u8* data, u32 size) {
    u32 count = 0;
    for (u32 at = 0; at < size; ++count) {
        const u32 length = character(data + at, size - at);
        if (length == 1 ? !slice.is_ascii_char[data[at]] : !length || !slice.has_non_ascii) return 0;
        at += length;
    }
    return count <= kMaxSliceChars ? count : 0;
}

}  // namespace

Vocabulary::Vocabulary(const u8* text, const i64* offsets, u32 count, const i32* end_ids, u32 num_end_ids)
    : num_tokens(count), num_words((count + 31) / 32), kinds(count, TokenKind::kText), end_row(num_words, 0) {
    text_.assign(text, text + offsets[count]);
    offsets_.assign(offsets, offsets + count + 1);
    for (u32 i = 0; i < num_end_ids; ++i) {
        const u32 token = u32(end_ids[i]);
        kinds[token] = TokenKind::kEnd;
        end_row[token >> 5] |= 1u << (token & 31);
    }
    struct Key {
        u64 bytes;
        u32 token, size;
    };
    std::vector<Key> keys;
    keys.reserve(count);
    for (u32 token = 0; token < count; ++token) {
        u32 size;
        const u8* data = bytes(token, size);
        if (!size && kinds[token] == TokenKind::kText) kinds[token] = TokenKind::kSpecial;
        if (kinds[token] != TokenKind::kText) continue;
        if (size == 1) has_single[data[0]] = 1;
        keys.push_back({first_bytes(data, size), token, size});
    }
    std::sort(keys.begin(), keys.end(), [this](const Key& left, const Key& right) {
        if (left.bytes != right.bytes) return left.bytes < right.bytes;
        const u8* texts = text_.data();
        const int order = std::memcmp(texts + offsets_[left.token], texts + offsets_[right.token], std::min(left.size, right.size));
        if (order) return order < 0;
        return left.size != right.size ? left.size < right.size : left.token < right.token;
    });
    std::vector<u32> sorted;
    sorted.reserve(keys.size());
    for (const Key& key : keys) sorted.push_back(key.token);
    build(whole, sorted);
    for (u32 byte = 0; byte < 128; ++byte) {
        const bool is_alnum = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        slices[0].is_ascii_char[byte] = byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
        slices[1].is_ascii_char[byte] = is_alnum;
    }
    slices[0].has_non_ascii = true;
    slices[1].has_non_ascii = false;
    for (Slice& slice : slices) build_slice(slice, sorted);
}

void Vocabulary::build(Trie& trie, const std::vector<u32>& sorted) const {
    trie.nodes.push_back({NONE, 0});
    std::vector<u32> open{0};  // the nodes of the last token's path
    std::fill(trie.root_child, trie.root_child + 256, 0);
    auto close_to = [&](std::size_t depth) {
        for (; open.size() > depth + 1; open.pop_back()) {
            Node& node = trie.nodes[open.back()];
            node.packed |= u32(trie.nodes.size() - open.back()) << 8;
        }
    };
    const u8* last = nullptr;
    u32 last_size = 0;
    for (u32 token : sorted) {
        u32 size;
        const u8* data = bytes(token, size);
        u32 same = 0;
        while (same < size && same < last_size && data[same] == last[same]) ++same;
        close_to(same);
        for (u32 depth = same; depth < size; ++depth) {
            if (depth == 0) trie.root_child[data[0]] = u32(trie.nodes.size());
            open.push_back(u32(trie.nodes.size()));
            trie.nodes.push_back({NONE, data[depth]});
        }
        trie.max_depth = std::max(trie.max_depth, size);
        if (trie.nodes.size() >= (1u << 24)) throw std::bad_alloc();
        u32& place = trie.nodes[open.back()].token;
        if (place == NONE) {
            place = token;
        } else if (!(place & kSeveral)) {
            trie.extra.insert(trie.extra.end(), {2, place, token});
            place = kSeveral | u32(trie.extra.size() - 3);
        } else {  // equal tokens are neighbours, so the list is the last one
            ++trie.extra[place & ~kSeveral];
            trie.extra.push_back(token);
        }
        last = data;
        last_size = size;
    }
    close_to(0);
    trie.nodes[0].packed = u32(trie.nodes.size()) << 8;
}

void Vocabulary::build_slice(Slice& slice, const std::vector<u32>& sorted) const {
    std::vector<u32> outside;
    std::vector<std::pair<u32, u32>> inside;
    for (u32 token : sorted) {
        u32 size;
        const u8* data = bytes(token, size);
        const u32 count = num_chars_inside(slice, data, size);
        if (count) {
            inside.push_back({count, token});
            slice.max_chars = std::max(slice.max_chars, count);
        } else {
            outside.push_back(token);
        }
    }
    slice.num_tokens = u32(inside.size());
    slice.rows.assign(std::size_t(slice.max_chars + 1) * num_words, 0);
    for (const auto& [count, token] : inside) slice.rows[std::size_t(count) * num_words + (token >> 5)] |= 1u << (token & 31);
    for (std::size_t at = num_words; at < slice.rows.size(); ++at) slice.rows[at] |= slice.rows[at - num_words];
    build(slice.rest, outside);
}

}  // namespace radix
