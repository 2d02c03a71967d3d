// What every instruction set's unit offers, and the list of units in this build.
#pragma once
#include "abi.h"

namespace radix {

class AnyRunner {
 public:
  virtual ~AnyRunner() = default;
  virtual void step(const Step& step) = 0;
  virtual void logits(const float* hidden, int num_rows, const uint32_t* const* masks, float* out) = 0;
  virtual void sample(const Sampling& sampling) = 0;
  virtual bool copies_whole_pages() const = 0;  // the cells of a page's tokens are interleaved
};

}  // namespace radix

namespace portable {
radix::AnyRunner* make_runner(const radix::Weights& weights);
}
#if defined(RADIX_HAS_AVX2)
namespace avx2 {
radix::AnyRunner* make_runner(const radix::Weights& weights);
}
#endif
#if defined(RADIX_HAS_AVXVNNI)
namespace avxvnni {
radix::AnyRunner* make_runner(const radix::Weights& weights);
}
#endif
#if defined(RADIX_HAS_AVX512VNNI)
namespace avx512vnni {
radix::AnyRunner* make_runner(const radix::Weights& weights);
}
#endif
#if defined(RADIX_HAS_AVX512BF16)
namespace avx512bf16 {
radix::AnyRunner* make_runner(const radix::Weights& weights);
}
#endif
