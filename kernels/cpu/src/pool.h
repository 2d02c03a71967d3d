// A small pool of threads that run one function together and meet at barriers.
//
// Good citizenship: a thread that waits spins briefly, then yields, then sleeps, so that a machine with other work loses little. The
// caller's thread is member 0. Not for nesting.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace radix {

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

class Pool {
 public:
  explicit Pool(int num_threads) : num_threads_(num_threads < 1 ? 1 : num_threads) {
    for (int member = 1; member < num_threads_; ++member) threads_.emplace_back([this, member] { serve(member); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
      round_.fetch_add(1);
    }
    bell_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int size() const { return num_threads_; }

  // work(member) on every member; returns when all are done.
  template <class Work>
  void run(Work&& work) {
    if (num_threads_ == 1) return work(0);
    work_ = std::ref(work);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    bell_.notify_all();
    work(0);
    barrier();
  }

  // Every member waits until all have come. Called by all members in the same order.
  void barrier() {
    if (num_threads_ == 1) return;
    const unsigned meeting = meetings_.load(std::memory_order_acquire);
    if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) == num_threads_ - 1) {
      num_arrived_.store(0, std::memory_order_relaxed);
      meetings_.store(meeting + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; meetings_.load(std::memory_order_acquire) == meeting; ++spins) {
      if (spins < kSpins) pause_cpu();
      else std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSpins = 4000;  // some tens of microseconds

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
      work_(member);
      barrier();
    }
  }

  const int num_threads_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable bell_;
  std::atomic<unsigned> round_{0}, meetings_{0};
  std::atomic<int> num_arrived_{0};
  bool is_ending_ = false;
  std::function<void(int)> work_;
};

}  // namespace radix
