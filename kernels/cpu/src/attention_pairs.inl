// Attention over bfloat16 keys and values by AVX-512's product of pairs (vdpbf16ps): two products a lane, added to a float in a fixed order.
//
// The contract is that of `attention.inl`, with one rounding more: queries (scaled, so that scores are powers of two) and the weights
// 2^(score - maximum) are rounded to bfloat16, and the sum of weights is that of the rounded ones. A score is one chain over pairs of dimensions, a mixed value one chain over pairs of keys,
// whatever is computed beside it. So that both read memory as it lies, the cells of a page are not one token after another:
//
//     keys     [page][head][dimension / 2][token of the page][2]       16 keys' pairs fill a register
//     values   [page][head][token of the page / 2][dimension][2]       a pair of tokens, 16 dimensions a register
//
// A page has the size that it has otherwise, and its heads lie where they lay; only whole pages can be copied. What stands in the cells of
// tokens that a row does not see may be anything, infinite or no number: their scores are replaced, their values not multiplied.
namespace RADIX_ISA {
#if defined(__AVX512BF16__)

constexpr int kChunk = 16;     // keys of a register
constexpr int kChunks = kKeyBlock / kChunk;
constexpr int kPairRows = 6;   // rows of a tile: 24 sums, 4 registers of keys or values, and a row's pair

inline bool takes_pairs(const Shape& s) { return s.kv_kind == kKvBF16 && s.page_size % kChunk == 0 && s.head_dim % kChunk == 0; }

// Up to 64 keys and values of one head, in chunks of 16; the chunks of the block that comes next are fetched meanwhile.
struct PairBlock {
  const uint16_t* keys[kChunks] = {};
  const uint16_t* values[kChunks] = {};
  int num_chunks = 0;

  // Of block `index` of a sequence with these pages, of which `num_visible` keys are seen.
  void find(const Shape& s, const uint16_t* layer_keys, const uint16_t* layer_values, const int32_t* pages, int head, int index, int num_visible) {
    const int first = index * kKeyBlock, count = std::clamp(num_visible - first, 0, kKeyBlock);
    num_chunks = (count + kChunk - 1) / kChunk;
    for (int c = 0; c < num_chunks; ++c) {
      const int at = first + c * kChunk, offset = at % s.page_size;
      const size_t cells = (cell_of(s, pages[at / s.page_size], 0) + size_t(head) * s.page_size) * s.head_dim;
      keys[c] = layer_keys + cells + size_t(offset) * 2;
      values[c] = layer_values + cells + size_t(offset) * s.head_dim;
    }
  }
};

inline __m512 add_pair_products(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }

inline __m512i all_pairs(const uint16_t* pair) {
  int32_t word;
  std::memcpy(&word, pair, 4);
  return _mm512_set1_epi32(word);
}

inline void fetch_line(const uint16_t* p) { __builtin_prefetch(p, 0, 2); }

// scores[r][k] = q[r] . keys[k] for the first 16 C keys.
template <int R, int C, bool kFetches>
inline void score_chunks(const uint16_t* const* q, const PairBlock& block, const PairBlock& ahead, const Shape& s, float (*scores)[kKeyBlock]) {
  __m512 total[R][C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) total[r][c] = _mm512_setzero_ps();
  const size_t stride = size_t(s.page_size) * 2;
  for (int d = 0; d < s.head_dim; d += 2) {
    __m512i keys[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) keys[c] = _mm512_loadu_si512(block.keys[c] + d / 2 * stride);
    if (kFetches)
      for (int c = 0; c < ahead.num_chunks; ++c) fetch_line(ahead.keys[c] + d / 2 * stride);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i x = all_pairs(q[r] + d);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) total[r][c] = add_pair_products(total[r][c], x, keys[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) _mm512_store_ps(scores[r] + c * kChunk, total[r][c]);
}

// Scores of keys that a row does not see, from `count` to `padded`, become minus infinity.
inline void hide(float* scores, int count, int padded) {
  for (int k = count / kChunk * kChunk; k < padded; k += kChunk)
    _mm512_mask_storeu_ps(scores + k, __mmask16(0xffffu << std::max(count - k, 0)), _mm512_set1_ps(-INFINITY));
}

// 2^x for x <= 0, to 2^-13 of it: the rounding behind keeps 2^-9. What is no number stays none.
template <int N>
inline void two_to_below_one(__m512 (&x)[N]) {
  const auto each = [](auto step) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) step(i);
  };
  __m512 n[N], p[N];
  each([&](int i) { x[i] = _mm512_max_ps(_mm512_set1_ps(-200.0f), x[i]); });  // so far below, and at minus infinity, the rounded result is 0
  each([&](int i) { n[i] = _mm512_roundscale_ps(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); });
  each([&](int i) { x[i] = _mm512_sub_ps(x[i], n[i]); });
  // of all cubic polynomials the least relative error on -1/2 .. 1/2
  each([&](int i) { p[i] = _mm512_fmadd_ps(_mm512_set1_ps(5.5171669e-2f), x[i], _mm512_set1_ps(2.4261112e-1f)); });
  each([&](int i) { p[i] = _mm512_fmadd_ps(p[i], x[i], _mm512_set1_ps(6.9326099e-1f)); });
  each([&](int i) { p[i] = _mm512_fmadd_ps(p[i], x[i], _mm512_set1_ps(9.9992807e-1f)); });
  each([&](int i) { x[i] = _mm512_scalef_ps(p[i], n[i]); });
}

