// The tables of match_moves.h, made on first use in the program's own memory.
#include "match_moves.h"

namespace radix {

Moves::Moves(Program& program) : program_(program) {
    const u32 n = program.num_states;
    followed_ = program.arena().take<const EmptyMoves*>(n);
    rows_ = program.arena().take<const i32*>(n);
    seen_ = program.arena().take<u32>(n);
    std::memset(static_cast<void*>(followed_), 0, n * sizeof(*followed_));
    std::memset(static_cast<void*>(rows_), 0, n * sizeof(*rows_));
    std::memset(seen_, 0, n * sizeof(*seen_));
    for (u32 byte = 0; byte < 256; ++byte) ++class_size_[program.class_of_byte[byte]];
}

const EmptyMoves* Moves::make(u32 state) {
    const Program& p = program_;
    ++epoch_;
    reached_.assign(1, state);
    seen_[state] = epoch_;
    for (std::size_t at = 0; at < reached_.size(); ++at) {
        const u32 from = reached_[at];
        for (u32 row = p.empty_start[from]; row < p.empty_start[from + 1]; ++row) {
            const u32 to = u32(p.empty_to[row]);
            if (seen_[to] == epoch_) continue;
            seen_[to] = epoch_;
            reached_.push_back(to);
        }
    }
    auto* moves = program_.arena().take<EmptyMoves>(1);
    *moves = EmptyMoves{};
    auto count = [&](const u32* starts, bool is_flag) {
        u32 total = 0;
        for (u32 from : reached_) {
            const u32 rows = starts[from + 1] - starts[from];
            total += is_flag ? (rows > 0) : rows;
        }
        return total;
    };
    auto* states = program_.arena().take<u32>(count(p.edge_start, true));
    auto* calls = program_.arena().take<u32>(2 * count(p.call_start, false));
    auto* loops = program_.arena().take<u32>(count(p.loop_start, false));
    auto* sets = program_.arena().take<u32>(count(p.setmove_start, false));
    for (u32 from : reached_) {
        moves->is_end = moves->is_end || p.is_end[from];
        if (p.edge_start[from] < p.edge_start[from + 1]) states[moves->num_states++] = from;
        for (u32 row = p.call_start[from]; row < p.call_start[from + 1]; ++row) {
            calls[2 * moves->num_calls] = u32(p.call_region[row]);
            calls[2 * moves->num_calls++ + 1] = u32(p.call_to[row]);
        }
        for (u32 row = p.loop_start[from]; row < p.loop_start[from + 1]; ++row)
            loops[moves->num_loops++] = u32(p.loop_id[row]);
        for (u32 row = p.setmove_start[from]; row < p.setmove_start[from + 1]; ++row)
            sets[moves->num_sets++] = u32(p.set_id[row]);
    }
    moves->states = states;
    moves->calls = calls;
    moves->loops = loops;
    moves->sets = sets;
    return moves;
}

const i32* Moves::make_row(u32 state) {
    const Program& p = program_;
    i32* row = p.num_classes ? program_.arena().take<i32>(p.num_classes) : nullptr;
    std::memset(row, 0xFF, p.num_classes * sizeof(i32));
    for (u32 edge = p.edge_start[state]; edge < p.edge_start[state + 1]; ++edge) {
        const i32 to = p.edge_to[edge];
        u32 last = NONE;
        for (u32 byte = p.edge_lo[edge]; byte <= p.edge_hi[edge]; ++byte) {
            const u32 byte_class = p.class_of_byte[byte];
            if (byte_class == last) continue;
            last = byte_class;
            i32& cell = row[byte_class];
            if (cell == -1) {
                cell = to;
                continue;
            }
            if (cell >= 0) {
                if (cell == to) continue;
                u32* list = program_.arena().take<u32>(3);
                list[0] = 2, list[1] = u32(cell), list[2] = u32(to);
                cell = -2 - i32(lists_.size());
                lists_.push_back(list);
                continue;
            }
            const u32*& list = lists_[u32(-2 - cell)];
            bool is_there = false;
            for (u32 i = 1; i <= list[0]; ++i) is_there = is_there || list[i] == u32(to);
            if (is_there) continue;
            u32* longer = program_.arena().take<u32>(list[0] + 2);
            std::memcpy(longer, list, (list[0] + 1) * sizeof(u32));
            longer[++longer[0]] = u32(to);
            list = longer;
        }
    }
    return rows_[state] = row;
}

}  // namespace radix
