// Linear layers: rows of activations times packed weights, and the quantization of activations.
//
// Every output is one chain of operations that does not depend on how many rows are computed together or by which thread. Float weights:
// one FMA per input in order. Quantized weights, in groups of 32 inputs with one scale: the activations of a row are int8 with one scale per
// half group of 16, itself a whole number of `unit`s of the row, so that
//
//     product of a group = factor[0] * dot(lower half) + factor[1] * dot(upper half)      exact in int32
//     out = unit * (for each group in order: total = fma(product, scale, total), then fma(minimum, sum, total)) + bias
//
// `unit` is 1 / (127 * kFactors) of the row's largest value, and a factor is rounded up, so no code exceeds 127. Scales of 16 inputs are
// twice as fine as the weights' groups and cost nothing: the multiplication that adds neighbours applies them. A row with a value that is
// not finite has codes and factors of 0, and a unit that is not a number: neither is any of its outputs.
namespace RADIX_ISA {

constexpr int kGroup = 32;      // inputs that share a weight's scale
constexpr int kHalf = 16;       // inputs that share an activation's scale
constexpr int kBlock = 16;      // output rows of a block
constexpr int kFactors = 4095;  // the largest factor: 32 products of 8 bits by 8 bits times it stay below 2^31
constexpr int kRowsInCache = 256;
constexpr int kBytesInCache = 192 * 1024;  // activations of so many rows or bytes stay in the second-level cache while weights pass

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kHasVnni = true;
#else
constexpr bool kHasVnni = false;
#endif

// Input that byte t of 32-bit word s of a group holds: two of the lower half, two of the upper.
constexpr int input_of(int s, int t) { return 2 * s + (t & 1) + kHalf * (t >> 1); }

// Activations as the linears read them: floats; or int8 in the order of `input_of` (VNNI: of `fours_of_halves`), both factors of a group (the upper one in the high 16
// bits), the factors' sum of codes per group (exact: below 2^24), and the row's unit.
struct Activations {
  int width = 0;  // inputs
  std::vector<float> floats;
  std::vector<int8_t> codes;
  std::vector<int32_t> factors;
  std::vector<float> sums, units;

  void reserve(int rows, int num_in) {
    width = num_in;
    const size_t size = size_t(rows) * num_in;
    if (floats.size() < size) floats.resize(size);
    if (codes.size() < size) codes.resize(size);
    const size_t groups = size / kGroup + rows;
    if (sums.size() < groups) {
      sums.resize(groups);
      factors.resize(groups);
    }
    if (units.size() < size_t(rows)) units.resize(rows);
  }
};

inline bool is_quantized(const Linear& w) { return w.kind == kQ4 || w.kind == kQ8; }

inline int bytes_of_group(const Linear& w) { return w.kind == kQ8 ? 512 : 256; }

// 16 totals of a row, times its unit, with the bias.
inline void finish(const Linear& w, int block, float unit, const float* totals, float* out) {
  const int left = std::min(kBlock, w.num_out - block * kBlock);
  const float* bias = w.bias ? w.bias + block * kBlock : nullptr;
  if (left == kBlock) {
    for (int k = 0; k < kBlock; k += 8) {
      const F8 value = mul(load8(totals + k), all8(unit));
      store8(out + k, bias ? add(value, load8(bias + k)) : value);
    }
  } else {
    for (int k = 0; k < left; ++k) out[k] = bias ? totals[k] * unit + bias[k] : totals[k] * unit;
  }
}

}  // namespace RADIX_ISA

#if !defined(__AVX2__)
#include "quantized_portable.inl"
#elif defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "quantized_x86.inl"
#include "quantized_vnni.inl"
#else
#include "quantized_x86.inl"
#include "quantized_avx2.inl"
#endif

