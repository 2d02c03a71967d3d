// Attention by products of groups of numbers (AVX-512): what is the same whether the pool holds bfloat16 (`attention_pairs.inl`) or codes
// (`attention_codes.inl`). A `Format` says how numbers lie, are multiplied and rounded.
//
// The contract is that of `attention.inl`. A score is one chain of products, over groups of dimensions; a mixed value one chain over groups of keys,
// whatever is computed beside it. So that both read memory as it lies, the cells of a page are not one token after another. With groups of G:
//
//     keys     [page][head][dimension / G][token of the page][G]       16 keys' groups fill a register
//     values   [page][head][token of the page / G][dimension][G]       a group of tokens, 16 dimensions a register
//     scales   [page][head][token of the page]                         of codes
//
// A page has the size that it has otherwise, and its heads lie where they lay; only whole pages can be copied. What stands in the cells of
// tokens that a row does not see may be anything: their scores are replaced, and their values are not multiplied, or finite and by 0.
//
// Scores are powers of two: queries are scaled so. A block's maximum is rounded up to a whole number, so that factors between blocks are exact. Weights
// are rounded below that or, where they have no exponents of their own, below the maximum itself: then sums and mixed values have a unit.
namespace RADIX_ISA {

// Rows of one key/value head; see RowsOfHead.
struct ChunkRows {
  const uint8_t* const* queries;  // as the format rounds them
  const int* num_visible;
  RowState* states;
  float* const* values;
  int num_rows;
  float* parts;
};

#if defined(__AVX512VNNI__)

constexpr int kChunk = 16;     // keys of a register
constexpr int kChunks = kKeyBlock / kChunk;
constexpr int kChunkRows = 6;  // rows of a tile: 24 sums, 4 registers of keys or values, and a row's group

inline bool fits_chunks(const Shape& s) { return s.page_size % kChunk == 0 && s.head_dim % kChunk == 0; }

inline void fetch_line(const void* p) { __builtin_prefetch(p, 0, 2); }

// Up to 64 keys and values of one head, in chunks of 16; the chunks of the block that comes next are fetched meanwhile.
template <class Format>
struct ChunkBlock {
  using Stored = typename Format::Stored;
  const Stored* keys[kChunks] = {};
  const Stored* values[kChunks] = {};
  const float* key_scales[kChunks] = {};
  const float* value_scales[kChunks] = {};
  int num_chunks = 0;

  // Of block `index` of a sequence with these pages, of which `num_visible` keys are seen.
  void find(const Shape& s, const PoolOfLayer<Stored>& pool, const int32_t* pages, int head, int index, int num_visible) {
    const int first = index * kKeyBlock, count = std::clamp(num_visible - first, 0, kKeyBlock);
    num_chunks = (count + kChunk - 1) / kChunk;
    for (int c = 0; c < num_chunks; ++c) {
      const int at = first + c * kChunk, offset = at % s.page_size;
      const size_t cell = cell_of(s, pages[at / s.page_size], 0) + size_t(head) * s.page_size;
      keys[c] = pool.keys + cell * s.head_dim + size_t(offset) * Format::kGroupSize;
      values[c] = pool.values + cell * s.head_dim + size_t(offset) * s.head_dim;
      if (!pool.key_scales) continue;
      key_scales[c] = pool.key_scales + cell + offset;
      value_scales[c] = pool.value_scales + cell + offset;
      fetch_line(key_scales[c]), fetch_line(value_scales[c]);
    }
  }
};

// Four bytes in every lane.
inline __m512i all_groups(const void* group) {
  int32_t word;
  std::memcpy(&word, group, 4);
  return _mm512_set1_epi32(word);
}

// Scores of keys that a row does not see, from `count` to `padded`, become minus infinity.
inline void hide(float* scores, int count, int padded) {
  for (int k = count / kChunk * kChunk; k < padded; k += kChunk)
    _mm512_mask_storeu_ps(scores + k, __mmask16(0xffffu << std::max(count - k, 0)), _mm512_set1_ps(-INFINITY));
}

// kOne * 2^x for x <= 0, to 2^-13 of it: the rounding behind keeps 2^-9. What is no number stays none.
template <int kOne, int N>
inline void two_to_below_one(__m512 (&x)[N]) {
  const auto each = [](auto step) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) step(i);
  };
  const auto coefficient = [](float c) { return _mm512_set1_ps(c * kOne); };  // of all cubic polynomials the least relative error on -1/2 .. 1/2
  __m512 n[N], p[N];
  each([&](int i) { x[i] = _mm512_max_ps(_mm512_set1_ps(-200.0f), x[i]); });  // so far below, and at minus infinity, the rounded result is 0
  each([&](int i) { n[i] = _mm512_roundscale_ps(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); });
  each([&](int i) { x[i] = _mm512_sub_ps(x[i], n[i]); });
  each([&](int i) { p[i] = _mm512_fmadd_ps(coefficient(5.5171669e-2f), x[i], coefficient(2.4261112e-1f)); });
  each([&](int i) { p[i] = _mm512_fmadd_ps(p[i], x[i], coefficient(6.9326099e-1f)); });
  each([&](int i) { p[i] = _mm512_fmadd_ps(p[i], x[i], coefficient(9.9992807e-1f)); });
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

