// Quantized linears with VNNI, in 512 bits (AVX-512) or 256 (AVX-VNNI); `linear.inl` says what is computed.
//
// One instruction (vpdpbusd) adds four products of unsigned weights and signed activations to each 32-bit lane. Its four inputs must share
// a factor, so a stored word holds inputs of one half. Nibbles are unpacked in registers, for eight rows at a time: unpacking them once for many
// rows is no faster. Codes of 8 bits are stored with 128 added, and 128 times the half's sum is taken off where a sum begins.
//
// A sum of products of a half begins with the bits of the float 1.5 * 2^23 * factor. Whole numbers below 2^22 added to these bits are, to the float,
// multiples of the factor added: taking the beginning off again leaves factor * dot, exactly, without a conversion or a multiplication.
namespace RADIX_ISA {

#if defined(__AVX512VNNI__)
using Ints = __m512i;
using Floats = __m512;
constexpr int kLanes = 16, kRowsOfTile = 8;
inline Ints all_ints(int32_t x) { return _mm512_set1_epi32(x); }
inline Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
inline Ints dot(Ints sum, Ints unsigned_bytes, Ints signed_bytes) { return _mm512_dpbusd_epi32(sum, unsigned_bytes, signed_bytes); }
inline Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
template <int N> inline Ints down(Ints a) { return _mm512_srli_epi32(a, N); }
inline Floats as_floats(Ints a) { return _mm512_castsi512_ps(a); }
inline Floats all_floats(float x) { return _mm512_set1_ps(x); }
inline Floats load_halves(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats summed(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats less(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline __mmask16 first_lanes(int count) { return count < kLanes ? __mmask16((1u << count) - 1) : __mmask16(0xffff); }
inline Floats load_some(const float* p, int count) { return _mm512_maskz_loadu_ps(first_lanes(count), p); }
inline void store_some(float* p, Floats a, int count) { _mm512_mask_storeu_ps(p, first_lanes(count), a); }
#else
using Ints = __m256i;
using Floats = __m256;
constexpr int kLanes = 8, kRowsOfTile = 4;
inline Ints all_ints(int32_t x) { return _mm256_set1_epi32(x); }
inline Ints load_ints(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline Ints dot(Ints sum, Ints unsigned_bytes, Ints signed_bytes) { return _mm256_dpbusd_avx_epi32(sum, unsigned_bytes, signed_bytes); }
inline Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
template <int N> inline Ints down(Ints a) { return _mm256_srli_epi32(a, N); }
inline Floats as_floats(Ints a) { return _mm256_castsi256_ps(a); }
inline Floats all_floats(float x) { return _mm256_set1_ps(x); }
inline Floats load_halves(const uint16_t* p) { return eight_halves(p); }
inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Floats summed(Floats a, Floats b) { return _mm256_add_ps(a, b); }
inline Floats less(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
inline __m256i first_lanes(int count) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
inline Floats load_some(const float* p, int count) { return _mm256_maskload_ps(p, first_lanes(count)); }
inline void store_some(float* p, Floats a, int count) { _mm256_maskstore_ps(p, first_lanes(count), a); }
#endif

// Where a tile finds its weights: words j (0 .. 3) of both halves, unsigned, of the outputs from `lane` on.
struct StoredWeights {
  const uint8_t* bytes;
  const uint16_t* all_scales;
  const uint16_t* all_minimums;
  bool has_minimums;

  StoredWeights(const Linear& w, size_t group)
      : bytes((const uint8_t*)w.codes + group * bytes_of_group(w)), all_scales(w.scales + group * kBlock),
        all_minimums(w.minimums ? w.minimums + group * kBlock : nullptr), has_minimums(w.minimums != nullptr) {}
  Floats scales(int g, int lane) const { return load_halves(all_scales + g * kBlock + lane); }
  Floats minimums(int g, int lane) const { return load_halves(all_minimums + g * kBlock + lane); }
};

struct Weights4 : StoredWeights {
  using StoredWeights::StoredWeights;
  static constexpr int kBytes = 256;  // of a group
  template <bool kIsUpper>
  Ints word(int g, int j, int lane) const {
    const Ints packed = load_ints(bytes + 256 * size_t(g) + 64 * j + 4 * lane);
    return both(kIsUpper ? down<4>(packed) : packed, all_ints(0x0f0f0f0f));
  }
};

struct Weights8 : StoredWeights {
  using StoredWeights::StoredWeights;
  static constexpr int kBytes = 512;
  template <bool kIsUpper>
  Ints word(int g, int j, int lane) const { return load_ints(bytes + 512 * size_t(g) + 128 * j + (kIsUpper ? 64 : 0) + 4 * lane); }
};

// Rows of activations that lie together, from one of them on.
struct RowsTogether {
  const int8_t* codes;
  const Factors* all_factors;
  const float* sums;
  const float* units;

  RowsTogether(const Activations& a, int num_in, int row) : units(&a.units[a.cell(row, 0, a.num_spans(num_in))]) {
    const size_t cell = a.cell(row, 0, num_in / kGroup);
    codes = &a.codes[cell * kGroup];
    all_factors = &a.factors[cell];
    sums = &a.sums[cell];
  }
  Ints word(int i, int g, int s) const {
    int32_t four;
    std::memcpy(&four, codes + (size_t(g) * kTogether + i) * kGroup + 4 * s, 4);
    return all_ints(four);
  }
  const Factors& factors(int i, int g) const { return all_factors[size_t(g) * kTogether + i]; }
  Floats sum(int i, int g) const { return all_floats(sums[size_t(g) * kTogether + i]); }
  Floats unit(int i, int span) const { return all_floats(units[size_t(span) * kTogether + i]); }
};

// factor * dot of one half of group g, for M rows.
template <int M, bool kIsUpper, class Codes>
inline void multiply_half(const Codes& w, int g, int lane, const RowsTogether& rows, Floats* products) {
  Ints sums[M];
  for (int i = 0; i < M; ++i) sums[i] = all_ints(rows.factors(i, g).starts[kIsUpper]);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Ints weights = w.template word<kIsUpper>(g, j, lane);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) sums[i] = dot(sums[i], weights, rows.word(i, g, 2 * j + kIsUpper));
  }
  for (int i = 0; i < M; ++i) products[i] = less(as_floats(sums[i]), all_floats(rows.factors(i, g).bases[kIsUpper]));
}

// For few rows weights must come as fast as memory gives them: they are fetched so many bytes ahead of their use.
constexpr int kBytesAhead = 12 * 1024;

template <class Codes>
inline void fetch(const Codes& w, int g) {
  for (int at = 0; at < Codes::kBytes; at += 64) __builtin_prefetch(w.bytes + size_t(g) * Codes::kBytes + at, 0, 2);
}

// Adds the products of group g to the values of M rows.
template <int M, class Codes>
inline void add_group(const Codes& w, int g, int lane, const RowsTogether& rows, Floats* values) {
  Floats lower[M], upper[M];
  multiply_half<M, false>(w, g, lane, rows, lower);
  multiply_half<M, true>(w, g, lane, rows, upper);
  const Floats scales = w.scales(g, lane);
  for (int i = 0; i < M; ++i) values[i] = fused(summed(lower[i], upper[i]), scales, values[i]);
  if (!w.has_minimums) return;
  const Floats minimums = w.minimums(g, lane);
  for (int i = 0; i < M; ++i) values[i] = fused(minimums, rows.sum(i, g), values[i]);
}

// out[i][lane .. lane + kLanes] of one block, for M rows that lie together; `left` outputs of the block exist.
template <int M, class Codes>
__attribute__((noinline)) void tile(const Codes w, int groups, int lane, int left, const RowsTogether rows, const float* bias, float* out, size_t stride) {
  Floats total[M];
  for (int i = 0; i < M; ++i) {
    total[i] = all_floats(0.0f);
    if (M == kRowsOfTile) __builtin_prefetch(out + i * stride + lane, 1);  // of many rows, results lie far apart and are long out of the cache
  }
  for (int g = 0, span = 0; g < groups; ++span) {
    Floats values[M];
    for (int i = 0; i < M; ++i) values[i] = all_floats(0.0f);
    for (const int end = std::min(g + kGroupsOfSpan, groups); g < end; ++g) {
      fetch(w, g + (M == kRowsOfTile ? groups : kBytesAhead / Codes::kBytes));  // of many rows, the block that comes next
      add_group<M>(w, g, lane, rows, values);
    }
    for (int i = 0; i < M; ++i) total[i] = fused(values[i], rows.unit(i, span), total[i]);
  }
  for (int i = 0; i < M; ++i) {
    const Floats value = bias ? summed(total[i], load_some(bias + lane, left - lane)) : total[i];
    store_some(out + i * stride + lane, value, left - lane);
  }
}

// One block for rows row .. last, in tiles of M and then of fewer; a tile's rows lie together.
template <int M, class Codes>
inline void tiles(const Codes& w, const Linear& linear, int block, const Activations& a, int row, int last, float* out, int stride) {
  const int groups = linear.num_in / kGroup, left = std::min(kBlock, linear.num_out - block * kBlock);
  const float* bias = linear.bias ? linear.bias + block * kBlock : nullptr;
  for (; row + M <= last && row % M == 0; row += M, out += size_t(M) * stride)
    for (int lane = 0; lane < left; lane += kLanes)
      tile<M>(w, groups, lane, left, RowsTogether(a, linear.num_in, row), bias, out, stride);
  if constexpr (M > 1) tiles<M / 2>(w, linear, block, a, row, last, out, stride);
}

inline void quantized_block(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  const size_t start = size_t(block) * (w.num_in / kGroup);
  if (w.kind == k8Bits) tiles<kRowsOfTile>(Weights8(w, start), w, block, a, first, last, out, stride);
  else tiles<kRowsOfTile>(Weights4(w, start), w, block, a, first, last, out, stride);
}

}  // namespace RADIX_ISA
