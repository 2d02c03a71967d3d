// Takes memory from the system before it is needed, in the background: the first write to a page otherwise waits until the system has found and
// cleared it, which costs more than computing what is written where a virtual machine's memory comes from its host on demand.
//
// One thread of the lowest priority, which ends by itself. Nothing is written: what the memory holds stays. Does nothing on systems without
// MADV_POPULATE_WRITE (Linux before 5.14).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace radix {

class Populator {
 public:
  // Of the memory at `from`, `bytes` bytes.
  void begin(void* from, size_t bytes) {
#if defined(__linux__)
    try {
      if (bytes) thread_ = std::thread([this, from, bytes] { populate((uintptr_t)from, bytes); });
    } catch (const std::system_error&) {
      return;  // the system gives no more threads: memory comes with use
    }
#else
    (void)from, (void)bytes;
#endif
  }

  ~Populator() {
    is_ending_.store(true);
    if (thread_.joinable()) thread_.join();
  }

 private:
#if defined(__linux__)
  static constexpr size_t kPortion = size_t(4) << 20;

  void populate(uintptr_t from, size_t bytes) {
    constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers do not name
    setpriority(PRIO_PROCESS, id_t(syscall(SYS_gettid)), 19);
    const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE)), end = (from + bytes) / page * page;
    for (uintptr_t at = (from + page - 1) / page * page; at < end && !is_ending_.load(); at += kPortion)
      if (madvise((void*)at, at + kPortion < end ? kPortion : end - at, kPopulateWrite) != 0) return;
  }
#endif

  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace radix