// What R rows found in a block: their states side by side, and the unit of the values mixed with their weights.
struct FoundInBlock {
  __m512 states, units;
};

// Scores of R rows become rounded weights.
template <class Format, int R, int C>
inline FoundInBlock weigh_rows(const float (*scores)[kKeyBlock], const typename Format::Facts& facts, typename Format::Weight (*weights)[kKeyBlock]) {
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
  _mm512_store_ps(maxima, Format::kWeighsBelowMaximum ? most : highest);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) rows[r] = Format::template weigh<C>(scores[r], _mm512_set1_ps(maxima[2 * r]), facts, weights[r]);
  __m512 sums = across<R>(rows, [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); }), units[1] = {_mm512_set1_ps(1.0f)};
  if (Format::kWeighsBelowMaximum) {
    units[0] = _mm512_sub_ps(most, highest);
    two_to_below_one<1>(units);
    sums = _mm512_mul_ps(sums, units[0]);
  }
  return {_mm512_mask_mov_ps(highest, kSums, sums), units[0]};
}

// The states of `count` <= 8 rows become those with a block's beside them; returns the factors of both, alternating.
inline __m512 merge_chunk_states(RowState* states, int count, __m512 block) {
  const __mmask16 lanes = __mmask16((1u << 2 * count) - 1);
  const __m512 one = _mm512_set1_ps(1.0f), old = _mm512_maskz_loadu_ps(lanes, states);
  const __m512 old_maxima = _mm512_moveldup_ps(old), maxima = _mm512_moveldup_ps(block), highest = _mm512_max_ps(old_maxima, maxima);
  const __m512 of_old = _mm512_scalef_ps(one, _mm512_sub_ps(old_maxima, highest)), of_block = _mm512_scalef_ps(one, _mm512_sub_ps(maxima, highest));
  const __m512 sums = _mm512_fmadd_ps(old, of_old, _mm512_mul_ps(block, of_block));
  _mm512_mask_storeu_ps(states, lanes, _mm512_mask_mov_ps(highest, kSums, sums));
  return _mm512_mask_mov_ps(of_old, kSums, of_block);
}

inline void merge_chunk_state(RowState& state, RowState block, float* factors) {
  const __m512 both = merge_chunk_states(&state, 1, _mm512_castps128_ps512(_mm_setr_ps(block.maximum, block.sum, 0.0f, 0.0f)));
  std::memcpy(factors, &both, 2 * sizeof(float));
}

template <class Format, int R, bool kFetches, class Put>
inline void mix_all_chunks(const typename Format::Weight (*weights)[kKeyBlock], const ChunkBlock<Format>& block, const ChunkBlock<Format>& ahead, const int* counts,
                           int head_dim, Put put) {
  int d = 0;
  for (; d + 4 * kChunk <= head_dim; d += 4 * kChunk) Format::template mix<R, 4, kFetches>(weights, block, ahead, counts, head_dim, d, put);
  for (; d < head_dim; d += kChunk) Format::template mix<R, 1, kFetches>(weights, block, ahead, counts, head_dim, d, put);
}