// What the lanes of each of R <= 8 rows give under `op`, twice: x0, x0, x1, x1, ..., always by the same tree.
template <int R, class Op>
inline __m512 across(const __m512* rows, Op op) {
  const auto at = [&](int r) { return rows[std::min(r, R - 1)]; };
  const auto halves = [&](__m512 a, __m512 b) { return op(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee)); };
  const auto quarters = [&](__m512 a, __m512 b) { return op(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd)); };
  const __m512 even = quarters(halves(at(0), at(2)), halves(at(4), at(6))), odd = quarters(halves(at(1), at(3)), halves(at(5), at(7)));
  const __m512 both = op(_mm512_shuffle_ps(even, odd, 0x44), _mm512_shuffle_ps(even, odd, 0xee));
  return op(_mm512_moveldup_ps(both), _mm512_movehdup_ps(both));
}

constexpr __mmask16 kSums = 0xaaaa;  // of the lanes of states side by side

template <int N>
inline __m512 weigh_row(const float* scores, __m512 maximum, uint16_t* weights) {
  __m512 x[N], total = _mm512_setzero_ps();
  for (int i = 0; i < N; ++i) x[i] = _mm512_sub_ps(_mm512_load_ps(scores + i * kChunk), maximum);
  two_to_below_one(x);
  for (int i = 0; i < N; i += 2) {
    const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(x[i + 1], x[i]);
    _mm512_store_si512(weights + i * kChunk, rounded);
    total = add_pair_products(total, rounded, _mm512_set1_epi16(0x3f80));
  }
  return total;
}

// Scores of R rows, as powers of two, become rounded weights. A row's maximum is rounded up to a whole number: then all factors between
// blocks are powers of two, and exact. Returns the rows' states, side by side.
template <int R, int C>
inline __m512 weigh_pairs(const float (*scores)[kKeyBlock], uint16_t (*weights)[kKeyBlock]) {
  __m512 rows[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    rows[r] = _mm512_load_ps(scores[r]);
#pragma GCC unroll 8
    for (int c = 1; c < C; ++c) rows[r] = _mm512_max_ps(rows[r], _mm512_load_ps(scores[r] + c * kChunk));
  }
  const __m512 most = across<R>(rows, [](__m512 a, __m512 b) { return _mm512_max_ps(a, b); });
  const __m512 highest = _mm512_roundscale_ps(most, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  alignas(64) float maxima[2 * 8];
  _mm512_store_ps(maxima, highest);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) rows[r] = weigh_row<C>(scores[r], _mm512_set1_ps(maxima[2 * r]), weights[r]);
  return _mm512_mask_mov_ps(highest, kSums, across<R>(rows, [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); }));
}

// The states of `count` <= 8 rows become those with a block's beside them; returns the factors of both, alternating.
inline __m512 merge_pair_states(RowState* states, int count, __m512 block) {
  const __mmask16 lanes = __mmask16((1u << 2 * count) - 1);
  const __m512 one = _mm512_set1_ps(1.0f), old = _mm512_maskz_loadu_ps(lanes, states);
  const __m512 old_maxima = _mm512_moveldup_ps(old), maxima = _mm512_moveldup_ps(block), highest = _mm512_max_ps(old_maxima, maxima);
  const __m512 of_old = _mm512_scalef_ps(one, _mm512_sub_ps(old_maxima, highest)), of_block = _mm512_scalef_ps(one, _mm512_sub_ps(maxima, highest));
  const __m512 sums = _mm512_fmadd_ps(old, of_old, _mm512_mul_ps(block, of_block));
  _mm512_mask_storeu_ps(states, lanes, _mm512_mask_mov_ps(highest, kSums, sums));
  return _mm512_mask_mov_ps(of_old, kSums, of_block);
}

