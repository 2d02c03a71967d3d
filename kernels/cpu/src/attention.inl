// Paged attention in the order of the exactness contract: keys in blocks of 64 aligned to absolute position; each block gives its own
// (max, sum, values), and blocks merge left to right. A row's result is the same in prefill, decode and prefix-shared decode, whatever
// is computed beside it: rows are taken three at a time so that a key loaded once serves all three, but each row's sums are its own.
// Online softmax: Milakov and Gimelshein 2018.
namespace RADIX_ISA {

constexpr int kKeyBlock = 64;
constexpr int kTileRows = 3;  // rows of 4 keys each: 12 sums in registers, 7 loads for 12 products
constexpr int kPanelRows = 8;  // from so many rows on, a block is turned into floats once instead of at every load

// What a row (one query of one head) has seen so far: running maximum, sum and weighted values (which lie elsewhere).
struct RowState {
  float maximum, sum;
};

inline void begin_row(RowState& state, float* values, int head_dim) {
  state = {-INFINITY, 0.0f};
  std::memset(values, 0, size_t(head_dim) * 4);
}

// The row's values divided by its sum, in place.
inline void end_row(const RowState& state, float* values, int head_dim) {
  const F8 sum = all8(state.sum);
  for (int d = 0; d < head_dim; d += 8) store8(values + d, div(load8(values + d), sum));
}

// Factors of what was seen and of a block beside it, for each of R rows; a state becomes that of both.
template <int R>
inline void merge_states(RowState* states, const RowState* blocks, float (*factors)[2]) {
  constexpr int kPowers = (2 * R + 7) / 8 * 8;
  float powers[kPowers] = {}, highest[R];
  for (int r = 0; r < R; ++r) {
    highest[r] = std::max(states[r].maximum, blocks[r].maximum);
    powers[2 * r] = states[r].maximum - highest[r];
    powers[2 * r + 1] = blocks[r].maximum - highest[r];
  }
  for (int i = 0; i < kPowers; i += 8) store8(powers + i, exp8(load8(powers + i)));
  for (int r = 0; r < R; ++r) {
    states[r] = {highest[r], fma1(states[r].sum, powers[2 * r], blocks[r].sum * powers[2 * r + 1])};
    factors[r][0] = powers[2 * r], factors[r][1] = powers[2 * r + 1];
  }
}

inline void merge_state(RowState& state, RowState block, float* factors) {
  float both[1][2];
  merge_states<1>(&state, &block, both);
  factors[0] = both[0][0], factors[1] = both[0][1];
}

inline void merge_values(float* out, F8 block, const float* factors) {
  store8(out, fma8(load8(out), all8(factors[0]), mul(block, all8(factors[1]))));
}

// Up to 64 keys and values of one head, each at its own place. Keys of int8 count times their scale, values likewise. What lies at `ahead`
// is fetched into the cache meanwhile.
template <class Stored>
struct KeyBlock {
  const Stored* keys[kKeyBlock];
  const Stored* values[kKeyBlock];
  float key_scales[kKeyBlock], value_scales[kKeyBlock];
  bool is_scaled = false;
  const KeyBlock* ahead = nullptr;
  int num_ahead = 0;
};

template <class Stored>
inline void fetch(const Stored* row, int head_dim) {
  for (int d = 0; d < head_dim; d += 64 / int(sizeof(Stored))) __builtin_prefetch(row + d);
}

// scores[r][k] = q[r] . keys[k]: eight sums over every eighth dimension, added as in `sum_of`.
template <class Stored, int R>
inline void score_rows(const float* const* q, const KeyBlock<Stored>& block, int count, int head_dim, float (*scores)[kKeyBlock]) {
  const Stored* const* keys = block.keys;
  for (int k = 0; k < count; k += 8) {
    F8 sums[R][8];
    if (block.ahead)
      for (int i = k; i < std::min(k + 8, block.num_ahead); ++i) fetch(block.ahead->keys[i], head_dim);
    for (int half = 0; half < 8; half += 4) {
      const Stored* key[4];
      for (int i = 0; i < 4; ++i) key[i] = keys[std::min(k + half + i, count - 1)];
      F8 total[R][4];
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < R; ++r) total[r][i] = zero8();
      for (int d = 0; d < head_dim; d += 8) {
        F8 x[R];
        for (int r = 0; r < R; ++r) x[r] = load8(q[r] + d);
        for (int i = 0; i < 4; ++i) {
          const F8 y = load8(key[i] + d);
          for (int r = 0; r < R; ++r) total[r][i] = fma8(x[r], y, total[r][i]);
        }
      }
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < R; ++r) sums[r][half + i] = total[r][i];
    }
    for (int r = 0; r < R; ++r) store8(scores[r] + k, sums_of(sums[r]));
  }
}