namespace RADIX_ISA {

// A row with a value that is not finite.
inline void spoil_row(int n, Activations& a, int row) {
  const size_t groups = n / kGroup, group = row * groups;
  a.units[row] = NAN;
  std::fill_n(&a.codes[group * kGroup], groups * kGroup, int8_t(0));
  std::fill_n(&a.factors[group], groups, 0);
  std::fill_n(&a.sums[group], groups, 0.0f);
}

inline void quantize_row(const float* x, int n, Activations& a, int row) {
  const float top = most_of_row(x, n);
  if (!std::isfinite(top)) return spoil_row(n, a, row);
  const bool is_zero = top <= 1e-30f;
  const float unit = is_zero ? 0.0f : top / float(127 * kFactors), factors_per_top = is_zero ? 0.0f : float(kFactors) / top;
  a.units[row] = unit;
  const size_t group = size_t(row) * (n / kGroup);
  for (int g = 0; g < n / kGroup; ++g)
    a.sums[group + g] = quantize_group(x + g * kGroup, unit, factors_per_top, &a.codes[(group + g) * kGroup], &a.factors[group + g]);
}

// Row `row` of `a` from `x`, in the form that `w` reads.
inline void take_row(Activations& a, int row, const float* x, const Linear& w) {
  if (is_quantized(w)) quantize_row(x, w.num_in, a, row);
  else std::memcpy(&a.floats[size_t(row) * w.num_in], x, size_t(w.num_in) * 4);
}

template <int M, class Stored>
inline void float_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  const Stored* weights = (const Stored*)w.codes + size_t(block) * w.num_in * kBlock;
  F8 total[M][2];
  for (int i = 0; i < M; ++i) total[i][0] = total[i][1] = zero8();
  for (int k = 0; k < w.num_in; ++k, weights += kBlock) {
    const F8 first = load8(weights), second = load8(weights + 8);
    for (int i = 0; i < M; ++i) {
      const F8 x = all8(a.floats[size_t(row + i) * w.num_in + k]);
      total[i][0] = fma8(first, x, total[i][0]);
      total[i][1] = fma8(second, x, total[i][1]);
    }
  }
  const int left = std::min(kBlock, w.num_out - block * kBlock);
  for (int i = 0; i < M; ++i) {
    float buffer[kBlock];
    store8(buffer, total[i][0]);
    store8(buffer + 8, total[i][1]);
    float* to = out + size_t(row + i) * stride + block * kBlock;
    for (int k = 0; k < left; ++k) to[k] = w.bias ? buffer[k] + w.bias[block * kBlock + k] : buffer[k];
  }
}

template <int M>
inline void any_float_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  if (w.kind == kBF16) float_block<M, uint16_t>(w, block, a, row, out, stride);
  else if (w.kind == kF16) float_block<M, Half>(w, block, a, row, out, stride);
  else float_block<M, float>(w, block, a, row, out, stride);
}

// out[row][16 outputs of the block] for rows first .. last, at most kRowsInCache.
inline void block_of_rows(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  constexpr int kTogether = 4;
  if (is_quantized(w)) return quantized_block(w, block, a, first, last, out, stride);
  int row = first;
  for (; row + kTogether <= last; row += kTogether) any_float_block<kTogether>(w, block, a, row, out, stride);
  for (; row < last; ++row) any_float_block<1>(w, block, a, row, out, stride);
}

// This member's share of out[row][:] = w(a[row]) for rows 0 .. num_rows. A block of weights is read once for all rows in cache.
inline void linear(const Linear& w, const Activations& a, int num_rows, float* out, int stride, int member, int num_members) {
  const int blocks = (w.num_out + kBlock - 1) / kBlock;
  const int begin = int(int64_t(blocks) * member / num_members), end = int(int64_t(blocks) * (member + 1) / num_members);
  const int together = std::min(kRowsInCache, std::max(16, kBytesInCache / w.num_in));
  for (int first = 0; first < num_rows; first += together)
    for (int block = begin; block < end; ++block) block_of_rows(w, block, a, first, std::min(num_rows, first + together), out, stride);
}

// One row of a packed weight as floats: the embedding of a token.
inline void unpack_row(const Linear& w, int index, float* out) {
  const int block = index / kBlock, r = index % kBlock;
  if (!is_quantized(w)) {
    for (int k = 0; k < w.num_in; ++k) {
      const size_t at = (size_t(block) * w.num_in + k) * kBlock + r;
      const uint16_t bits = w.kind == kF32 ? 0 : ((const uint16_t*)w.codes)[at];
      out[k] = w.kind == kF32 ? ((const float*)w.codes)[at] : w.kind == kBF16 ? from_bf16(bits) : from_half(bits);
    }
    return;
  }
  const int groups = w.num_in / kGroup, bytes = bytes_of_group(w);
  for (int g = 0; g < groups; ++g) {
    const uint8_t* codes = (const uint8_t*)w.codes + (size_t(block) * groups + g) * bytes + 4 * r;
    const size_t at = (size_t(block) * groups + g) * kBlock + r;
    const float scale = from_half(w.scales[at]), minimum = w.minimums ? from_half(w.minimums[at]) : 0.0f;
    for (int s = 0; s < 8; ++s)
      for (int t = 0; t < 4; ++t) {
        const int code = w.kind == kQ8 ? int8_t(codes[64 * s + t]) : (codes[64 * (s % 4) + t] >> (s < 4 ? 0 : 4)) & 15;
        out[g * kGroup + input_of(s, t)] = float(code) * scale + minimum;
      }
  }
}

}  // namespace RADIX_ISA
