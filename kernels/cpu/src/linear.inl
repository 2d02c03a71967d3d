// Linear layers: rows of activations times packed weights, and the quantization of activations.
//
// Every output is one chain of operations that does not depend on how many rows are computed together or by which thread. Float weights:
// one FMA per input in order. Quantized weights, in groups of 32 inputs with one scale: activations are int8 with one scale for each half of a
// group, a power of two (1, 2, 4 .. kFactors) times the unit of a span of four groups, so that
//
//     product of a group = factor[0] * dot(lower half) + factor[1] * dot(upper half)      exact in int32
//     value of a span = for each group in order: value = fma(product, weight's scale, value), then fma(minimum, sum, value)
//     out = (for each span in order: total = fma(value, unit, total)) + bias
//
// A unit is 1 / (127 * kFactors) of the span's largest value, and a factor is rounded up, so no code exceeds 127. (A scale for a block and powers
// of two for its parts: Rouhani et al., "With Shared Microexponents, A Little Shifting Goes a Long Way", 2023.) A span is quantized by itself, so whoever
// computed its 128 values can do it. The unit of one with a value that is not finite is not a number: neither is any output of its row.
namespace RADIX_ISA {

constexpr int kGroup = 32;      // inputs that share a weight's scale
constexpr int kHalf = 16;       // inputs that share an activation's scale
constexpr int kBlock = 16;      // output rows of a block
constexpr int kSpan = 128;      // inputs whose scales share a unit; the last span may be shorter
constexpr int kGroupsOfSpan = kSpan / kGroup;
constexpr int kFactors = 4096;  // the largest factor: 32 products of 8 bits by 8 bits times it stay below 2^31
constexpr int kRowsInCache = 256;
constexpr int kManyRows = 8;
constexpr int kBytesInCache = 192 * 1024;  // activations of so many rows or bytes stay in the second-level cache while weights pass

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr bool kHasVnni = true;
#else
constexpr bool kHasVnni = false;
#endif

// Input that byte t of 32-bit word s of a group holds: two of the lower half and two of the upper; or, for VNNI, four of one half.
constexpr int input_of(int s, int t) {
  return kHasVnni ? kHalf * (s & 1) + 2 * (s >> 1) + (t & 1) + 8 * (t >> 1) : 2 * s + (t & 1) + kHalf * (t >> 1);
}

// Both factors of a group: whole numbers of 16 bits, the upper half's in the high bits; or, for VNNI, what `quantized_vnni.inl` begins and ends
// sums with.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
struct Factors {
  int32_t starts[2];
  float bases[2];
};
#else
using Factors = int32_t;
#endif

// Activations as the linears read them: floats; or int8 in the order of `input_of`, both factors of a group, the sum of its codes times factors
// (exact: below 2^24), and the unit of a span.
//
// Groups lie row after row; for VNNI eight rows lie together, [rows / 8][group][8], so that a tile of them has one address.
constexpr int kTogether = kHasVnni ? 8 : 1;

// A buffer never shrinks, and is judged by its own size: another one's growth may have failed before.
template <class Buffer>
inline void grow(Buffer& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

struct Activations {
  std::vector<float> floats;
  std::vector<int8_t> codes;
  std::vector<Factors> factors;
  std::vector<float> sums, units;

  void reserve(int rows, int num_in, bool holds_floats) {
    const size_t all_rows = size_t(rows + kTogether - 1) / kTogether * kTogether;
    if (holds_floats) grow(floats, all_rows * num_in);
    grow(codes, all_rows * num_in);
    grow(factors, all_rows * (num_in / kGroup));
    grow(sums, all_rows * (num_in / kGroup));
    grow(units, all_rows * num_spans(num_in));
  }

  static int num_spans(int num_in) { return (num_in + kSpan - 1) / kSpan; }

  // Where group (or span) g of a row of `count` lies.
  static size_t cell(int row, int g, int count) { return (size_t(row / kTogether) * count + g) * kTogether + row % kTogether; }
};

// The kinds of quantized weights that this instruction set reads.
constexpr int32_t k4Bits = kHasVnni ? kQ4Halves : kQ4, k8Bits = kHasVnni ? kQ8Halves : kQ8;

inline bool is_quantized(const Linear& w) { return w.kind == k4Bits || w.kind == k8Bits; }

inline bool can_read(const Linear& w) { return is_quantized(w) || w.kind == kF32 || w.kind == kBF16 || w.kind == kF16; }

inline int bytes_of_group(const Linear& w) { return w.kind == k8Bits ? 512 : 256; }

// 16 totals of a row, with the bias, to the `left` outputs of its block that exist.
inline void finish(const Linear& w, int block, const float* totals, float* out) {
  const int left = std::min(kBlock, w.num_out - block * kBlock);
  const float* bias = w.bias ? w.bias + block * kBlock : nullptr;
  for (int k = 0; k < left; ++k) out[k] = bias ? totals[k] + bias[k] : totals[k];
}

// What the factors and codes of a span follow from, given its largest magnitude. All are 0 for a span of zeros.
struct SpanScale {
  float unit = 0.0f, per_unit = 0.0f, factors_per_top = 0.0f;

  explicit SpanScale(float top) {
    if (!std::isfinite(top)) unit = NAN;
    if (!(top > 1e-30f && std::isfinite(top))) return;
    unit = top / float(127 * kFactors);
    per_unit = 1.0f / unit;
    factors_per_top = float(kFactors) / top;
  }
};

// Bits of a float: 2^e has (e + 127) << 23.
constexpr int32_t kExponent = 1 << 23, kBitsOfOne = 127 * kExponent, kBitsOfTop = kBitsOfOne + 12 * kExponent;
static_assert(kFactors == 1 << 12);

// Where the results of quantizing groups of a row go.
struct GroupCells {
  int8_t* all_codes;
  Factors* all_factors;
  float* all_sums;

  GroupCells(Activations& a, size_t cell) : all_codes(&a.codes[cell * kGroup]), all_factors(&a.factors[cell]), all_sums(&a.sums[cell]) {}
  int8_t* codes(int g) const { return all_codes + size_t(g) * kTogether * kGroup; }
  Factors& factors(int g) const { return all_factors[size_t(g) * kTogether]; }
  float& sum(int g) const { return all_sums[size_t(g) * kTogether]; }
};

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

// Span `span` of row `row` of `a` from its values, in the form that `w` reads.
inline void take_span(Activations& a, int row, int span, const float* x, const Linear& w) {
  const int num_groups = w.num_in / kGroup, first = span * kGroupsOfSpan;
  const GroupCells cells(a, a.cell(row, first, num_groups));
  a.units[a.cell(row, span, a.num_spans(w.num_in))] = quantize_span(x, std::min(kGroupsOfSpan, num_groups - first), w.kind == k8Bits, cells);
}

// Row `row` of `a` from `x`, in the form that `w` reads.
inline void take_row(Activations& a, int row, const float* x, const Linear& w) {
  if (!is_quantized(w)) std::memcpy(&a.floats[size_t(row) * w.num_in], x, size_t(w.num_in) * 4);
  else
    for (int span = 0; span < a.num_spans(w.num_in); ++span) take_span(a, row, span, x + span * kSpan, w);
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
    float* to = out + size_t(i) * stride;
    for (int k = 0; k < left; ++k) to[k] = w.bias ? buffer[k] + w.bias[block * kBlock + k] : buffer[k];
  }
}

template <int M>
inline void any_float_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  if (w.kind == kBF16) float_block<M, uint16_t>(w, block, a, row, out, stride);
  else if (w.kind == kF16) float_block<M, Half>(w, block, a, row, out, stride);
  else float_block<M, float>(w, block, a, row, out, stride);
}