// Scores of one row become weights e^(score - maximum), times the scales of the values; returns the maximum and the sum without scales.
template <class Stored>
inline RowState weigh(const KeyBlock<Stored>& block, float* scores, int count) {
  const int padded = (count + 7) & ~7;
  if (block.is_scaled)
    for (int k = 0; k < padded; k += 8) store8(scores + k, mul(load8(scores + k), load8(block.key_scales + k)));
  for (int k = count; k < padded; ++k) scores[k] = -INFINITY;
  F8 most = load8(scores);
  for (int k = 8; k < padded; k += 8) most = max8(most, load8(scores + k));
  const float maximum = max_of(most);
  F8 total = zero8();
  for (int k = 0; k < padded; k += 8) {
    const F8 weight = exp8(sub(load8(scores + k), all8(maximum)));
    store8(scores + k, block.is_scaled ? mul(weight, load8(block.value_scales + k)) : weight);
    total = add(total, weight);
  }
  return {maximum, sum_of(total)};
}

// put(r, d, sum over k of weights[r][k] * values[k][d .. d + 8]), in the order of the keys.
template <class Stored, int R, int kVectors, class Put>
inline void mix_rows(const float (*weights)[kKeyBlock], const KeyBlock<Stored>& block, int count, int head_dim, int d, Put put) {
  const Stored* const* values = block.values;
  F8 total[R][kVectors];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < kVectors; ++i) total[r][i] = zero8();
  for (int k = 0; k < count; ++k) {
    if (block.ahead && d == 0 && k < block.num_ahead) fetch(block.ahead->values[k], head_dim);
    F8 weight[R];
    for (int r = 0; r < R; ++r) weight[r] = all8(weights[r][k]);
    for (int i = 0; i < kVectors; ++i) {
      const F8 x = load8(values[k] + d + 8 * i);
      for (int r = 0; r < R; ++r) total[r][i] = fma8(weight[r], x, total[r][i]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < kVectors; ++i) put(r, d + 8 * i, total[r][i]);
}

template <class Stored, int R, class Put>
inline void mix_all(const float (*weights)[kKeyBlock], const KeyBlock<Stored>& block, int count, int head_dim, Put put) {
  int d = 0;
  for (; d + 32 <= head_dim; d += 32) mix_rows<Stored, R, 4>(weights, block, count, head_dim, d, put);
  for (; d < head_dim; d += 8) mix_rows<Stored, R, 1>(weights, block, count, head_dim, d, put);
}

// Rows of one key/value head: queries, number of keys each sees, states and values. With `parts`, a block's result is not merged but kept:
// that of row i at parts + i * part_size(head_dim).
struct RowsOfHead {
  const float* const* queries;
  const int* num_visible;
  RowState* states;
  float* const* values;
  int num_rows;
  float* parts;
};

constexpr int kPartHeader = 8;  // floats before a part's values: its state

inline size_t part_size(int head_dim) { return size_t(head_dim) + kPartHeader; }

// Let R rows from `row` on see `count` keys of a block.
template <class Stored, int R>
inline void see_tile(const KeyBlock<Stored>& block, int count, int head_dim, const RowsOfHead& rows, int row) {
  float scores[R][kKeyBlock];
  score_rows<Stored, R>(rows.queries + row, block, count, head_dim, scores);
  if (rows.parts) {
    const size_t size = part_size(head_dim);
    float* part = rows.parts + row * size;
    for (int r = 0; r < R; ++r) {
      const RowState seen = weigh(block, scores[r], count);
      std::memcpy(part + r * size, &seen, sizeof(seen));
    }
    mix_all<Stored, R>(scores, block, count, head_dim, [&](int r, int d, F8 sum) { store8(part + r * size + kPartHeader + d, sum); });
    return;
  }
  RowState found[R];
  for (int r = 0; r < R; ++r) found[r] = weigh(block, scores[r], count);
  float factors[R][2];
  merge_states<R>(rows.states + row, found, factors);
  mix_all<Stored, R>(scores, block, count, head_dim, [&](int r, int d, F8 sum) { merge_values(rows.values[row + r] + d, sum, factors[r]); });
}

// Rows in tiles of equal sight.
template <class Stored>
inline void see_block(const KeyBlock<Stored>& block, int index, int head_dim, const RowsOfHead& rows) {
  const auto seen = [&](int row) { return std::min(kKeyBlock, rows.num_visible[row] - index * kKeyBlock); };
  for (int row = 0, size; row < rows.num_rows; row += size) {
    const int count = seen(row);
    for (size = 1; size < kTileRows && row + size < rows.num_rows && seen(row + size) == count; ++size) {
    }
    if (count <= 0) continue;
    if (size == 3) see_tile<Stored, 3>(block, count, head_dim, rows, row);
    else if (size == 2) see_tile<Stored, 2>(block, count, head_dim, rows, row);
    else see_tile<Stored, 1>(block, count, head_dim, rows, row);
  }
}

template <class Kv>
inline void to_floats(const Kv* const* from, int count, int head_dim, float* panel, const float** rows, const Kv* const* ahead, int num_ahead) {
  for (int k = 0; k < count; ++k, panel += head_dim) {
    if (k < num_ahead) fetch(ahead[k], head_dim);
    for (int d = 0; d < head_dim; d += 8) store8(panel + d, load8(from[k] + d));
    rows[k] = panel;
  }
}

// Let rows see a block. `panel`: room for 2 * 64 * head_dim floats.
template <class Kv>
inline void see(const KeyBlock<Kv>& block, int index, int count, int head_dim, const RowsOfHead& rows, float* panel) {
  if (rows.num_rows < kPanelRows) return see_block(block, index, head_dim, rows);
  KeyBlock<float> floats;
  to_floats(block.keys, count, head_dim, panel, floats.keys, block.ahead->keys, block.num_ahead);
  to_floats(block.values, count, head_dim, panel + size_t(kKeyBlock) * head_dim, floats.values, block.ahead->values, block.num_ahead);
  if ((floats.is_scaled = block.is_scaled)) {
    std::memcpy(floats.key_scales, block.key_scales, sizeof(floats.key_scales));
    std::memcpy(floats.value_scales, block.value_scales, sizeof(floats.value_scales));
  }
  see_block(floats, index, head_dim, rows);
}

// The cell of head 0 of a token's key, in layer 0.
inline size_t cell_of(const Shape& s, int64_t page, int offset) { return size_t(page) * s.page_cells + size_t(offset) * s.num_kv_heads; }

// The tokens of a block: where their cells begin, in any layer.
struct Slots {
  int count;
  size_t at[kKeyBlock];

  // Block `index` of a sequence with these pages, of which `num_visible` keys are seen.
  void find(const Shape& s, const int32_t* pages, int index, int num_visible) {
    const int first = index * kKeyBlock;
    count = std::clamp(num_visible - first, 0, kKeyBlock);
    for (int k = 0; k < count; ++k) at[k] = cell_of(s, pages[(first + k) / s.page_size], (first + k) % s.page_size);
  }
};

// Keys and values of one layer's pool.
template <class Kv>
struct PoolOfLayer {
  Kv *keys, *values;
  float *key_scales, *value_scales;  // of each cell, or null
  int num_heads, head_dim;

  PoolOfLayer(const Weights& w, int layer) : num_heads(w.shape.num_kv_heads), head_dim(w.shape.head_dim) {
    const size_t first = size_t(layer) * w.shape.layer_cells, side = w.shape.side_cells;
    keys = (Kv*)w.kv + first * head_dim;
    values = keys + side * head_dim;
    key_scales = w.kv_scales ? w.kv_scales + first : nullptr;
    value_scales = key_scales + (key_scales ? side : 0);
  }

  void find(const Slots& slots, int head, KeyBlock<Kv>& block) const {
    for (int k = 0; k < slots.count; ++k) {
      const size_t cell = slots.at[k] + head;
      block.keys[k] = keys + cell * head_dim;
      block.values[k] = values + cell * head_dim;
      if (key_scales) {
        block.key_scales[k] = key_scales[cell];
        block.value_scales[k] = value_scales[cell];
      }
    }
    block.is_scaled = key_scales != nullptr;
  }

  // The part-th of `parts` parts of a block of heads first_head .. first_head + parts, in the order of the pool's memory; returns its size.
  int find_ahead(const Slots& slots, int first_head, int part, int parts, KeyBlock<Kv>& block) const {
    const int begin = part * kKeyBlock, count = std::clamp(slots.count * parts - begin, 0, kKeyBlock);
    for (int k = 0; k < count; ++k) {
      const size_t cell = slots.at[(begin + k) / parts] + first_head + (begin + k) % parts;
      block.keys[k] = keys + cell * head_dim;
      block.values[k] = values + cell * head_dim;
    }
    return count;
  }
};

}  // namespace RADIX_ISA
