// The exported functions, and the choice of instruction set at run time.
#include <cstring>
#include <exception>

#include "runner.h"

using radix::AnyRunner;
using radix::Step;
using radix::Weights;

namespace {

using Make = AnyRunner* (*)(const Weights&);

struct Isa {
  const char* name;
  Make make;
  bool (*is_usable)();
};

bool always() { return true; }

#if defined(RADIX_HAS_AVX2)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }
#endif

#if defined(RADIX_HAS_AVXVNNI)
bool has_avxvnni() { return has_avx2() && __builtin_cpu_supports("avxvnni"); }
#endif
#if defined(RADIX_HAS_AVX512VNNI)
bool has_avx512vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

const Isa kIsas[] = {  // best first
#if defined(RADIX_HAS_AVX512VNNI)
    {"avx512vnni", avx512vnni::make_runner, has_avx512vnni},
#endif
#if defined(RADIX_HAS_AVXVNNI)
    {"avxvnni", avxvnni::make_runner, has_avxvnni},
#endif
#if defined(RADIX_HAS_AVX2)
    {"avx2", avx2::make_runner, has_avx2},
#endif
    {"portable", portable::make_runner, always},
};

bool are_below(const int32_t* numbers, int count, int limit) {
  for (int i = 0; i < count; ++i)
    if (numbers[i] < 0 || numbers[i] >= limit) return false;
  return true;
}

}  // namespace

#define RADIX_EXPORT __attribute__((visibility("default")))

extern "C" {

// Number of the version that library.py expects.
RADIX_EXPORT int radix_abi_version() { return 5; }

// Name of the n-th instruction set that serves on this machine, best first; null beyond the last.
RADIX_EXPORT const char* radix_isa(int n) {
  for (const Isa& isa : kIsas)
    if (isa.is_usable() && n-- == 0) return isa.name;
  return nullptr;
}

// A runner of the weights, which must outlive it (the structs are copied); null for an instruction set that does not serve here.
RADIX_EXPORT void* radix_open(const Weights* weights, const char* isa_name) {
  for (const Isa& isa : kIsas)
    if (isa.is_usable() && std::strcmp(isa.name, isa_name) == 0) {
      try {
        return isa.make(*weights);
      } catch (const std::exception&) {
        return nullptr;
      }
    }
  return nullptr;
}

RADIX_EXPORT void radix_close(void* runner) { delete static_cast<AnyRunner*>(runner); }

// 0, or 1 when memory ran out.
RADIX_EXPORT int radix_step(void* runner, const Step* step) {
  try {
    static_cast<AnyRunner*>(runner)->step(*step);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

// `masks`: null, or for each row null or the tokens that matter, bit i % 32 of word i / 32; others may come out as minus infinity.
RADIX_EXPORT int radix_logits(void* runner, const float* hidden, int num_rows, const uint32_t* const* masks, float* out) {
  try {
    static_cast<AnyRunner*>(runner)->logits(hidden, num_rows, masks, out);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

// 0, 1 when memory ran out, 2 for a row or a token that is not among the logits.
RADIX_EXPORT int radix_sample(void* runner, const radix::Sampling* sampling) {
  const radix::Sampling& s = *sampling;
  if (!are_below(s.rows, s.num_rows, s.num_logits) || !are_below(s.score_rows, s.num_scores, s.num_logits) ||
      !are_below(s.score_ids, s.num_scores, s.vocab) || !are_below(s.count_ids, s.count_starts ? s.count_starts[s.num_rows] : 0, s.vocab) ||
      !are_below(s.bias_ids, s.bias_starts ? s.bias_starts[s.num_rows] : 0, s.vocab))
    return 2;
  try {
    static_cast<AnyRunner*>(runner)->sample(*sampling);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
}
