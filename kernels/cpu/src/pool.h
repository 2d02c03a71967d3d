// A small pool of threads that run one function together and meet at barriers.
//
// Good citizenship: a thread that waits spins briefly, then yields, then sleeps, so that a machine with other work loses little. The
// caller's thread is member 0. Not for nesting.
//
// An exception of any member (memory that ran out) ends the round for all: the others leave at their next barrier, and `run` throws it on
// the caller's thread when nobody works any more. The pool serves on.
#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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
  explicit Pool(int num_threads) : num_threads_(num_threads < 1 ? 1 : num_threads) {
    try {
      for (int member = 1; member < num_threads_; ++member) threads_.emplace_back([this, member] { serve(member); });
    } catch (...) {  // the system gives no more threads
      end();
      throw;
    }
  }

  ~Pool() { end(); }

  int size() const { return num_threads_; }

  // work(member) on every member; returns when all are done. Throws what a member threw.
  template <class Work>
  void run(Work&& work) {
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

  void serve(int member) {
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
