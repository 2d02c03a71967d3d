// The moves of one match.
#include "match_matcher.h"

namespace radix {
namespace {

// Bytes missing from the last code point after `data`, when `num_open` were missing before it.
u8 open_bytes(u8 num_open, const u8* data, std::size_t size) {
    for (std::size_t at = size > 4 ? size - 4 : 0; at < size; ++at) {
        if (data[at] >= 0xC0) {
            num_open = data[at] < 0xE0 ? 1 : data[at] < 0xF0 ? 2 : 3;
        } else {
            num_open = data[at] >= 0x80 && num_open ? u8(num_open - 1) : 0;
        }
    }
    return num_open;
}

}  // namespace

Matcher::Matcher(Masks& masks) : masks_(masks), points_{{masks.states().start(), 0, false}} { enlist(); }

Matcher::Matcher(const Matcher& other) : masks_(other.masks_), points_(other.points_) { enlist(); }

void Matcher::enlist() {
    next = masks_.matchers;
    if (next) next->before_ = this;
    masks_.matchers = this;
    ++masks_.num_users;
}

Matcher::~Matcher() {
    (before_ ? before_->next : masks_.matchers) = next;
    if (next) next->before_ = before_;
    if (--masks_.num_users == 0) delete &masks_;
}

void Matcher::fill(u32* out, i64 budget) {
    const Vocabulary& vocabulary = masks_.vocabulary();
    if (now().is_ended) {
        std::memcpy(out, vocabulary.end_row.data(), vocabulary.num_words * sizeof(u32));
        return;
    }
    masks_.trim();
    masks_.fill(now().state, out, budget);
}

Taken Matcher::advance(i64 token) {
    const Vocabulary& vocabulary = masks_.vocabulary();
    if (token < 0 || token >= i64(vocabulary.num_tokens)) return Taken::kUnknown;
    const TokenKind kind = vocabulary.kinds[std::size_t(token)];
    if (kind == TokenKind::kEnd) {
        if (!is_accepting()) return Taken::kIncomplete;
        points_.push_back({now().state, 0, true});
        return Taken::kDone;
    }
    if (kind == TokenKind::kSpecial) return Taken::kSpecial;
    u32 size;
    const u8* data = vocabulary.bytes(u32(token), size);
    return advance_bytes(data, size);
}

Taken Matcher::advance_bytes(const u8* data, std::size_t size) {
    if (now().is_ended) return Taken::kEnded;
    masks_.trim();
    StateStore& states = masks_.states();
    u32 state = now().state;
    for (std::size_t at = 0; at < size; ++at) {
        const i32 after = states.step(state, states.class_of(data[at]));
        if (after < 0) {
            refused_at_ = at;
            return Taken::kRefused;
        }
        state = u32(after);
    }
    points_.push_back({state, open_bytes(now().num_open_bytes, data, size), false});
    return Taken::kDone;
}

void Matcher::rollback(i64 num_tokens) {
    if (num_tokens <= 0) return;
    const std::size_t kept = num_tokens >= this->num_tokens() ? 1 : points_.size() - std::size_t(num_tokens);
    points_.resize(kept);
}

std::size_t Matcher::shortest(u8* out, std::size_t size) {
    StateStore& states = masks_.states();
    u32 state = now().state;
    std::size_t count = 0;
    while (states[state].cost > 0 && count < size) {
        u32 byte = 0;
        for (; byte < 256; ++byte) {
            if (!masks_.vocabulary().has_single[byte]) continue;
            const i32 after = states.step(state, states.class_of(byte));
            if (after < 0 || states[u32(after)].cost >= states[state].cost) continue;
            out[count++] = u8(byte);
            state = u32(after);
            break;
        }
        if (byte == 256) break;
    }
    return count;
}

std::size_t Matcher::forced(u8* out, std::size_t size) {
    if (now().num_open_bytes || now().is_ended) return 0;
    StateStore& states = masks_.states();
    u32 state = now().state;
    u8 num_open = 0;
    std::size_t count = 0, num_whole = 0;
    while (count < size && !states[state].is_accepting) {
        const int byte = states.single_byte(state);
        if (byte < 0) break;
        out[count++] = u8(byte);
        num_open = open_bytes(num_open, out + count - 1, 1);
        if (!num_open) num_whole = count;
        const i32 after = states.step(state, states.class_of(u32(byte)));
        if (after < 0) break;
        state = u32(after);
    }
    return num_whole;
}

}  // namespace radix
