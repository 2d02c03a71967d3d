// One output under a grammar: what came, what may come next, back again.
//
// Owns the history of states of one match. Knows nothing of walks.
#pragma once

#include "match_masks.h"

namespace radix {

struct Point {  // the match after some tokens
    u32 state;
    u8 num_open_bytes;  // bytes still missing from the code point at the end of the text
    bool is_ended;      // an end token was taken
};

enum class Taken : int { kDone = 1, kRefused = 0, kEnded = 2, kSpecial = 3, kUnknown = 4, kIncomplete = 5 };

class Matcher {
public:
    explicit Matcher(Masks& masks);
    Matcher(const Matcher& other);
    Matcher& operator=(const Matcher&) = delete;
    ~Matcher();

    void fill(u32* out, i64 budget);
    Taken advance(i64 token);
    Taken advance_bytes(const u8* data, std::size_t size);
    void rollback(i64 num_tokens);
    bool is_accepting() const { return state().is_accepting; }
    bool is_complete() const { return now().is_ended || (is_accepting() && !state().num_configs); }
    i64 distance() const { return state().cost; }
    i64 num_tokens() const { return i64(points_.size()) - 1; }
    // The place of the byte that the last call refused.
    std::size_t refused_at() const { return refused_at_; }
    // Bytes of a shortest completion, and bytes that must follow; at most `size`.
    std::size_t shortest(u8* out, std::size_t size);
    std::size_t forced(u8* out, std::size_t size);

    std::vector<Point>& points() { return points_; }
    Matcher* next = nullptr;  // in the list of the masks' matchers

private:
    void enlist();
    const Point& now() const { return points_.back(); }
    const MatchState& state() const { return masks_.states()[now().state]; }
    Masks& masks_;
    Matcher* before_ = nullptr;
    std::vector<Point> points_;
    std::size_t refused_at_ = 0;
};

}  // namespace radix
