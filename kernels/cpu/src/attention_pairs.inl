// Attention over bfloat16 keys and values by AVX-512's product of pairs (vdpbf16ps): two products a lane, added to a float in a fixed order.
//
// One rounding more than in `attention.inl`: queries and the weights 2^(score - maximum) are rounded to bfloat16, and the sum of weights is
// that of the rounded ones.
namespace RADIX_ISA {
#if defined(__AVX512BF16__)

inline __m512 add_pair_products(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
inline __m256i rounded_pairs(const float* x) { return (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)); }

struct Pairs {
  using Stored = uint16_t;
  using Weight = uint16_t;
  using Block = ChunkBlock<Pairs>;
  static constexpr int kGroupSize = 2;
  static constexpr bool kWeighsBelowMaximum = false;

  struct Facts {
    explicit Facts(const Block&) {}
  };

  static bool serve(const Shape& s) { return s.kv_kind == kKvBF16 && fits_chunks(s); }
  static size_t query_bytes(int head_dim) { return size_t(head_dim) * sizeof(uint16_t); }

  // scores[r][k] = q[r] . keys[k] for the first 16 C keys.
  template <int R, int C, bool kFetches>
  static void score(const uint8_t* const* q, const Block& block, const Block& ahead, const Facts&, const Shape& s, float (*scores)[kKeyBlock]) {
    __m512 total[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) total[r][c] = _mm512_setzero_ps();
    const size_t stride = size_t(s.page_size) * kGroupSize;
    for (int d = 0; d < s.head_dim; d += kGroupSize) {
      __m512i keys[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) keys[c] = _mm512_loadu_si512(block.keys[c] + d / kGroupSize * stride);
      if (kFetches)
        for (int c = 0; c < ahead.num_chunks; ++c) fetch_line(ahead.keys[c] + d / kGroupSize * stride);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i x = all_groups(q[r] + d * sizeof(uint16_t));
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) total[r][c] = add_pair_products(total[r][c], x, keys[c]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) _mm512_store_ps(scores[r] + c * kChunk, total[r][c]);
  }

  // Scores of a row become weights; returns partial sums of them.
  template <int N>
  static __m512 weigh(const float* scores, __m512 maximum, const Facts&, uint16_t* weights) {
    __m512 x[N], total = _mm512_setzero_ps();
    for (int i = 0; i < N; ++i) x[i] = _mm512_sub_ps(_mm512_load_ps(scores + i * kChunk), maximum);
    two_to_below_one<1>(x);
    for (int i = 0; i < N; i += 2) {
      const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(x[i + 1], x[i]);
      _mm512_store_si512(weights + i * kChunk, rounded);
      total = add_pair_products(total, rounded, _mm512_set1_epi16(0x3f80));
    }
    return total;
  }

  // put(r, d, sum over k < counts[r] of weights[r][k] * values[k][d .. d + 16]), in the order of pairs of keys.
  template <int R, int V, bool kFetches, class Put>
  static void mix(const uint16_t (*weights)[kKeyBlock], const Block& block, const Block& ahead, const int* counts, int head_dim, int d, Put put) {
    const int least = counts[0], most = counts[R - 1];
    const auto at = [&](const Block& b, int k) { return b.values[k / kChunk] + k % kChunk * head_dim + kGroupSize * d; };
    __m512 total[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) total[r][i] = _mm512_setzero_ps();
    int k = 0;
    for (; k + 1 < least; k += kGroupSize) {
      __m512i values[V];
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) values[i] = _mm512_loadu_si512(at(block, k) + kGroupSize * kChunk * i);
      if (kFetches && k / kChunk < ahead.num_chunks)
        for (int i = 0; i < V; ++i) fetch_line(at(ahead, k) + kGroupSize * kChunk * i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i weight = all_groups(weights[r] + k);
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) total[r][i] = add_pair_products(total[r][i], weight, values[i]);
      }
    }
    for (; k < most; k += kGroupSize)  // pairs that not all rows see, or see half of
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        if (k >= counts[r]) continue;
        const __mmask32 kept = k + 1 < counts[r] ? 0xffffffff : 0x55555555;
        const __m512i weight = all_groups(weights[r] + k);
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) total[r][i] = add_pair_products(total[r][i], weight, _mm512_maskz_loadu_epi16(kept, at(block, k) + kGroupSize * kChunk * i));
      }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) put(r, d + kChunk * i, total[r][i]);
  }

  static void round_query(float* x, int head_dim, uint8_t* to) {
    for (int d = 0; d < head_dim; d += kChunk) _mm256_storeu_si256((__m256i*)(to + d * sizeof(uint16_t)), rounded_pairs(x + d));
  }

  // A head's key and value into the cells of one token. The cells of its neighbour may be written at the same time.
  static void store(float* key, const float* value, const Shape& s, const PoolOfLayer<uint16_t>& pool, int64_t slot, int head) {
    const int offset = int(slot % s.page_size), head_dim = s.head_dim;
    const size_t cell = cell_of(s, slot / s.page_size, 0) + size_t(head) * s.page_size, stride = size_t(s.page_size) * kGroupSize;
    uint16_t* keys = pool.keys + cell * head_dim + size_t(offset) * kGroupSize;
    uint16_t* values = pool.values + (cell + offset / kGroupSize * kGroupSize) * head_dim;
    for (int d = 0; d < head_dim; d += kChunk) {
      alignas(32) uint16_t rounded[kChunk];
      _mm256_store_si256((__m256i*)rounded, rounded_pairs(key + d));
#pragma GCC unroll 8
      for (int i = 0; i < kChunk; i += kGroupSize, keys += stride) std::memcpy(keys, rounded + i, 4);
      const __m512i words = _mm512_cvtepu16_epi32(rounded_pairs(value + d));
      if (offset % kGroupSize) _mm512_mask_storeu_epi16(values + kGroupSize * d, 0xaaaaaaaa, _mm512_slli_epi32(words, 16));
      else _mm512_mask_storeu_epi16(values + kGroupSize * d, 0x55555555, words);
    }
  }
};

#endif
}  // namespace RADIX_ISA
