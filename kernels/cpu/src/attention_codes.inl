// Attention over an int8 pool by AVX-512's product of four bytes (vpdpbusd): exact sums of codes.
//
// Two roundings more than in `attention.inl`: a query, spread as the keys are, becomes int8 codes times a scale; and of each block of keys the weights become
// codes of 0 .. 255. A value's scale is a power of two, so it joins the weight's exponent before that: a key of great weight and small values
// leaves the others their precision. The sum of weights is that of the unrounded ones, without the scales of values.
//
// Keys are stored with 128 added, because one side of the product is unsigned; 128 times the sum of a query's codes is taken off where a score begins.
namespace RADIX_ISA {
#if defined(__AVX512VNNI__)

// As an instruction, not a function that returns a sum: with that, GCC 12 keeps two copies of each of 24 sums, and most of them in memory.
inline void add_byte_products(__m512i& sum, __m512i unsigned_bytes, __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

struct Codes {
  using Stored = uint8_t;
  using Weight = uint8_t;
  using Block = ChunkBlock<Codes>;
  static constexpr int kGroupSize = 4;
  static constexpr bool kWeighsBelowMaximum = true;
  static constexpr int kMostWeight = 255;

  // Of a block's keys and values: factors of scores, exponents of values and two to the power of minus them.
  struct Facts {
    alignas(64) float key_scales[kKeyBlock], exponents[kKeyBlock], inverses[kKeyBlock];

    explicit Facts(const Block& block) {
      for (int c = 0; c < kChunks; ++c) {
        const __m512 exponent = c < block.num_chunks ? _mm512_getexp_ps(_mm512_loadu_ps(block.value_scales[c])) : _mm512_setzero_ps();
        const __mmask16 is_number = _mm512_cmp_ps_mask(_mm512_abs_ps(exponent), _mm512_set1_ps(127.0f), _CMP_LE_OQ);  // not where nothing was ever stored
        _mm512_store_ps(key_scales + c * kChunk, c < block.num_chunks ? _mm512_loadu_ps(block.key_scales[c]) : _mm512_setzero_ps());
        _mm512_store_ps(exponents + c * kChunk, exponent);
        _mm512_store_ps(inverses + c * kChunk, _mm512_maskz_scalef_ps(is_number, _mm512_set1_ps(1.0f), _mm512_sub_ps(_mm512_setzero_ps(), exponent)));
      }
    }
  };

  // Behind a query's codes.
  struct QueryFacts {
    float scale;
    int32_t beginning;  // of its scores
  };

  static bool serve(const Shape& s) { return s.kv_kind == kKvI8 && fits_chunks(s); }
  static size_t query_bytes(int head_dim) { return size_t(head_dim) + kChunk; }

  static QueryFacts facts_of(const uint8_t* query, int head_dim) {
    QueryFacts facts;
    std::memcpy(&facts, query + head_dim, sizeof(facts));
    return facts;
  }

  // scores[r][k] = q[r] . keys[k] + the exponent of value k, for the first 16 C keys.
  template <int R, int C, bool kFetches>
  static void score(const uint8_t* const* q, const Block& block, const Block& ahead, const Facts& facts, const Shape& s, float (*scores)[kKeyBlock]) {
    __m512i total[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) total[r][c] = _mm512_set1_epi32(facts_of(q[r], s.head_dim).beginning);
    const size_t stride = size_t(s.page_size) * kGroupSize;
    int d = 0;
    do {
      __m512i keys[C];
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) keys[c] = _mm512_loadu_si512(block.keys[c] + d / kGroupSize * stride);
      if (kFetches)
        for (int c = 0; c < ahead.num_chunks; ++c) fetch_line(ahead.keys[c] + d / kGroupSize * stride);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512i x = all_groups(q[r] + d);
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) add_byte_products(total[r][c], keys[c], x);
      }
    } while ((d += kGroupSize) < s.head_dim);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_set1_ps(facts_of(q[r], s.head_dim).scale);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        const __m512 factor = _mm512_mul_ps(_mm512_load_ps(facts.key_scales + c * kChunk), scale);
        _mm512_store_ps(scores[r] + c * kChunk, _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[r][c]), factor, _mm512_load_ps(facts.exponents + c * kChunk)));
      }
    }
  }

  // Where the codes of four keys' weights lie: packing orders them by lanes of 128 bits.
  static constexpr int place_of(int chunk, int group) { return (group * kChunks + chunk) * kGroupSize; }

  // Scores of a row become codes of weights; returns partial sums of the weights.
  template <int N>
  static __m512 weigh(const float* scores, __m512 maximum, const Facts& facts, uint8_t* weights) {
    __m512 x[N], total = _mm512_setzero_ps();
    __m512i codes[kChunks];
    for (int i = 0; i < N; ++i) x[i] = _mm512_sub_ps(_mm512_load_ps(scores + i * kChunk), maximum);
    two_to_below_one<kMostWeight>(x);
    for (int i = 0; i < N; ++i) total = _mm512_fmadd_ps(x[i], _mm512_load_ps(facts.inverses + i * kChunk), total);
    for (int i = 0; i < kChunks; ++i) codes[i] = i < N ? _mm512_cvtps_epi32(x[i < N ? i : 0]) : _mm512_setzero_si512();
    _mm512_store_si512(weights, _mm512_packus_epi16(_mm512_packs_epi32(codes[0], codes[1]), _mm512_packs_epi32(codes[2], codes[3])));
    return total;
  }

  // put(r, d, sum over k of weights[r][k] * values[k][d .. d + 16]): whole numbers; keys that a row does not see weigh 0.
  template <int R, int V, bool kFetches, class Put>
  static void mix(const uint8_t (*weights)[kKeyBlock], const Block& block, const Block& ahead, const int* counts, int head_dim, int d, Put put) {
    __m512i total[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) total[r][i] = _mm512_setzero_si512();
    int c = 0;
    do {
#pragma GCC unroll 4
      for (int g = 0; g < kChunk / kGroupSize; ++g) {
        const size_t at = size_t(g * head_dim + d) * kGroupSize;
        __m512i values[V];
#pragma GCC unroll 8
        for (int i = 0; i < V; ++i) values[i] = _mm512_loadu_si512(block.values[c] + at + kGroupSize * kChunk * i);
        if (kFetches && c < ahead.num_chunks)
          for (int i = 0; i < V; ++i) fetch_line(ahead.values[c] + at + kGroupSize * kChunk * i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m512i weight = all_groups(weights[r] + place_of(c, g));
#pragma GCC unroll 8
          for (int i = 0; i < V; ++i) add_byte_products(total[r][i], weight, values[i]);
        }
      }
    } while (++c * kChunk < counts[R - 1]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) put(r, d + kChunk * i, _mm512_cvtepi32_ps(total[r][i]));
  }

  static void round_query(float* x, int head_dim, uint8_t* to) {
    spread(x, head_dim);
    QueryFacts facts{scale_of_key(largest_of_head(x, head_dim)), 0};
    quantize_head(x, head_dim, facts.scale, (int8_t*)to);
    facts.beginning = -128 * sum_of_codes((const int8_t*)to, head_dim);
    std::memcpy(to + head_dim, &facts, sizeof(facts));
  }

  // A head's key and value into the cells of one token. The cells of its neighbours may be written at the same time.
  static void store(float* key, float* value, const Shape& s, const PoolOfLayer<uint8_t>& pool, int64_t slot, int head) {
    const int offset = int(slot % s.page_size), head_dim = s.head_dim;
    const size_t cell = cell_of(s, slot / s.page_size, 0) + size_t(head) * s.page_size, stride = size_t(s.page_size) * kGroupSize;
    uint8_t* keys = pool.keys + cell * head_dim + size_t(offset) * kGroupSize;
    uint8_t* values = pool.values + (cell + offset / kGroupSize * kGroupSize) * head_dim;
    alignas(64) int8_t codes[kMaxHeadDim];
    spread(key, head_dim);
    spread(value, head_dim);
    const float key_scale = scale_of_key(largest_of_head(key, head_dim)), value_scale = scale_of_value(largest_of_head(value, head_dim));
    pool.key_scales[cell + offset] = key_scale;
    pool.value_scales[cell + offset] = value_scale;
    quantize_head(key, head_dim, key_scale, codes);
    for (int d = 0; d < head_dim; d += kChunk, keys += kChunk / kGroupSize * stride) {
      const __m128i raised = _mm_xor_si128(_mm_load_si128((const __m128i*)(codes + d)), _mm_set1_epi8(-128));
      alignas(16) uint8_t bytes[kChunk];
      _mm_store_si128((__m128i*)bytes, raised);
#pragma GCC unroll 8
      for (int i = 0; i < kChunk / kGroupSize; ++i) std::memcpy(keys + i * stride, bytes + i * kGroupSize, kGroupSize);
    }
    quantize_head(value, head_dim, value_scale, codes);
    const __mmask64 bytes_of_token = 0x1111111111111111u << offset % kGroupSize;
    for (int d = 0; d < head_dim; d += kChunk) {
      const __m512i spaced = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)(codes + d)));
      _mm512_mask_storeu_epi8(values + kGroupSize * d, bytes_of_token, _mm512_sllv_epi32(spaced, _mm512_set1_epi32(8 * (offset % kGroupSize))));
    }
  }

 private:
  static int sum_of_codes(const int8_t* codes, int head_dim) {
    __m512i total = _mm512_setzero_si512();
    for (int d = 0; d < head_dim; d += kChunk) total = _mm512_add_epi32(total, _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)(codes + d))));
    return _mm512_reduce_add_epi32(total);
  }
};

#endif
}  // namespace RADIX_ISA
