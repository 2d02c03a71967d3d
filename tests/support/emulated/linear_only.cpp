// The linear layers of one instruction set behind one function: for tests that compile them with emulated instructions.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "abi.h"
#include "lanes.h"

using namespace radix;

#include "linear.inl"

extern "C" void emulated_linear(const Linear* weights, const float* rows, int num_rows, float* out) {
  RADIX_ISA::Activations input;
  input.reserve(num_rows, weights->num_in, true);
  for (int row = 0; row < num_rows; ++row) RADIX_ISA::take_row(input, row, rows + size_t(row) * weights->num_in, *weights);
  RADIX_ISA::Portions portions;
  RADIX_ISA::linear(*weights, input, num_rows, out, weights->num_out, portions, 0, 0, 1);
}
