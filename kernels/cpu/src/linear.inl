// Linear layers: rows of activations times packed weights, and the quantization of activations.
//
// Every output is one chain of operations that does not depend on how many rows are computed together or by which thread. Float weights:
// one FMA per input in order. Quantized weights, in groups of 32 inputs with one scale: activations are int8 with one scale for each half of a
// group, a power of two, so that
//
//     product of a group = scale[0] * dot(lower half) + scale[1] * dot(upper half)      rounded once
//     out = (for each group in order: total = fma(product, weight's scale, total), then fma(minimum, sum, total)) + bias
//
// A half's scale is the least power of two that leaves no code above 127, but at least the other half's / kFactors: in units of the lesser one
// the product is a whole number that 32 bits hold. (Small blocks with a power of two in common: OCP Microscaling Formats 1.0, MXINT8, there 32
// values.) A group is quantized by itself, so whoever computed its 32 values can do it. One with a value that is not finite, or so large that
// the arithmetic is not, has codes of 0 and scales that are not numbers: no output of the row is a number then.
namespace RADIX_ISA {

constexpr int kGroup = 32;      // inputs that share a weight's scale
constexpr int kHalf = 16;       // inputs that share an activation's scale
constexpr int kBlock = 16;      // output rows of a block
constexpr int kFactors = 4096;  // the largest ratio of a group's scales: 32 products of 8 bits by 8 bits times it stay below 2^31
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

// Both scales of a group: the lesser one, and whole numbers of it, the upper half's in the high 16 bits; or, for VNNI, what `quantized_vnni.inl`
// begins and ends sums with.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
struct Scales {
  int32_t starts[2];
  float bases[2];
};
#else
struct Scales {
  int32_t factors;
  float unit;
};
#endif

// Activations as the linears read them: floats; or int8 in the order of `input_of`, both scales of a group, and the sum of its values.
//
// Groups lie row after row; for VNNI eight rows lie together, [rows / 8][group][8], so that a tile of them has one address.
constexpr int kTogether = kHasVnni ? 8 : 1;

// A buffer never shrinks, and is judged by its own size: another one's growth may have failed before.
template <class T>
inline void grow(std::vector<T>& buffer, size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

struct Activations {
  std::vector<float> floats;
  std::vector<int8_t> codes;
  std::vector<Scales> scales;
  std::vector<float> sums;

  void reserve(int rows, int num_in, bool holds_floats) {
    const size_t size = size_t((rows + kTogether - 1) / kTogether * kTogether) * num_in;
    const size_t cells = size / kGroup + rows;
    if (holds_floats) grow(floats, size);
    grow(codes, size);
    grow(sums, cells);
    grow(scales, cells);
  }

  // Where group g of a row of `num_groups` lies.
  static size_t cell(int row, int g, int num_groups) { return (size_t(row / kTogether) * num_groups + g) * kTogether + row % kTogether; }
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

// The bits of floats of powers of two. A scale 2^e has the bits (e + 127) << 23.
constexpr int32_t kExponent = 1 << 23, kBitsOfOne = 127 * kExponent;
constexpr int32_t kLeastScale = kBitsOfOne - 100 * kExponent;   // of smaller values nothing is kept
constexpr int32_t kTooLarge = kBitsOfOne + 110 * kExponent;     // values from 2^110 on
constexpr int32_t kFactorBits = 12 * kExponent;
static_assert(kFactors == 1 << 12);

// The bits of the least scale that leaves no code above 127 = 2^6 * 1.984375, where the largest magnitude has the bits `most`.
inline int32_t scale_bits(int32_t most) { return std::max(((most + 0x1ffff) & 0x7f800000) - 6 * kExponent, kLeastScale); }

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

// Group g of row `row` of `a` from 32 values, in the form that `w` reads.
inline void take_group(Activations& a, int row, int g, const float* x, const Linear& w) {
  const size_t cell = a.cell(row, g, w.num_in / kGroup);
  a.sums[cell] = quantize_group(x, w.kind == k8Bits, &a.codes[cell * kGroup], &a.scales[cell]);
}

// Row `row` of `a` from `x`, in the form that `w` reads.
inline void take_row(Activations& a, int row, const float* x, const Linear& w) {
  if (!is_quantized(w)) std::memcpy(&a.floats[size_t(row) * w.num_in], x, size_t(w.num_in) * 4);
  else
    for (int g = 0; g < w.num_in / kGroup; ++g) take_group(a, row, g, x + g * kGroup, w);
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
