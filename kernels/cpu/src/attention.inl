// Paged attention in the order of the exactness contract: keys in blocks of 64 aligned to absolute position; each block gives its own
// (max, sum, values), and blocks merge left to right. A row's result is the same in prefill, decode and prefix-shared decode, whatever
// is computed beside it. Online softmax: Milakov and Gimelshein 2018.
namespace RADIX_ISA {

constexpr int kKeyBlock = 64;
constexpr int kMaxHead = 256;

// What a row (one query of one head) has seen so far: running maximum, sum and weighted values.
struct RowState {
  float maximum, sum;
};

inline void begin_row(RowState& state, float* values, int head_dim) {
  state = {-INFINITY, 0.0f};
  std::memset(values, 0, size_t(head_dim) * 4);
}

template <class Kv>
inline void score_keys(const float* q, const Kv* const* keys, int count, int head_dim, float* scores) {
  for (int k = 0; k < count; k += 8) {
    F8 sums[8];
    for (int i = 0; i < 8; ++i) {
      const Kv* key = keys[std::min(k + i, count - 1)];
      F8 total = mul(load8(q), load8(key));
      for (int d = 8; d < head_dim; d += 8) total = fma8(load8(q + d), load8(key + d), total);
      sums[i] = total;
    }
    store8(scores + k, sums_of(sums));
  }
}

template <class Kv, int kVectors>
inline void mix_values(const float* weights, const Kv* const* values, int count, float* out) {
  F8 total[kVectors];
  for (int i = 0; i < kVectors; ++i) total[i] = zero8();
  for (int k = 0; k < count; ++k) {
    const F8 weight = all8(weights[k]);
    for (int i = 0; i < kVectors; ++i) total[i] = fma8(weight, load8(values[k] + 8 * i), total[i]);
  }
  for (int i = 0; i < kVectors; ++i) store8(out + 8 * i, total[i]);
}

template <class Kv>
inline void mix_any(const float* weights, const Kv* const* values, int count, int head_dim, float* out) {
  if (head_dim == 64) return mix_values<Kv, 8>(weights, values, count, out);
  const Kv* shifted[kKeyBlock];
  for (int d = 0; d < head_dim; d += 8) {
    for (int k = 0; k < count; ++k) shifted[k] = values[k] + d;
    mix_values<Kv, 1>(weights, shifted, count, out + d);
  }
}

// Let one row see `count` keys of one block.
template <class Kv>
inline void see_block(const float* q, const Kv* const* keys, const Kv* const* values, int count, int head_dim, RowState& state, float* out) {
  float scores[kKeyBlock], block_values[kMaxHead];
  score_keys(q, keys, count, head_dim, scores);
  const int padded = (count + 7) & ~7;
  for (int k = count; k < padded; ++k) scores[k] = -INFINITY;
  F8 most = load8(scores);
  for (int k = 8; k < padded; k += 8) most = max8(most, load8(scores + k));
  const float maximum = max_of(most);
  F8 total = zero8();
  for (int k = 0; k < padded; k += 8) {
    const F8 weight = exp8(sub(load8(scores + k), all8(maximum)));
    store8(scores + k, weight);
    total = add(total, weight);
  }
  mix_any(scores, values, count, head_dim, block_values);
  const float highest = std::max(state.maximum, maximum);
  float factors[8] = {state.maximum - highest, maximum - highest, 0, 0, 0, 0, 0, 0};
  store8(factors, exp8(load8(factors)));
  state.sum = fma1(state.sum, factors[0], sum_of(total) * factors[1]);
  state.maximum = highest;
  for (int d = 0; d < head_dim; d += 8)
    store8(out + d, fma8(load8(out + d), all8(factors[0]), mul(load8(block_values + d), all8(factors[1]))));
}

// Rows of one key/value head, each with the number of keys it sees, its state and its values; `pages` belongs to all of them.
struct RowsOfHead {
  const float* const* queries;
  const int* num_visible;
  RowState* states;
  float* const* values;
  int num_rows;
};

template <class Kv>
inline void see_blocks(const Weights& w, int layer, int kv_head, const int32_t* pages, int first_block, int last_block, const RowsOfHead& rows) {
  const Shape& s = w.shape;
  const size_t slot_size = size_t(s.num_kv_heads) * s.head_dim;
  const Kv* keys = (const Kv*)w.kv + size_t(layer) * 2 * s.num_slots * slot_size + size_t(kv_head) * s.head_dim;
  const Kv* values = keys + size_t(s.num_slots) * slot_size;
  int most = 0;
  for (int i = 0; i < rows.num_rows; ++i) most = std::max(most, rows.num_visible[i]);
  for (int block = first_block; block < last_block; ++block) {
    const int first = block * kKeyBlock, count = std::min(kKeyBlock, most - first);
    if (count <= 0) return;
    const Kv *block_keys[kKeyBlock], *block_values[kKeyBlock];
    for (int k = 0; k < count; ++k) {
      const size_t slot = size_t(pages[(first + k) / s.page_size]) * s.page_size + (first + k) % s.page_size;
      block_keys[k] = keys + slot * slot_size;
      block_values[k] = values + slot * slot_size;
    }
    for (int i = 0; i < rows.num_rows; ++i) {
      const int visible = std::min(count, rows.num_visible[i] - first);
      if (visible > 0)
        see_block(rows.queries[i], block_keys, block_values, visible, s.head_dim, rows.states[i], rows.values[i]);
    }
  }
}

// The row's values divided by its sum, in place.
inline void end_row(const RowState& state, float* values, int head_dim) {
  const F8 sum = all8(state.sum);
  for (int d = 0; d < head_dim; d += 8) store8(values + d, div(load8(values + d), sum));
}

}  // namespace RADIX_ISA
