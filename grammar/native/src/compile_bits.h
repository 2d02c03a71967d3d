// Sets of bytes as 256-bit masks, and the small value types that every pass of the native compiler uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace radix_compile {

// A set of byte values.
struct Bits256 {
    uint64_t word[4] = {0, 0, 0, 0};

    bool has(int byte) const { return word[byte >> 6] >> (byte & 63) & 1; }
    void add(int byte) { word[byte >> 6] |= uint64_t(1) << (byte & 63); }
    void add_range(int low, int high) {
        for (int byte = low; byte <= high; ++byte) add(byte);
    }
    bool any() const { return (word[0] | word[1] | word[2] | word[3]) != 0; }
    bool operator==(const Bits256& other) const {
        return std::memcmp(word, other.word, sizeof word) == 0;
    }
    bool operator!=(const Bits256& other) const { return !(*this == other); }
    Bits256 operator&(const Bits256& other) const {
        Bits256 result;
        for (int i = 0; i < 4; ++i) result.word[i] = word[i] & other.word[i];
        return result;
    }
    Bits256 operator|(const Bits256& other) const {
        Bits256 result;
        for (int i = 0; i < 4; ++i) result.word[i] = word[i] | other.word[i];
        return result;
    }
    // The bytes that are not in `other`.
    Bits256 without(const Bits256& other) const {
        Bits256 result;
        for (int i = 0; i < 4; ++i) result.word[i] = word[i] & ~other.word[i];
        return result;
    }
    static Bits256 of(int byte) {
        Bits256 result;
        result.add(byte);
        return result;
    }
};

inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
}

inline uint64_t hash_of(const Bits256& mask) {
    uint64_t hash = 1;
    for (uint64_t word : mask.word) hash = mix(hash, word);
    return hash;
}

inline uint64_t hash_of(const uint8_t* data, size_t size) {
    uint64_t hash = size;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        hash = mix(hash, word);
    }
    for (; size > 0; ++data, --size) hash = mix(hash, *data);
    return hash;
}

// A view of consecutive elements that somebody else owns.
template <typename T>
struct View {
    const T* first = nullptr;
    size_t count = 0;

    const T* begin() const { return first; }
    const T* end() const { return first + count; }
    size_t size() const { return count; }
    const T& operator[](size_t index) const { return first[index]; }
};

// Lists of rows, one list for each of `size` owners, in one array (compressed sparse rows). Count, then fill.
template <typename T>
class Rows {
public:
    explicit Rows(size_t size) : start_(size + 2, 0) {}
    void count(size_t owner) { ++start_[owner + 2]; }
    void allocate() {
        for (size_t i = 2; i < start_.size(); ++i) start_[i] += start_[i - 1];
        rows_.resize(start_.back());
    }
    void add(size_t owner, const T& row) { rows_[start_[owner + 1]++] = row; }
    View<T> of(size_t owner) const {
        return {rows_.data() + start_[owner], start_[owner + 1] - start_[owner]};
    }

private:
    std::vector<size_t> start_;  // while filling, entry k + 1 is where the next row of owner k goes
    std::vector<T> rows_;
};

}  // namespace radix_compile
