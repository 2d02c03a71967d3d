// Quantized linears with VNNI, in 512 bits (AVX-512) or 256 (AVX-VNNI); `linear.inl` says what is computed.
//
// One instruction (vpdpbusd) adds four products of unsigned weights and signed activations to each 32-bit lane. Its four inputs must share
// a factor, so the words of the stored weights, two inputs of each half, are regrouped to words of one half: in registers for few rows, once
// for many. Codes of 8 bits become unsigned by adding 128, and 128 times the row's sum is taken off the product.
namespace RADIX_ISA {

#if defined(__AVX512VNNI__)
using Ints = __m512i;
using Floats = __m512;
constexpr int kLanes = 16, kRowsOfTile = 8;
inline Ints all_ints(int32_t x) { return _mm512_set1_epi32(x); }
inline Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
inline void store_ints(void* p, Ints a) { _mm512_storeu_si512(p, a); }
inline Ints dot(Ints sum, Ints unsigned_bytes, Ints signed_bytes) { return _mm512_dpbusd_epi32(sum, unsigned_bytes, signed_bytes); }
inline Ints add_pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
inline Ints times(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
inline Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
inline Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
inline Ints differ(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
inline Ints low_words(Ints a, Ints b) { return _mm512_mask_blend_epi16(0xaaaaaaaa, a, _mm512_slli_epi32(b, 16)); }
template <int N> inline Ints up(Ints a) { return _mm512_slli_epi32(a, N); }
template <int N> inline Ints down(Ints a) { return _mm512_srli_epi32(a, N); }
inline Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
inline Floats all_floats(float x) { return _mm512_set1_ps(x); }
inline Floats load_floats(const float* p) { return _mm512_loadu_ps(p); }
inline Floats load_halves(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
inline void store_floats(float* p, Floats a) { _mm512_storeu_ps(p, a); }
inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
#else
using Ints = __m256i;
using Floats = __m256;
constexpr int kLanes = 8, kRowsOfTile = 4;
inline Ints all_ints(int32_t x) { return _mm256_set1_epi32(x); }
inline Ints load_ints(const void* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline void store_ints(void* p, Ints a) { _mm256_storeu_si256((__m256i*)p, a); }
inline Ints dot(Ints sum, Ints unsigned_bytes, Ints signed_bytes) { return _mm256_dpbusd_avx_epi32(sum, unsigned_bytes, signed_bytes); }
inline Ints add_pairs(Ints a, Ints b) { return _mm256_madd_epi16(a, b); }
inline Ints times(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
inline Ints plus(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
inline Ints differ(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
inline Ints low_words(Ints a, Ints b) { return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa); }
template <int N> inline Ints up(Ints a) { return _mm256_slli_epi32(a, N); }
template <int N> inline Ints down(Ints a) { return _mm256_srli_epi32(a, N); }
inline Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
inline Floats all_floats(float x) { return _mm256_set1_ps(x); }
inline Floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
inline Floats load_halves(const uint16_t* p) { return eight_halves(p); }
inline void store_floats(float* p, Floats a) { _mm256_storeu_ps(p, a); }
inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
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
  void words(int g, int j, int lane, Ints& lower, Ints& upper) const {
    const Ints packed = load_ints(bytes + 256 * size_t(g) + 64 * j + 4 * lane), low = all_ints(0x0f0f), high = all_ints(0x0f0f0000);
    lower = either(both(packed, low), both(up<12>(packed), high));
    upper = either(both(down<16>(packed), low), both(down<4>(packed), high));
  }
};

struct Weights8 : StoredWeights {
  using StoredWeights::StoredWeights;
  void words(int g, int j, int lane, Ints& lower, Ints& upper) const {
    const uint8_t* at = bytes + 512 * size_t(g) + 64 * j + 4 * lane;
    const Ints sign = all_ints(int32_t(0x80808080)), first = differ(load_ints(at), sign), last = differ(load_ints(at + 256), sign);
    lower = either(down<16>(up<16>(first)), up<16>(last));
    upper = either(down<16>(first), up<16>(down<16>(last)));
  }
};

// One group of 16 outputs, regrouped: words 2 j of the lower half and 2 j + 1 of the upper.
struct alignas(64) WideGroup {
  uint8_t codes[512];
  float scales[kBlock], minimums[kBlock];
};
constexpr int kWideGroups = 24;  // 15 KB of the first-level cache
constexpr int kFewRows = 2;      // rows for which regrouping in registers is cheaper

struct WideWeights {
  const WideGroup* groups;
  bool has_minimums;
  void words(int g, int j, int lane, Ints& lower, Ints& upper) const {
    lower = load_ints(groups[g].codes + 128 * j + 4 * lane);
    upper = load_ints(groups[g].codes + 128 * j + 64 + 4 * lane);
  }
  Floats scales(int g, int lane) const { return load_floats(groups[g].scales + lane); }
  Floats minimums(int g, int lane) const { return load_floats(groups[g].minimums + lane); }
};

// factors[0] * lower + factors[1] * upper, of signed codes. Sums of 4-bit codes fit 16 bits.
template <bool kIsQ8>
inline Ints product_of(Ints lower, Ints upper, int32_t factors, float sum) {
  if (!kIsQ8) return add_pairs(low_words(lower, upper), all_ints(factors));
  const Ints product = plus(times(lower, all_ints(factors & 0xffff)), times(upper, all_ints(factors >> 16)));
  return minus(product, all_ints(128 * int32_t(sum)));
}

// Adds groups 0 .. count of `w` to the totals of M rows, outputs `lane` .. lane + kLanes.
template <int M, bool kIsQ8, class Codes>
__attribute__((noinline)) void tile(const Codes w, int lane, int count, const RowsFrom rows, float (*to)[kBlock]) {
  Floats total[M];
  for (int i = 0; i < M; ++i) total[i] = load_floats(to[i] + lane);
  for (int g = 0; g < count; ++g) {
    Ints lower[M], upper[M];
    for (int i = 0; i < M; ++i) lower[i] = upper[i] = all_ints(0);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Ints lower_weights, upper_weights;
      w.words(g, j, lane, lower_weights, upper_weights);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        lower[i] = dot(lower[i], lower_weights, all_ints(rows.word(i, g, 2 * j)));
        upper[i] = dot(upper[i], upper_weights, all_ints(rows.word(i, g, 2 * j + 1)));
      }
    }
    const Floats scales = w.scales(g, lane);
    for (int i = 0; i < M; ++i) {
      const size_t at = i * rows.stride + g;
      total[i] = fused(to_floats(product_of<kIsQ8>(lower[i], upper[i], rows.factors[at], rows.sums[at])), scales, total[i]);
    }
    if (!w.has_minimums) continue;
    const Floats minimums = w.minimums(g, lane);
    for (int i = 0; i < M; ++i) total[i] = fused(minimums, all_floats(rows.sums[i * rows.stride + g]), total[i]);
  }
  for (int i = 0; i < M; ++i) store_floats(to[i] + lane, total[i]);
}

template <int M, bool kIsQ8, class Codes>
inline int tiles_of(const Codes& w, int count, const Linear& linear, const Activations& a, int group, int row, int last, float (*totals)[kBlock]) {
  for (; row + M <= last; row += M, totals += M)
    for (int lane = 0; lane < kBlock; lane += kLanes) tile<M, kIsQ8>(w, lane, count, RowsFrom(a, linear.num_in, row, group), totals);
  return row;
}

// Adds groups group .. group + count of the weights to the totals of rows first .. last.
template <bool kIsQ8, class Codes>
inline void tiles(const Codes& w, int count, const Linear& linear, const Activations& a, int group, int first, int last, float (*totals)[kBlock]) {
  int row = tiles_of<kRowsOfTile, kIsQ8>(w, count, linear, a, group, first, last, totals);
  row = tiles_of<2, kIsQ8>(w, count, linear, a, group, row, last, totals + (row - first));
  tiles_of<1, kIsQ8>(w, count, linear, a, group, row, last, totals + (row - first));
}

template <class Codes>
inline void widen(const Codes& from, int count, WideGroup* to) {
  for (int g = 0; g < count; ++g)
    for (int lane = 0; lane < kBlock; lane += kLanes) {
      for (int j = 0; j < 4; ++j) {
        Ints lower, upper;
        from.words(g, j, lane, lower, upper);
        store_ints(to[g].codes + 128 * j + 4 * lane, lower);
        store_ints(to[g].codes + 128 * j + 64 + 4 * lane, upper);
      }
      store_floats(to[g].scales + lane, from.scales(g, lane));
      if (from.has_minimums) store_floats(to[g].minimums + lane, from.minimums(g, lane));
    }
}

template <class Codes, bool kIsQ8>
inline void add_groups(const Linear& w, int block, const Activations& a, int first, int last, float (*totals)[kBlock]) {
  const int groups = w.num_in / kGroup;
  const size_t start = size_t(block) * groups;
  if (last - first <= kFewRows) return tiles<kIsQ8>(Codes(w, start), groups, w, a, 0, first, last, totals);
  WideGroup wide[kWideGroups];
  for (int g = 0; g < groups; g += kWideGroups) {
    const int count = std::min(kWideGroups, groups - g);
    widen(Codes(w, start + g), count, wide);
    tiles<kIsQ8>(WideWeights{wide, w.minimums != nullptr}, count, w, a, g, first, last, totals);
  }
}

inline void quantized_block(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  alignas(64) float totals[kRowsInCache][kBlock];
  std::memset(totals, 0, size_t(last - first) * sizeof(totals[0]));
  if (w.kind == kQ8) add_groups<Weights8, true>(w, block, a, first, last, totals);
  else add_groups<Weights4, false>(w, block, a, first, last, totals);
  for (int row = first; row < last; ++row) finish(w, block, a.units[row], totals[row - first], out + size_t(row) * stride + block * kBlock);
}

}  // namespace RADIX_ISA
