// Memory of the matcher: bump arenas, block arrays with stable addresses, hash indexes and short vectors.
//
// Owns allocation and its accounting in bytes. Knows nothing of grammars. Everything throws std::bad_alloc and nothing else.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace radix {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

constexpr u32 NONE = 0xFFFFFFFFu;

inline u64 mix(u64 hash, u64 value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 29);
}

// Bump allocation in growing blocks; everything is freed at once.
class Arena {
public:
    template <class T>
    T* take(std::size_t count) {
        const std::size_t size = (count * sizeof(T) + 7) & ~std::size_t(7);
        if (size > left_) grow(size);
        char* place = next_;
        next_ += size;
        left_ -= size;
        return reinterpret_cast<T*>(place);
    }
    std::size_t num_bytes() const { return num_bytes_; }

private:
    void grow(std::size_t size) {
        std::size_t block = num_bytes_ < (1u << 13) ? (1u << 13) : num_bytes_ < (1u << 18) ? num_bytes_ : (1u << 18);
        if (block < size) block = size;
        blocks_.emplace_back(new char[block]);
        next_ = blocks_.back().get();
        left_ = block;
        num_bytes_ += block;
    }
    std::vector<std::unique_ptr<char[]>> blocks_;
    char* next_ = nullptr;
    std::size_t left_ = 0;
    std::size_t num_bytes_ = 0;
};

// A growing array whose elements never move.
template <class T, unsigned Bits = 8>
class Blocks {
public:
    T& operator[](u32 index) { return blocks_[index >> Bits][index & ((1u << Bits) - 1)]; }
    const T& operator[](u32 index) const { return blocks_[index >> Bits][index & ((1u << Bits) - 1)]; }
    u32 size() const { return size_; }
    u32 push(const T& value) {
        if ((size_ >> Bits) == blocks_.size()) blocks_.emplace_back(new T[std::size_t(1) << Bits]);
        (*this)[size_] = value;
        return size_++;
    }
    std::size_t num_bytes() const { return (blocks_.size() << Bits) * sizeof(T); }

private:
    std::vector<std::unique_ptr<T[]>> blocks_;
    u32 size_ = 0;
};

// Open addressing: hash -> id of something that is kept elsewhere.
class HashIndex {
public:
    template <class Equal>
    u32 find(u32 hash, Equal equal) const {
        if (slots_.empty()) return NONE;
        for (u32 at = hash & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.id == NONE) return NONE;
            if (slot.hash == hash && equal(slot.id)) return slot.id;
        }
    }
    void insert(u32 hash, u32 id) {
        if ((count_ + 1) * 3 > slots_.size() * 2) rehash();
        place({hash, id});
        ++count_;
    }
    std::size_t num_bytes() const { return slots_.size() * sizeof(Slot); }

private:
    struct Slot {
        u32 hash;
        u32 id;
    };
    void place(Slot slot) {
        u32 at = slot.hash & mask_;
        while (slots_[at].id != NONE) at = (at + 1) & mask_;
        slots_[at] = slot;
    }
    void rehash() {
        std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2, Slot{0, NONE});
        old.swap(slots_);
        mask_ = u32(slots_.size() - 1);
        for (const Slot& slot : old)
            if (slot.id != NONE) place(slot);
    }
    std::vector<Slot> slots_;
    u32 mask_ = 0;
    std::size_t count_ = 0;
};

// (u32, u32) -> u64, without removal. No key may be (NONE, NONE).
class PairMap {
public:
    const u64* find(u32 left, u32 right) const {
        if (slots_.empty()) return nullptr;
        const u64 key = u64(left) << 32 | right;
        for (u64 at = start(key);; at = (at + 1) & mask_) {
            if (slots_[at].key == key) return &slots_[at].value;
            if (slots_[at].key == ~u64(0)) return nullptr;
        }
    }
    void insert(u32 left, u32 right, u64 value) {
        if ((count_ + 1) * 3 > slots_.size() * 2) rehash();
        place({u64(left) << 32 | right, value});
        ++count_;
    }
    std::size_t num_bytes() const { return slots_.size() * sizeof(Slot); }

private:
    struct Slot {
        u64 key;
        u64 value;
    };
    u64 start(u64 key) const { return (key * 0x9E3779B97F4A7C15ull >> 32) & mask_; }
    void place(Slot slot) {
        u64 at = start(slot.key);
        while (slots_[at].key != ~u64(0)) at = (at + 1) & mask_;
        slots_[at] = slot;
    }
    void rehash() {
        std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2, Slot{~u64(0), 0});
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        for (const Slot& slot : old)
            if (slot.key != ~u64(0)) place(slot);
    }
    std::vector<Slot> slots_;
    u64 mask_ = 0;
    std::size_t count_ = 0;
};

// A vector of plain values that needs no allocation while it is short.
template <class T, u32 N>
class Short {
public:
    Short() = default;
    Short(const Short&) = delete;
    Short& operator=(const Short&) = delete;
    ~Short() {
        if (data_ != inline_) std::free(data_);
    }
    void push(const T& value) {
        if (size_ == capacity_) grow();
        data_[size_++] = value;
    }
    void resize_down(u32 size) { size_ = size; }
    void clear() { size_ = 0; }
    T& operator[](u32 index) { return data_[index]; }
    const T& operator[](u32 index) const { return data_[index]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    u32 size() const { return size_; }

private:
    void grow() {
        const std::size_t bytes = std::size_t(capacity_) * 2 * sizeof(T);
        T* wider = static_cast<T*>(std::malloc(bytes));
        if (wider == nullptr) throw std::bad_alloc();
        std::memcpy(static_cast<void*>(wider), data_, size_ * sizeof(T));
        if (data_ != inline_) std::free(data_);
        data_ = wider;
        capacity_ *= 2;
    }
    T inline_[N];
    T* data_ = inline_;
    u32 size_ = 0;
    u32 capacity_ = N;
};

}  // namespace radix
