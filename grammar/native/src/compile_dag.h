// The expression graph as the compiler sees it: equal parts are one node, and rule calls are plain links.
#pragma once

#include <cstdint>
#include <vector>

#include "compile_bits.h"
#include "compile_error.h"

namespace radix_compile {

// The numbers are part of the encoding (grammar/native/encoding.py).
enum class Kind : uint8_t { Bytes, Lit, Chars, Seq, Alt, Repeat, And, Minus, Erase, Members, Ref, Choice, Unlisted };

// One expression. Pointers lead into the encoded buffers, which outlive the compile.
struct Node {
    Kind kind = Kind::Alt;
    int32_t origin = -1;    // number in the permanent arena, or -1
    int32_t first_kid = 0;  // in Dag::kids
    int32_t num_kids = 0;
    int64_t lo = 0, hi = 0;                // Repeat, Members; hi -1: without end
    View<int64_t> kid_ids;                 // as encoded: addresses of the Python objects
    View<uint8_t> text;                    // Lit; Choice, Unlisted: all texts together
    View<int64_t> info;                    // Chars: ranges; Choice, Unlisted: sizes; Members: order, runs, clauses
    Bits256 mask;                          // Bytes, Erase, Unlisted

    bool is_product() const { return kind == Kind::And || kind == Kind::Minus || kind == Kind::Erase; }
    bool is_leaf() const { return kind == Kind::Lit || kind == Kind::Bytes; }
    // Whether this is the empty string, spelled in the plain way.
    bool is_epsilon() const {
        return (kind == Kind::Seq && num_kids == 0) || (kind == Kind::Lit && text.size() == 0);
    }
};

// Parts stand before what contains them, except that a recursive part may be called from inside itself.
struct Dag {
    std::vector<Node> nodes;
    std::vector<int32_t> kids;
    std::vector<char> is_recursive;
    int32_t root = 0;

    View<int32_t> kids_of(int32_t node) const {
        return {kids.data() + nodes[node].first_kid, size_t(nodes[node].num_kids)};
    }
};

// Three buffers from Python, see encoding.py.
struct Encoded {
    View<int64_t> words;
    View<uint8_t> texts;
    View<uint8_t> masks;
};

// The expressions of an encoding and the Python id of each; the id of the whole.
int64_t read_records(const Encoded& encoded, std::vector<Node>& nodes, std::vector<int64_t>& ids);

// The graph below the whole. Refuses products of calls, repeats beyond their bound, and too many parts.
Dag build_dag(const Encoded& encoded, const Limits& limits);

}  // namespace radix_compile