// The 16 outputs of a block for rows first .. last, at most kRowsInCache; those of the first row at `out`, the others `stride` behind one another.
inline void block_of_rows(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  constexpr int kRows = 4;
  if (is_quantized(w)) return quantized_block(w, block, a, first, last, out, stride);
  for (int row = first; row < last;) {
    float* to = out + size_t(row - first) * stride;
    if (row + kRows <= last) any_float_block<kRows>(w, block, a, row, to, stride), row += kRows;
    else any_float_block<1>(w, block, a, row, to, stride), row += 1;
  }
}

// Hands out the blocks of one linear after another in portions: a member that was interrupted takes fewer. Counters are used in turn; one is
// set back when nobody can be at it any more, because members meet between any two linears.
class Portions {
 public:
  static constexpr int kTurns = 4;

  // Before the first linear of a round, when no member is at work.
  void begin() {
    for (auto& next : next_) next.store(0, std::memory_order_relaxed);
  }

  // The next of about `of_member` portions a member of `count` blocks of linear number `turn`, as [begin, end); empty when all are taken.
  std::pair<int, int> take(unsigned turn, int count, int num_members, int of_member) {
    const int size = std::max(1, count / (num_members * of_member));
    const int begin = next_[turn % kTurns].fetch_add(size, std::memory_order_relaxed);
    return {std::min(begin, count), std::min(begin + size, count)};
  }

  void set_back(unsigned turn) { next_[(turn + kTurns / 2) % kTurns].store(0, std::memory_order_relaxed); }

 private:
  std::atomic<int> next_[kTurns] = {};
};

// Rows that are computed together, so that their activations stay in cache while weights pass.
inline int rows_together(const Linear& w) { return std::min(kRowsInCache, std::max(16, kBytesInCache / w.num_in / 8 * 8)); }

// Calls make(item, first row, last row) for this member's share of `count` items for all rows, item after item for rows that are computed
// together; `turn` numbers the linears of a round.
template <class Make>
inline void share_out(int count, int num_rows, int together, Portions& portions, unsigned turn, int member, int num_members, Make make) {
  const int of_member = num_rows < kManyRows ? 1 : 4;  // few rows pass too fast for more
  if (member == 0) portions.set_back(turn);
  for (;;) {
    const auto [begin, end] = portions.take(turn, count, num_members, of_member);
    if (begin == end) return;
    for (int first = 0; first < num_rows; first += together)
      for (int item = begin; item < end; ++item) make(item, first, std::min(num_rows, first + together));
  }
}

// This member's share of out[row][:] = w(a[row]) for rows 0 .. num_rows.
inline void linear(const Linear& w, const Activations& a, int num_rows, float* out, int stride, Portions& portions, unsigned turn, int member, int num_members) {
  const int blocks = (w.num_out + kBlock - 1) / kBlock;
  share_out(blocks, num_rows, rows_together(w), portions, turn, member, num_members, [&](int block, int first, int last) {
    block_of_rows(w, block, a, first, last, out + size_t(first) * stride + block * kBlock, stride);
  });
}

// Byte t of word s of a row whose first word lies at `codes`.
inline int code_at(const Linear& w, const uint8_t* codes, int s, int t) {
  if (w.kind == k8Bits) return kHasVnni ? int(codes[64 * s + t]) - 128 : int(int8_t(codes[64 * s + t]));
  return kHasVnni ? (codes[64 * (s / 2) + t] >> (s % 2 ? 4 : 0)) & 15 : (codes[64 * (s % 4) + t] >> (s < 4 ? 0 : 4)) & 15;
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
      for (int t = 0; t < 4; ++t) out[g * kGroup + input_of(s, t)] = float(code_at(w, codes, s, t)) * scale + minimum;
  }
}

}  // namespace RADIX_ISA
