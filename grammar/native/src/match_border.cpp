// The C border of the matcher: plain pointers and numbers in, status codes out. No exception leaves here.
#include <cstdio>

#include "match_matcher.h"

#define RADIX_EXPORT extern "C" __attribute__((visibility("default")))

using namespace radix;

namespace {

enum Status : int { kOutOfMemory = -1, kDamaged = -2 };

// Runs `body`; what it throws becomes a status.
template <class Body>
int guarded(char* message, std::size_t message_size, Body body) noexcept {
    try {
        return body();
    } catch (const Damaged& error) {
        if (message && message_size) std::snprintf(message, message_size, "%s", error.what());
        return kDamaged;
    } catch (...) {
        return kOutOfMemory;
    }
}

}  // namespace

// Counts up with every change of this border or of the compiler's; `native/library.py` holds the same number.
RADIX_EXPORT int radix_grammar_abi_version() { return 1; }

RADIX_EXPORT void* radix_match_vocabulary_open(const u8* text, const i64* offsets, u32 num_tokens, const i32* end_ids,
                                               u32 num_end_ids) {
    Vocabulary* made = nullptr;
    guarded(nullptr, 0, [&] {
        made = new Vocabulary(text, offsets, num_tokens, end_ids, num_end_ids);
        return 0;
    });
    return made;
}

RADIX_EXPORT void radix_match_vocabulary_close(Vocabulary* vocabulary) {
    if (--vocabulary->num_users == 0) delete vocabulary;
}

// Null if the program is damaged (then `message` says how) or memory is out (then it is empty).
RADIX_EXPORT void* radix_match_masks_open(Vocabulary* vocabulary, const u8* body, i64 size, i64 memo_bytes, i64 state_bytes,
                                          char* message, i64 message_size) {
    Masks* made = nullptr;
    guarded(message, std::size_t(message_size), [&] {
        made = new Masks(vocabulary, body, std::size_t(size), std::size_t(memo_bytes), std::size_t(state_bytes));
        return 0;
    });
    return made;
}

RADIX_EXPORT void radix_match_masks_close(Masks* masks) {
    if (--masks->num_users == 0) delete masks;
}

RADIX_EXPORT i64 radix_match_masks_bytes(Masks* masks) { return i64(masks->num_bytes()); }
RADIX_EXPORT i64 radix_match_memo_bytes(Masks* masks) { return i64(masks->num_memo_bytes()); }

RADIX_EXPORT void* radix_match_open(Masks* masks) {
    Matcher* made = nullptr;
    guarded(nullptr, 0, [&] {
        made = new Matcher(*masks);
        return 0;
    });
    return made;
}

RADIX_EXPORT void* radix_match_fork(Matcher* matcher) {
    Matcher* made = nullptr;
    guarded(nullptr, 0, [&] {
        made = new Matcher(*matcher);
        return 0;
    });
    return made;
}

RADIX_EXPORT void radix_match_close(Matcher* matcher) { delete matcher; }

RADIX_EXPORT int radix_match_fill(Matcher* matcher, u32* out, i64 budget) {
    return guarded(nullptr, 0, [&] {
        matcher->fill(out, budget);
        return 0;
    });
}

RADIX_EXPORT int radix_match_advance(Matcher* matcher, i64 token) {
    return guarded(nullptr, 0, [&] { return int(matcher->advance(token)); });
}

RADIX_EXPORT int radix_match_advance_bytes(Matcher* matcher, const u8* data, i64 size) {
    return guarded(nullptr, 0, [&] { return int(matcher->advance_bytes(data, std::size_t(size))); });
}

RADIX_EXPORT void radix_match_rollback(Matcher* matcher, i64 num_tokens) { matcher->rollback(num_tokens); }
RADIX_EXPORT int radix_match_is_accepting(Matcher* matcher) { return matcher->is_accepting(); }
RADIX_EXPORT int radix_match_is_complete(Matcher* matcher) { return matcher->is_complete(); }
RADIX_EXPORT i64 radix_match_distance(Matcher* matcher) { return matcher->distance(); }
RADIX_EXPORT i64 radix_match_num_tokens(Matcher* matcher) { return matcher->num_tokens(); }
RADIX_EXPORT i64 radix_match_refused_at(Matcher* matcher) { return i64(matcher->refused_at()); }

// Both write at most `size` bytes and return their number, or a negative status.
RADIX_EXPORT i64 radix_match_shortest(Matcher* matcher, u8* out, i64 size) {
    i64 count = 0;
    const int status = guarded(nullptr, 0, [&] {
        count = i64(matcher->shortest(out, std::size_t(size)));
        return 0;
    });
    return status < 0 ? status : count;
}

RADIX_EXPORT i64 radix_match_forced(Matcher* matcher, u8* out, i64 size) {
    i64 count = 0;
    const int status = guarded(nullptr, 0, [&] {
        count = i64(matcher->forced(out, std::size_t(size)));
        return 0;
    });
    return status < 0 ? status : count;
}
