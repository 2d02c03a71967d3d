// The tokens of a model as bytes: flat tries in depth-first order, and slices of tokens that free text takes as a whole.
//
// Owns the prepared form of one vocabulary. Knows nothing of grammars. A node is 8 bytes: its byte, its token, and the size of its subtree,
// which is the run of nodes that begins with it; a walk skips what it does not need.
#pragma once

#include "match_memory.h"

namespace radix {

struct Node {
    u32 token;   // NONE, the only token that ends here, or kSeveral | place in `extra`
    u32 packed;  // size of the subtree << 8 | byte
    u32 byte() const { return packed & 0xFF; }
    u32 size() const { return packed >> 8; }
};

constexpr u32 kSeveral = 0x80000000u;

struct Trie {
    std::vector<Node> nodes;  // nodes[0] is the root
    std::vector<u32> extra;   // lists of tokens with equal bytes: count, ids
    u32 root_child[256];      // node, or 0
    u32 max_depth = 0;

    template <class Visit>
    void tokens(u32 token, Visit visit) const {
        if (token == NONE) return;
        if (!(token & kSeveral)) {
            visit(token);
            return;
        }
        const u32* list = &extra[token & ~kSeveral];
        for (u32 i = 1; i <= list[0]; ++i) visit(list[i]);
    }
};

// Tokens of at most `max_chars` whole characters out of one set, and the trie of all others.
struct Slice {
    bool is_ascii_char[128];
    bool has_non_ascii;
    u32 num_tokens = 0, max_chars = 0;
    std::vector<u32> rows;  // [max_chars + 1][num_words]: the tokens of up to so many characters
    Trie rest;
};

enum class TokenKind : u8 { kText, kSpecial, kEnd };

class Vocabulary {
public:
    // Token i is text[offsets[i] .. offsets[i + 1]]; an empty one is special.
    Vocabulary(const u8* text, const i64* offsets, u32 num_tokens, const i32* end_ids, u32 num_end_ids);

    const u32* slice_row(const Slice& slice, u32 num_chars) const { return &slice.rows[std::size_t(num_chars) * num_words]; }
    const u8* bytes(u32 token, u32& size) const {
        size = u32(offsets_[token + 1] - offsets_[token]);
        return text_.data() + offsets_[token];
    }

    u32 num_tokens, num_words;
    std::vector<TokenKind> kinds;
    std::vector<u32> end_row;
    u8 has_single[256] = {};  // some token is this byte alone
    Trie whole;
    Slice slices[2];
    u32 num_users = 1;

private:
    void build(Trie& trie, const std::vector<u32>& sorted) const;
    void build_slice(Slice& slice, const std::vector<u32>& sorted) const;
    std::vector<u8> text_;
    std::vector<i64> offsets_;
};

}  // namespace radix