// Let R rows from `row` on see the first `counts` keys of a block, which do not fall from row to row.
template <class Format, int R, bool kFetches>
__attribute__((noinline)) void see_tile_of_chunks(const ChunkBlock<Format>& block, const ChunkBlock<Format>& ahead, const typename Format::Facts& facts, const int* counts,
                                                  const Shape& s, const ChunkRows& rows, int row) {
  alignas(64) float scores[R][kKeyBlock];
  alignas(64) typename Format::Weight weights[R][kKeyBlock];
  const int most = counts[R - 1], padded = (most + 2 * kChunk - 1) / (2 * kChunk) * (2 * kChunk);
  const uint8_t* const* q = rows.queries + row;
  switch ((most + kChunk - 1) / kChunk) {
    case 1: Format::template score<R, 1, kFetches>(q, block, ahead, facts, s, scores); break;
    case 2: Format::template score<R, 2, kFetches>(q, block, ahead, facts, s, scores); break;
    case 3: Format::template score<R, 3, kFetches>(q, block, ahead, facts, s, scores); break;
    default: Format::template score<R, 4, kFetches>(q, block, ahead, facts, s, scores);
  }
  for (int r = 0; r < R && counts[r] < padded; ++r) hide(scores[r], counts[r], padded);
  const FoundInBlock found = padded == kKeyBlock ? weigh_rows<Format, R, kChunks>(scores, facts, weights) : weigh_rows<Format, R, kChunks / 2>(scores, facts, weights);
  alignas(64) float pairs[2 * 8], units[2 * 8];
  if (rows.parts) {
    const size_t size = part_size(s.head_dim);
    float* part = rows.parts + row * size;
    _mm512_store_ps(pairs, found.states);
    _mm512_store_ps(units, found.units);
    for (int r = 0; r < R; ++r) std::memcpy(part + r * size, pairs + 2 * r, sizeof(RowState));
    mix_all_chunks<Format, R, kFetches>(weights, block, ahead, counts, s.head_dim, [&](int r, int d, __m512 sum) {
      _mm512_storeu_ps(part + r * size + kPartHeader + d, _mm512_mul_ps(sum, _mm512_set1_ps(units[2 * r])));
    });
    return;
  }
  const __m512 factors = merge_chunk_states(rows.states + row, R, found.states);
  _mm512_store_ps(pairs, _mm512_mask_mul_ps(factors, kSums, factors, found.units));
  mix_all_chunks<Format, R, kFetches>(weights, block, ahead, counts, s.head_dim, [&](int r, int d, __m512 sum) {
    float* to = rows.values[row + r] + d;
    const __m512 scaled = _mm512_mul_ps(sum, _mm512_set1_ps(pairs[2 * r + 1]));
    _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_loadu_ps(to), _mm512_set1_ps(pairs[2 * r]), scaled));
  });
}

// A tile of `size` rows, at most kChunkRows.
template <class Format, bool kFetches, int R = kChunkRows>
inline void see_some_of_chunks(int size, const ChunkBlock<Format>& block, const ChunkBlock<Format>& ahead, const typename Format::Facts& facts, const int* counts,
                               const Shape& s, const ChunkRows& rows, int row) {
  if (size == R) return see_tile_of_chunks<Format, R, kFetches>(block, ahead, facts, counts, s, rows, row);
  if constexpr (R > 1) see_some_of_chunks<Format, kFetches, R - 1>(size, block, ahead, facts, counts, s, rows, row);
}

// Rows in tiles of rising sight; the first of them fetches what comes next.
template <class Format>
inline void see_chunks(const ChunkBlock<Format>& block, const ChunkBlock<Format>& ahead, int index, const Shape& s, const ChunkRows& rows) {
  const auto seen = [&](int row) { return std::min(kKeyBlock, rows.num_visible[row] - index * kKeyBlock); };
  const typename Format::Facts facts(block);
  bool is_first = true;
  for (int row = 0, size; row < rows.num_rows; row += size) {
    int counts[kChunkRows] = {seen(row)};
    for (size = 1; size < kChunkRows && row + size < rows.num_rows && seen(row + size) >= counts[size - 1]; ++size) counts[size] = seen(row + size);
    if (counts[0] <= 0) size = 1;
    else if (is_first) see_some_of_chunks<Format, true>(size, block, ahead, facts, counts, s, rows, row);
    else see_some_of_chunks<Format, false>(size, block, ahead, facts, counts, s, rows, row);
    if (counts[0] > 0) is_first = false;
  }
}

#else

inline void merge_chunk_state(RowState& state, RowState block, float* factors) { merge_state(state, block, factors); }

#endif
}  // namespace RADIX_ISA
