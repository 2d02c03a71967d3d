// One instruction set's kernels: this file is compiled once for each, with RADIX_ISA naming the namespace.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "abi.h"
#include "lanes.h"
#include "pool.h"
#include "populate.h"
#include "runner.h"

using namespace radix;

#include "linear.inl"
#include "attention.inl"
#include "quantized_heads.inl"
#include "attention_chunks.inl"
#include "attention_pairs.inl"
#include "attention_codes.inl"
#include "attention_plan.inl"
#include "attend.inl"
#include "sampling.inl"
#include "head.inl"
#include "gate.inl"
#include "step.inl"

namespace RADIX_ISA {

AnyRunner* make_runner(const Weights& weights) { return new Runner(weights); }

}  // namespace RADIX_ISA