inline void merge_pair_state(RowState& state, RowState block, float* factors) {
  const __m512 both = merge_pair_states(&state, 1, _mm512_castps128_ps512(_mm_setr_ps(block.maximum, block.sum, 0.0f, 0.0f)));
  std::memcpy(factors, &both, 2 * sizeof(float));
}

// put(r, d, sum over k < counts[r] of weights[r][k] * values[k][d .. d + 16]), in the order of pairs of keys.
template <int R, int V, bool kFetches, class Put>
inline void mix_chunks(const uint16_t (*weights)[kKeyBlock], const PairBlock& block, const PairBlock& ahead, const int* counts, int head_dim, int d, Put put) {
  const int least = counts[0], most = counts[R - 1];
  const auto at = [&](const PairBlock& b, int k) { return b.values[k / kChunk] + k % kChunk * head_dim + 2 * d; };
  __m512 total[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) total[r][i] = _mm512_setzero_ps();
  int k = 0;
  for (; k + 1 < least; k += 2) {
    __m512i values[V];
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) values[i] = _mm512_loadu_si512(at(block, k) + 2 * kChunk * i);
    if (kFetches && k / kChunk < ahead.num_chunks)
      for (int i = 0; i < V; ++i) fetch_line(at(ahead, k) + 2 * kChunk * i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i weight = all_pairs(weights[r] + k);
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) total[r][i] = add_pair_products(total[r][i], weight, values[i]);
    }
  }
  for (; k < most; k += 2)  // pairs that not all rows see, or see half of
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if (k >= counts[r]) continue;
      const __mmask32 kept = k + 1 < counts[r] ? 0xffffffff : 0x55555555;
      const __m512i weight = all_pairs(weights[r] + k);
#pragma GCC unroll 8
      for (int i = 0; i < V; ++i) total[r][i] = add_pair_products(total[r][i], weight, _mm512_maskz_loadu_epi16(kept, at(block, k) + 2 * kChunk * i));
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < V; ++i) put(r, d + kChunk * i, total[r][i]);
}

// Rows of one key/value head; see RowsOfHead.
struct PairRows {
  const uint16_t* const* queries;
  const int* num_visible;
  RowState* states;
  float* const* values;
  int num_rows;
  float* parts;
};

template <int R, bool kFetches, class Put>
inline void mix_all_chunks(const uint16_t (*weights)[kKeyBlock], const PairBlock& block, const PairBlock& ahead, const int* counts, int head_dim, Put put) {
  int d = 0;
  for (; d + 4 * kChunk <= head_dim; d += 4 * kChunk) mix_chunks<R, 4, kFetches>(weights, block, ahead, counts, head_dim, d, put);
  for (; d < head_dim; d += kChunk) mix_chunks<R, 1, kFetches>(weights, block, ahead, counts, head_dim, d, put);
}

// Let R rows from `row` on see the first `counts` keys of a block, which do not fall from row to row.
template <int R, bool kFetches>
__attribute__((noinline)) void see_pairs_of(const PairBlock& block, const PairBlock& ahead, const int* counts, const Shape& s, const PairRows& rows, int row) {
  alignas(64) float scores[R][kKeyBlock];
  alignas(64) uint16_t weights[R][kKeyBlock];
  const int most = counts[R - 1], padded = (most + 2 * kChunk - 1) / (2 * kChunk) * (2 * kChunk);
  const uint16_t* const* q = rows.queries + row;
  switch ((most + kChunk - 1) / kChunk) {
    case 1: score_chunks<R, 1, kFetches>(q, block, ahead, s, scores); break;
    case 2: score_chunks<R, 2, kFetches>(q, block, ahead, s, scores); break;
    case 3: score_chunks<R, 3, kFetches>(q, block, ahead, s, scores); break;
    default: score_chunks<R, 4, kFetches>(q, block, ahead, s, scores);
  }
  for (int r = 0; r < R && counts[r] < padded; ++r) hide(scores[r], counts[r], padded);
  const __m512 found = padded == kKeyBlock ? weigh_pairs<R, kChunks>(scores, weights) : weigh_pairs<R, kChunks / 2>(scores, weights);
  alignas(64) float pairs[2 * 8];
  if (rows.parts) {
    const size_t size = part_size(s.head_dim);
    float* part = rows.parts + row * size;
    _mm512_store_ps(pairs, found);
    for (int r = 0; r < R; ++r) std::memcpy(part + r * size, pairs + 2 * r, sizeof(RowState));
    mix_all_chunks<R, kFetches>(weights, block, ahead, counts, s.head_dim,
                      [&](int r, int d, __m512 sum) { _mm512_storeu_ps(part + r * size + kPartHeader + d, sum); });
    return;
  }
  _mm512_store_ps(pairs, merge_pair_states(rows.states + row, R, found));
  mix_all_chunks<R, kFetches>(weights, block, ahead, counts, s.head_dim, [&](int r, int d, __m512 sum) {
    float* to = rows.values[row + r] + d;
    const __m512 scaled = _mm512_mul_ps(sum, _mm512_set1_ps(pairs[2 * r + 1]));
    _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_loadu_ps(to), _mm512_set1_ps(pairs[2 * r]), scaled));
  });
}

