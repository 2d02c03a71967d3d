// The compiled grammar as the Python class GrammarProgram lays it out: its arrays in order, checked, and indexed by state.
//
// Owns parsing, validation and the row starts. Knows nothing of stacks or tokens.
#pragma once

#include <stdexcept>
#include <string>

#include "match_memory.h"

namespace radix {

constexpr i64 MAX_COST = i64(1) << 60;  // NEVER: a distance that promises nothing
constexpr i64 MAX_BOUND = i64(1) << 40;

inline i64 cost_sum(i64 left, i64 right) {
    const i64 sum = left + right;  // both at most MAX_COST
    return sum < MAX_COST ? sum : MAX_COST;
}

inline i64 cost_product(i64 times, i64 cost) {
    const __int128 product = static_cast<__int128>(times) * cost;
    return product < MAX_COST ? i64(product) : MAX_COST;
}

// What is wrong with the bytes of a program; becomes a GrammarError.
struct Damaged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class T>
struct Array {
    T* data = nullptr;
    u32 size = 0;
    T operator[](u32 index) const { return data[index]; }
};

// The arrays in the order of the body; each is preceded by its size in bytes (8 bytes, little-endian).
#define RADIX_PROGRAM_ARRAYS(X)                                                                                    \
    X(u8, alphabet) X(u8, class_of_byte) X(i64, scalars)                                                           \
    X(i32, edge_from) X(u8, edge_lo) X(u8, edge_hi) X(i32, edge_to)                                                \
    X(i32, empty_from) X(i32, empty_to)                                                                            \
    X(i32, call_from) X(i32, call_region) X(i32, call_to)                                                          \
    X(i32, loop_from) X(i32, loop_id) X(i32, loop_body) X(i64, loop_lo) X(i64, loop_hi) X(i32, loop_exit)          \
    X(i32, set_from) X(i32, set_id) X(i32, set_exit) X(i32, set_separator) X(i64, set_lo) X(i64, set_hi)           \
    X(i32, set_flags) X(i32, member_start) X(i32, member_region) X(i32, member_flags) X(i32, clause_start)         \
    X(i32, literal_start) X(i32, literals)                                                                         \
    X(i32, ends) X(i32, region_entry) X(i32, region_rank) X(i64, distances)

struct Program {
    Program(const u8* body, std::size_t size);  // throws Damaged

#define RADIX_MEMBER(type, name) Array<type> name;
    RADIX_PROGRAM_ARRAYS(RADIX_MEMBER)
#undef RADIX_MEMBER

    u32 num_states = 0, start = 0, num_classes = 0, num_regions = 0, num_sets = 0;
    // rows of state s: start[s] .. start[s + 1]
    u32 *edge_start = nullptr, *empty_start = nullptr, *call_start = nullptr, *loop_start = nullptr,
        *setmove_start = nullptr;
    u8* is_end = nullptr;
    u8* is_plain = nullptr;  // has byte edges and no other move
    std::size_t num_bytes() const { return arena_.num_bytes(); }
    Arena& arena() { return arena_; }

private:
    void check() const;
    void check_sets() const;
    u32* row_starts(Array<i32> sources);
    Arena arena_;
};

}  // namespace radix
