// A small pool of threads that run one function together and meet at barriers.
//
// Good citizenship: a thread that waits spins briefly, then yields, then sleeps, so that a machine with other work loses little. The
// caller's thread is member 0. Not for nesting.
//
// An exception of any member (memory that ran out) ends the round for all: the others leave at their next barrier, and `run` throws it on
// the caller's thread when nobody works any more. The pool serves on.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif

namespace radix {

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Pool {
 public:
  // With `pins`, each member stays on a core of its own as far as there are some: member k on the k-th that the process may use.
  explicit Pool(int num_threads, bool pins = false) : num_threads_(num_threads < 1 ? 1 : num_threads), pins_(pins) {
    try {
      for (int member = 1; member < num_threads_; ++member) threads_.emplace_back([this, member] { serve(member); });
    } catch (...) {  // the system gives no more threads
      end();
      throw;
    }
  }

  ~Pool() { end(); }

  int size() const { return num_threads_; }

  struct Share {
    int begin, end;
  };

  // A member's share of 0 .. count.
  Share share(int count, int member) const {
    return {int(int64_t(count) * member / num_threads_), int(int64_t(count) * (member + 1) / num_threads_)};
  }

  // work(member) on every member; returns when all are done. Throws what a member threw.
  template <class Work>
  void run(Work&& work) {
    if (pins_ && !is_caller_pinned_) pin(0);
    is_caller_pinned_ = true;
    if (num_threads_ == 1) return work(0);
    work_ = std::ref(work);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    bell_.notify_all();
    take_part(0);
    for (int spins = 0; num_ended_.load(std::memory_order_acquire) != num_threads_; ++spins) wait_briefly(spins);
    num_ended_.store(0, std::memory_order_relaxed);
    if (has_failed_.load(std::memory_order_relaxed)) report();
  }

  // Every member waits until all have come. Called by all members in the same order.
  void barrier() {
    if (num_threads_ == 1) return;
    const unsigned meeting = meetings_.load(std::memory_order_acquire);
    leave_if_failed();
    if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) == num_threads_ - 1) {
      num_arrived_.store(0, std::memory_order_relaxed);
      meetings_.store(meeting + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; meetings_.load(std::memory_order_acquire) == meeting; ++spins) {
      leave_if_failed();
      wait_briefly(spins);
    }
  }

 private:
  static constexpr int kSpins = 4000;  // some tens of microseconds

  struct Left {};  // thrown at a barrier that somebody will never reach

  static void wait_briefly(int spins) {
    if (spins < kSpins) pause_cpu();
    else std::this_thread::yield();
  }

  void leave_if_failed() const {
    if (has_failed_.load(std::memory_order_relaxed)) throw Left();
  }

  void take_part(int member) {
    try {
      work_(member);
    } catch (const Left&) {
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      has_failed_.store(true, std::memory_order_relaxed);
    }
    num_ended_.fetch_add(1, std::memory_order_acq_rel);
  }

  // Only the caller's thread is here: the pool is made ready for the next round before the error goes on.
  void report() {
    num_arrived_.store(0, std::memory_order_relaxed);
    has_failed_.store(false, std::memory_order_relaxed);
    std::exception_ptr error;
    std::swap(error, error_);
    std::rethrow_exception(error);
  }

  void end() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
      round_.fetch_add(1);
    }
    bell_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  // Keep the current thread on a core; where that is refused it runs as before.
  static void pin(int member) {
#if defined(__linux__)
    static const cpu_set_t allowed = allowed_cores();  // of the process, before any of its threads was pinned
    int left = member % std::max(1, CPU_COUNT(&allowed));
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
      return;
    }
#else
    (void)member;
#endif
  }

#if defined(__linux__)
  static cpu_set_t allowed_cores() {
    cpu_set_t found;
    CPU_ZERO(&found);
    sched_getaffinity(getpid(), sizeof(found), &found);
    return found;
  }
#endif

  void serve(int member) {
    if (pins_) pin(member);
    unsigned seen = 0;
    for (;;) {
      for (int spins = 0; spins < kSpins && round_.load(std::memory_order_acquire) == seen; ++spins) pause_cpu();
      if (round_.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        bell_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
      }
      seen = round_.load(std::memory_order_acquire);
      if (is_ending_) return;
      take_part(member);
    }
  }

  const int num_threads_;
  const bool pins_;
  bool is_caller_pinned_ = false;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable bell_;
  std::atomic<unsigned> round_{0}, meetings_{0};
  std::atomic<int> num_arrived_{0}, num_ended_{0};
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;
  bool is_ending_ = false;
  std::function<void(int)> work_;
};

}  // namespace radix
