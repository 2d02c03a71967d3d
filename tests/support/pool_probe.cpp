// The pool of the native kernels under members that throw; and an operator new that fails on threads other than the first.
#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "pool.h"

#define PROBE_EXPORT extern "C" __attribute__((visibility("default")))

// `rounds` rounds of three stages with barriers between; in every second one `member` throws in `stage` (-1: every member does, 3: after
// the last barrier). 0 when each such round threw on the caller's thread and every other was whole.
PROBE_EXPORT int probe_pool(int num_threads, int member, int stage, int rounds) {
  radix::Pool pool(num_threads);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> done[4] = {};
    const bool fails = round % 2 == 1;
    bool has_thrown = false;
    try {
      pool.run([&](int self) {
        for (int i = 0; i < 4; ++i) {
          if (fails && i == stage && (member < 0 || self == member)) throw std::bad_alloc();
          done[i].fetch_add(1);
          if (i < 3) pool.barrier();
        }
      });
    } catch (const std::bad_alloc&) {
      has_thrown = true;
    }
    if (has_thrown != fails) return 1;
    for (int i = 0; i < 4; ++i) {
      const int before = fails && i >= stage ? num_threads : num_threads + 1;
      if (!fails && done[i] != num_threads) return 2;
      if (fails && (i > stage ? stage < 3 && done[i] != 0 : i < stage ? done[i] != num_threads : done[i] >= before)) return 3;
    }
  }
  return 0;
}

// ---------------------------------------------------------------------------------------------- preloaded: allocation that fails

static std::atomic<bool> fails_elsewhere{false};
static thread_local bool is_first = false;

PROBE_EXPORT void fail_on_other_threads(int yes) {
  is_first = true;  // the thread that calls this
  fails_elsewhere = yes != 0;
}

static std::atomic<long> num_until_failure{-1};

// The n-th allocation of 2,000 bytes or more from now on fails, on whatever thread; -1: none does.
PROBE_EXPORT void fail_at(long n) { num_until_failure = n; }

#if defined(PROBE_REPLACES_NEW)
__attribute__((visibility("default"))) void* operator new(std::size_t size) {
  if (fails_elsewhere && !is_first) throw std::bad_alloc();
  if (size >= 2000 && num_until_failure.load() >= 0 && num_until_failure.fetch_sub(1) == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
__attribute__((visibility("default"))) void* operator new(std::size_t size, std::align_val_t alignment) {
  ::operator delete(::operator new(size));
  if (void* memory = std::aligned_alloc(std::size_t(alignment), (size / std::size_t(alignment) + 1) * std::size_t(alignment))) return memory;
  throw std::bad_alloc();
}
__attribute__((visibility("default"))) void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
__attribute__((visibility("default"))) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((visibility("default"))) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
