// Reading and checking a program's bytes: whatever could index out of range is refused here, once.
#include "program.h"

namespace radix {
namespace {

[[noreturn]] void damaged(const std::string& what) {
    throw Damaged("the compiled grammar is damaged: " + what);
}

i64 read_size(const u8* at) {
    u64 size = 0;
    for (int byte = 7; byte >= 0; --byte) size = size << 8 | at[byte];
    return size > u64(1) << 40 ? -1 : i64(size);
}

template <class T>
void check_range(const Array<T>& values, i64 low, i64 bound, const char* name) {
    for (u32 i = 0; i < values.size; ++i)
        if (values[i] < low || values[i] >= bound) damaged(std::string(name) + " leaves its range");
}

void check_sorted(const Array<i32>& values, const char* name) {
    for (u32 i = 1; i < values.size; ++i)
        if (values[i] < values[i - 1]) damaged(std::string(name) + " is not sorted");
}

// Row starts that a file brings itself: from 0, never falling, up to the number of rows.
void check_starts(const Array<i32>& starts, u32 num_lists, u32 num_rows, bool is_filled, const char* name) {
    if (starts.size != num_lists + 1 || starts[0] != 0 || u32(starts[num_lists]) != num_rows)
        damaged(std::string(name) + " has a wrong size");
    for (u32 i = 0; i < num_lists; ++i)
        if (starts[i + 1] < starts[i] + (is_filled ? 1 : 0)) damaged(std::string(name) + " is not sorted");
}

bool are_bounds(i64 lo, i64 hi) {
    return lo >= 1 && lo <= MAX_BOUND && hi >= -1 && hi <= MAX_BOUND && (hi < 0 || hi >= lo);
}

}  // namespace

Program::Program(const u8* body, std::size_t size) {
    std::size_t position = 0;
    auto read = [&](auto& array, std::size_t item, const char* name) {
        i64 bytes = position + 8 <= size ? read_size(body + position) : -1;
        position += 8;
        if (bytes < 0 || std::size_t(bytes) > size - position || bytes % i64(item) || bytes / i64(item) > (1 << 30))
            damaged(std::string("array ") + name + " has a wrong size");
        using T = std::remove_reference_t<decltype(*array.data)>;
        array.size = u32(bytes / i64(item));
        array.data = arena_.take<T>(array.size);
        if (bytes) std::memcpy(array.data, body + position, std::size_t(bytes));
        position += std::size_t(bytes);
    };
#define RADIX_READ(type, name) read(name, sizeof(type), #name);
    RADIX_PROGRAM_ARRAYS(RADIX_READ)
#undef RADIX_READ
    if (position != size) damaged("bytes follow its end");
    check();
    edge_start = row_starts(edge_from);
    empty_start = row_starts(empty_from);
    call_start = row_starts(call_from);
    loop_start = row_starts(loop_from);
    setmove_start = row_starts(set_from);
    is_end = arena_.take<u8>(num_states);
    is_plain = arena_.take<u8>(num_states);
    std::memset(is_end, 0, num_states);
    for (u32 i = 0; i < ends.size; ++i) is_end[ends[i]] = 1;
    auto is_bare = [](const u32* starts, u32 s) { return starts[s] == starts[s + 1]; };
    for (u32 s = 0; s < num_states; ++s)
        is_plain[s] = !is_bare(edge_start, s) && !is_end[s] && is_bare(empty_start, s) && is_bare(call_start, s) &&
                      is_bare(loop_start, s) && is_bare(setmove_start, s);
}

u32* Program::row_starts(Array<i32> sources) {
    u32* starts = arena_.take<u32>(num_states + 1);
    u32 row = 0;
    for (u32 s = 0; s <= num_states; ++s) {
        while (row < sources.size && u32(sources[row]) < s) ++row;
        starts[s] = row;
    }
    return starts;
}

void Program::check() const {
    auto same = [](std::initializer_list<u32> sizes, const char* names) {
        for (u32 size : sizes)
            if (size != *sizes.begin()) damaged(std::string(names) + " differ in length");
    };
    same({edge_from.size, edge_lo.size, edge_hi.size, edge_to.size}, "edges");
    same({empty_from.size, empty_to.size}, "empty moves");
    same({call_from.size, call_region.size, call_to.size}, "calls");
    same({loop_from.size, loop_id.size}, "loop moves");
    same({loop_body.size, loop_lo.size, loop_hi.size, loop_exit.size}, "loops");
    same({set_from.size, set_id.size}, "set moves");
    same({set_exit.size, set_separator.size, set_lo.size, set_hi.size, set_flags.size}, "sets");
    same({member_region.size, member_flags.size}, "members");
    same({region_entry.size, region_rank.size}, "regions");
    if (alphabet.size != 256 || class_of_byte.size != 256 || scalars.size != 3) damaged("a table has a wrong size");
    const i64 states = scalars[0];
    if (states < 1 || states > (1 << 30) || scalars[1] < 0 || scalars[1] >= states || scalars[2] < 1 ||
        scalars[2] > 256)
        damaged("its start or classes are wrong");
    if (distances.size != states) damaged("distances have a wrong size");
    auto* self = const_cast<Program*>(this);
    self->num_states = u32(states);
    self->start = u32(scalars[1]);
    self->num_classes = u32(scalars[2]);
    self->num_regions = region_entry.size;
    self->num_sets = set_exit.size;
#define RADIX_RANGE(name, bound) check_range(name, 0, bound, #name)
    RADIX_RANGE(edge_from, states), RADIX_RANGE(edge_to, states), RADIX_RANGE(empty_from, states);
    RADIX_RANGE(empty_to, states), RADIX_RANGE(call_from, states), RADIX_RANGE(call_region, num_regions);
    RADIX_RANGE(call_to, states), RADIX_RANGE(loop_from, states), RADIX_RANGE(loop_id, loop_body.size);
    RADIX_RANGE(loop_body, num_regions), RADIX_RANGE(loop_exit, states), RADIX_RANGE(ends, states);
    RADIX_RANGE(region_entry, states), RADIX_RANGE(class_of_byte, num_classes), RADIX_RANGE(set_from, states);
    RADIX_RANGE(set_id, num_sets), RADIX_RANGE(set_exit, states), RADIX_RANGE(member_region, num_regions);
#undef RADIX_RANGE
    check_range(set_separator, -1, num_regions, "set_separator");
    check_sorted(edge_from, "edge_from");
    check_sorted(empty_from, "empty_from");
    check_sorted(call_from, "call_from");
    check_sorted(loop_from, "loop_from");
    check_sorted(set_from, "set_from");
    check_sorted(ends, "ends");
    for (u32 i = 0; i < loop_lo.size; ++i)
        if (!are_bounds(loop_lo[i], loop_hi[i])) damaged("a bound is wrong");
    for (u32 i = 0; i < edge_lo.size; ++i)
        if (edge_lo[i] > edge_hi[i]) damaged("a bound is wrong");
    for (u32 i = 0; i < distances.size; ++i)
        if (distances[i] < 0) damaged("a bound is wrong");
    check_sets();
}

void Program::check_sets() const {
    check_starts(member_start, num_sets, member_region.size, true, "member_start");
    const u32 num_clauses = num_sets && clause_start.size == num_sets + 1 ? u32(clause_start[num_sets]) : 0;
    check_starts(clause_start, num_sets, num_clauses, true, "clause_start");
    check_starts(literal_start, num_clauses, literals.size, false, "literal_start");
    for (u32 set = 0; set < num_sets; ++set) {
        if (!are_bounds(set_lo[set], -1) || !are_bounds(1, set_hi[set] == 0 ? 1 : set_hi[set])) damaged("a bound is wrong");
        const i64 members = member_start[set + 1] - member_start[set];
        for (i32 clause = clause_start[set]; clause < clause_start[set + 1]; ++clause)
            for (i32 at = literal_start[clause]; at < literal_start[clause + 1]; ++at)
                if (literals[at] >= members || -1 - i64(literals[at]) >= members) damaged("literals leaves its range");
    }
}

}  // namespace radix