// A tile of `size` rows, at most kPairRows.
template <bool kFetches, int R = kPairRows>
inline void see_tile_of_pairs(int size, const PairBlock& block, const PairBlock& ahead, const int* counts, const Shape& s, const PairRows& rows, int row) {
  if (size == R) return see_pairs_of<R, kFetches>(block, ahead, counts, s, rows, row);
  if constexpr (R > 1) see_tile_of_pairs<kFetches, R - 1>(size, block, ahead, counts, s, rows, row);
}

// Rows in tiles of rising sight; the first of them fetches what comes next.
inline void see_pairs(const PairBlock& block, const PairBlock& ahead, int index, const Shape& s, const PairRows& rows) {
  const auto seen = [&](int row) { return std::min(kKeyBlock, rows.num_visible[row] - index * kKeyBlock); };
  bool is_first = true;
  for (int row = 0, size; row < rows.num_rows; row += size) {
    int counts[kPairRows] = {seen(row)};
    for (size = 1; size < kPairRows && row + size < rows.num_rows && seen(row + size) >= counts[size - 1]; ++size) counts[size] = seen(row + size);
    if (counts[0] <= 0) size = 1;
    else if (is_first) see_tile_of_pairs<true>(size, block, ahead, counts, s, rows, row);
    else see_tile_of_pairs<false>(size, block, ahead, counts, s, rows, row);
    if (counts[0] > 0) is_first = false;
  }
}

inline __m256i rounded_pairs(const float* x) { return (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x)); }

// x [head_dim] rounded.
inline void round_to_pairs(const float* x, int head_dim, uint16_t* to) {
  for (int d = 0; d < head_dim; d += kChunk) _mm256_storeu_si256((__m256i*)(to + d), rounded_pairs(x + d));
}

// A head's key and value into the cells of one token; see above. The cells of its neighbour may be written at the same time.
inline void store_pairs(const float* key, const float* value, const Shape& s, uint16_t* layer_keys, uint16_t* layer_values, int64_t slot, int head) {
  const int offset = int(slot % s.page_size), head_dim = s.head_dim;
  const size_t cells = (cell_of(s, slot / s.page_size, 0) + size_t(head) * s.page_size) * head_dim, stride = size_t(s.page_size) * 2;
  uint16_t* keys = layer_keys + cells + size_t(offset) * 2;
  uint16_t* values = layer_values + cells + size_t(offset / 2) * 2 * head_dim;
  for (int d = 0; d < head_dim; d += kChunk) {
    alignas(32) uint16_t rounded[kChunk];
    _mm256_store_si256((__m256i*)rounded, rounded_pairs(key + d));
#pragma GCC unroll 8
    for (int i = 0; i < kChunk; i += 2, keys += stride) std::memcpy(keys, rounded + i, 4);
    const __m512i words = _mm512_cvtepu16_epi32(rounded_pairs(value + d));
    if (offset % 2) _mm512_mask_storeu_epi16(values + 2 * d, 0xaaaaaaaa, _mm512_slli_epi32(words, 16));
    else _mm512_mask_storeu_epi16(values + 2 * d, 0x55555555, words);
  }
}

#else

inline bool takes_pairs(const Shape&) { return false; }
inline void merge_pair_state(RowState& state, RowState block, float* factors) { merge_state(state, block, factors); }

#endif
}  // namespace RADIX_ISA
