// From logits to tokens, a row at a time: the steps of runtime/sampler.py in its order, truncation as in sampler_truncation.py, noise as in
// sampling_noise.py (their texts name the sources). A row's result depends on nothing but the row; members of the pool take rows in turn.
namespace RADIX_ISA {

constexpr float kNoFloat = -3.402823466e38f;
constexpr float kMaxNoise = 22.9f;  // -log(-log1p(-2^-33)) = 22.874, the word 0
constexpr double kSlack = 1e-3;     // log-space margin of the bounds that only narrow the search
constexpr int kHalvings = 64;

struct Best {
  int id;
  float score;  // not a number when any score of the row is not
};

// The best score and the lowest id that has it.
inline Best best_of(const float* x, int n) {
  float best = -INFINITY;
  bool is_odd = false;
  int i = 0;
#if defined(__AVX2__)
  __m256 top = _mm256_set1_ps(best), odd = _mm256_setzero_ps();
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    top = _mm256_max_ps(v, top);  // keeps `top` where v is not a number
    odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
  best = max_of({top});
  is_odd = _mm256_movemask_ps(odd) != 0;
#endif
  for (; i < n; ++i) {
    is_odd |= x[i] != x[i];
    best = x[i] > best ? x[i] : best;
  }
  if (is_odd) return {0, NAN};
  i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    const int hits = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(best), _CMP_EQ_OQ));
    if (hits) return {i + __builtin_ctz(unsigned(hits)), best};
  }
#endif
  while (i < n - 1 && x[i] != best) ++i;
  return {i, best};
}

// take(i) for every score of at least `bound`, in order.
template <class Take>
inline void each_at_least(const float* x, int n, float bound, Take&& take) {
  int i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    unsigned hits = unsigned(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(bound), _CMP_GE_OQ)));
    for (; hits; hits &= hits - 1) take(i + __builtin_ctz(hits));
  }
#endif
  for (; i < n; ++i)
    if (x[i] >= bound) take(i);
}

// Sum of e^(x - shift): single precision within 512 numbers, double beyond.
inline double exp_sum(const float* x, int n, float shift) {
  double total = 0;
  for (int begin = 0; begin < n; begin += 512) {
    const int end = std::min(n, begin + 512);
    F8 sum = zero8();
    int i = begin;
    for (; i + 8 <= end; i += 8) sum = add(sum, exp8(sub(load8(x + i), all8(shift))));
    if (i < end) {
      float rest[8];
      for (int j = 0; j < 8; ++j) rest[j] = i + j < end ? x[i + j] : -INFINITY;
      sum = add(sum, exp8(sub(load8(rest), all8(shift))));
    }
    total += sum_of(sum);
  }
  return total;
}

// ------------------------------------------------------------------------------------------------ noise

struct NoiseKey {
  uint32_t seed_low, seed_high, position, choice;
};

// Words of the counters first .. first + 7: token 4 (first + i) + lane has words[lane][i].
inline void philox(const NoiseKey& key, uint32_t first, uint32_t words[4][8]) {
  uint32_t k0 = key.seed_low, k1 = key.seed_high;
  uint32_t *c0 = words[0], *c1 = words[1], *c2 = words[2], *c3 = words[3];
  for (int i = 0; i < 8; ++i) c0[i] = first + uint32_t(i), c1[i] = key.position, c2[i] = key.choice, c3[i] = 0;
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < 8; ++i) {
      const uint64_t p0 = uint64_t(c0[i]) * 0xD2511F53u, p1 = uint64_t(c2[i]) * 0xCD9E8D57u;
      c0[i] = uint32_t(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = uint32_t(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = uint32_t(p1);
      c3[i] = uint32_t(p0);
    }
}

inline float to_noise(uint32_t word) {
  const float uniform = std::min((float(word) + 0.5f) * 0x1p-32f, 1.0f - 0x1p-24f);
  return -std::log(-std::log1p(-uniform));
}

// At least the noise of `word`, without a logarithm: it lies below -log v, and v is at least 2^-(leading zeros + 1).
inline float noise_limit(uint32_t word) { return word ? float(__builtin_clz(word) + 1) * 0.6931475f : kMaxNoise; }

// The best of score + noise so far; of equals the lowest id.
struct Leader {
  float reached = -INFINITY;
  int id = INT32_MAX;

  void meet(float score, uint32_t word, int token) {
    if (score + noise_limit(word) < reached) return;
    const float found = score + to_noise(word);
    if (found > reached || (found == reached && token < id)) reached = found, id = token;
  }
};

inline void meet_one(Leader& leader, const NoiseKey& key, float score, int token) {
  uint32_t words[4][8];
  philox(key, uint32_t(token) >> 2, words);
  leader.meet(score, words[token & 3][0], token);
}

// The winner among all scores of a row, `best` of which is the best without noise.
inline int race(const float* x, int n, const NoiseKey& key, int best) {
  Leader leader;
  meet_one(leader, key, x[best], best);
  uint32_t words[4][8];
  for (int begin = 0; begin < n; begin += 32) {
    const int end = std::min(n, begin + 32);
    float top = -INFINITY;
    for (int i = begin; i < end; ++i) top = x[i] > top ? x[i] : top;
    if (top + kMaxNoise < leader.reached) continue;
    philox(key, uint32_t(begin) >> 2, words);
    for (int i = begin; i < end; ++i) leader.meet(x[i], words[i & 3][(i - begin) >> 2], i);
  }
  return leader.id;
}

// ------------------------------------------------------------------------------------------------ truncation

// A token in the order "higher score first, lower id first" as one number.
inline uint64_t rank_of(float score, int id) {
  const float plain = score + 0.0f;  // one zero, not two
  uint32_t bits;
  std::memcpy(&bits, &plain, 4);
  bits = bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;  // descending scores become ascending numbers
  return uint64_t(bits) << 32 | uint32_t(id);
}

inline float score_of(uint64_t rank) {
  uint32_t bits = uint32_t(rank >> 32);
  bits = bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
  float score;
  std::memcpy(&score, &bits, 4);
  return score;
}

struct Truncation {
  int top_k;
  double top_p, min_p, typical_p;

  bool is_on() const { return top_k > 0 || top_p < 1 || typical_p < 1 || min_p > 0; }
};

// Buffers of a member, kept from row to row.
struct SamplingScratch {
  std::vector<float> scores, heap;
  std::vector<uint64_t> ranks;
  std::vector<double> sums, surprises;
};

// The k-th largest score, 0 < k < n.
inline float kth_largest(const float* x, int n, int k, std::vector<float>& heap) {
  heap.assign(x, x + k);
  const auto above = std::greater<float>();
  if (k > n / 16) {
    heap.assign(x, x + n);
    std::nth_element(heap.begin(), heap.begin() + (k - 1), heap.end(), above);
    return heap[size_t(k) - 1];
  }
  std::make_heap(heap.begin(), heap.end(), above);  // the smallest of the k best on top
  for (int i = k; i < n; ++i)
    if (x[i] > heap.front()) {
      std::pop_heap(heap.begin(), heap.end(), above);
      heap.back() = x[i];
      std::push_heap(heap.begin(), heap.end(), above);
    }
  return heap.front();
}

inline double sum_before(const std::vector<double>& sums, size_t place) { return place ? sums[place - 1] : 0.0; }

// The typical run within the first `end` scores, whose weights sum to `mass`: found by halving the allowed deviation from the entropy.
inline void typical_run(SamplingScratch& s, double mass, double typical_p, size_t& start, size_t& end) {
  auto& surprises = s.surprises;  // ascending
  surprises.resize(end);
  double entropy = 0, enough = 0, too_small = -1;
  for (size_t i = 0; i < end; ++i) {
    surprises[i] = std::log(mass) - double(score_of(s.ranks[i]));
    entropy += std::exp(-surprises[i]) * surprises[i];
  }
  for (double surprise : surprises) enough = std::max(enough, std::fabs(surprise - entropy));
  const auto low_of = [&](double deviation) {
    return size_t(std::lower_bound(surprises.begin(), surprises.end(), entropy - deviation) - surprises.begin());
  };
  const auto high_of = [&](double deviation) {
    return size_t(std::upper_bound(surprises.begin(), surprises.end(), entropy + deviation) - surprises.begin());
  };
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (too_small + enough) / 2;
    const size_t low = low_of(middle), high = std::max(high_of(middle), low);
    (sum_before(s.sums, high) - sum_before(s.sums, low) >= typical_p * mass ? enough : too_small) = middle;
  }
  const double margin = std::fabs(entropy) * 1e-14;  // the deviation that passed must pass again after rounding
  start = std::min(low_of(enough + margin), end - 1);
  end = std::max(std::min(high_of(enough + margin), end), start + 1);
}

// Leaves in s.ranks, from place to place, the tokens that may be drawn. `x`: best score 0.
inline std::pair<size_t, size_t> truncate(const float* x, int n, const Truncation& t, SamplingScratch& s) {
  const int top_k = t.top_k > 0 && t.top_k < n ? t.top_k : 0;
  double total = 1, bound = kNoFloat;
  if (!top_k && (t.top_p < 1 || t.typical_p < 1)) total = exp_sum(x, n, 0.0f);
  if (top_k) bound = kth_largest(x, n, top_k, s.heap);
  else if (t.typical_p < 1) bound = kNoFloat;  // a typical run may begin below the best token
  else if (t.top_p < 1) bound = std::min(std::log(std::max(1 - t.top_p, 1e-30) * total / n), 0.0) - kSlack;
  else bound = std::log(t.min_p) - kSlack;
  s.ranks.clear();
  each_at_least(x, n, std::max(float(bound), kNoFloat), [&](int id) { s.ranks.push_back(rank_of(x[id], id)); });
  std::sort(s.ranks.begin(), s.ranks.end());
  const size_t count = s.ranks.size();
  s.sums.resize(count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) s.sums[i] = sum += std::exp(double(score_of(s.ranks[i])));

  size_t start = 0, end = top_k ? std::min(size_t(top_k), count) : count;
  double mass = top_k ? sum_before(s.sums, end) : total;
  if (t.typical_p < 1) {
    typical_run(s, mass, t.typical_p, start, end);
    mass = sum_before(s.sums, end) - sum_before(s.sums, start);
  }
  if (t.top_p < 1) {
    const double target = sum_before(s.sums, start) + t.top_p * mass;
    const size_t reached = size_t(std::lower_bound(s.sums.begin(), s.sums.end(), target) - s.sums.begin()) + 1;
    end = std::max(std::min(end, reached), start + 1);
  }
  const float floor = score_of(s.ranks[start]) + float(std::log(t.min_p));  // log 0 = -inf: off
  while (end > start + 1 && !(score_of(s.ranks[end - 1]) >= floor)) --end;
  while (start > 0 && score_of(s.ranks[start - 1]) == score_of(s.ranks[start])) --start;
  return {start, end};
}

// ------------------------------------------------------------------------------------------------ a row

class Sampler {
 public:
  Sampler(const Sampling& batch, int num_members) : b_(batch), scratch_(num_members) {}

  // Takes rows, sampled ones first, until none is left.
  void run(int member) {
    for (int i = next_.fetch_add(1); i < b_.num_rows + b_.num_scores; i = next_.fetch_add(1)) {
      if (i < b_.num_rows) choose(i, scratch_[member]);
      else {
        const int q = i - b_.num_rows;
        const size_t at = size_t(q) * b_.score_width;
        logprobs(row(b_.score_rows[q]), b_.score_ids[q], b_.score_num[q], b_.score_chosen + q, b_.score_top_ids + at, b_.score_top_values + at, scratch_[member]);
      }
    }
  }

 private:
  const float* row(int number) const { return b_.logits + size_t(number) * b_.vocab; }

  void choose(int k, SamplingScratch& s) {
    const float* raw = row(b_.rows[k]);
    Best best = best_of(raw, b_.vocab);
    const bool is_drawn = b_.temperature[k] > 0, is_changed = touches(k);
    if (std::isfinite(best.score) && (is_drawn || is_changed)) {
      s.scores.assign(raw, raw + b_.vocab);
      if (is_changed) {
        change(k, s.scores.data());
        best = best_of(s.scores.data(), b_.vocab);
      }
      if (is_drawn && std::isfinite(best.score)) best.id = draw(k, s, best);
    }
    const bool is_good = std::isfinite(best.score);
    b_.token_ids[k] = is_good ? best.id : -1;
    b_.reasons[k] = is_good ? 0 : best.score != best.score ? 1 : best.score > 0 ? 2 : 3;
    if (b_.num_logprobs[k] < 0 || !is_good) return;
    const size_t at = size_t(k) * b_.top_width;
    logprobs(raw, best.id, b_.num_logprobs[k], b_.chosen + k, b_.top_ids + at, b_.top_values + at, s);
  }

  bool touches(int k) const {
    return has(b_.count_starts, k) || has(b_.bias_starts, k) || mask_of(k) >= 0;
  }

  static std::pair<int, int> span(const int32_t* starts, int k) { return starts ? std::pair(starts[k], starts[k + 1]) : std::pair(0, 0); }
  static bool has(const int32_t* starts, int k) { return span(starts, k).first < span(starts, k).second; }
  int mask_of(int k) const { return b_.mask_of ? b_.mask_of[k] : -1; }

  // Penalties, bias and mask.
  void change(int k, float* x) const {
    const float repetition = b_.repetition[k], frequency = b_.frequency[k], presence = b_.presence[k];
    const auto [count_begin, count_end] = span(b_.count_starts, k);
    for (int i = count_begin; i < count_end; ++i) {
      float& value = x[b_.count_ids[i]];
      const float count = float(b_.count_output[i]);
      value = value > 0 ? value / repetition : value * repetition;
      value = value - frequency * count - presence * (count > 0 ? 1.0f : 0.0f);
    }
    const auto [bias_begin, bias_end] = span(b_.bias_starts, k);
    for (int i = bias_begin; i < bias_end; ++i) x[b_.bias_ids[i]] += b_.bias_values[i];
    if (mask_of(k) < 0) return;
    const uint32_t* mask = b_.masks + size_t(mask_of(k)) * ((b_.vocab + 31) / 32);
    for (int begin = 0; begin < b_.vocab; begin += 32) {
      const uint32_t word = mask[begin / 32];
      const int end = std::min(b_.vocab, begin + 32);
      if (word == 0xffffffffu) continue;
      for (int i = begin; i < end; ++i)
        if (!(word >> (i - begin) & 1)) x[i] = -INFINITY;
    }
  }

  int draw(int k, SamplingScratch& s, const Best& best) const {
    float* x = s.scores.data();
    const float temperature = b_.temperature[k];
    for (int i = 0; i < b_.vocab; ++i) x[i] = (x[i] - best.score) / temperature;
    const NoiseKey key{uint32_t(b_.seeds[k]), uint32_t(b_.seeds[k] >> 32), uint32_t(b_.positions[k]), uint32_t(b_.choices[k])};
    const Truncation truncation{b_.top_k[k], b_.top_p[k], b_.min_p[k], b_.typical_p[k]};
    if (!truncation.is_on()) return race(x, b_.vocab, key, best.id);
    const auto [start, end] = truncate(x, b_.vocab, truncation, s);
    Leader leader;
    for (size_t i = start; i < end; ++i) meet_one(leader, key, score_of(s.ranks[i]), int(uint32_t(s.ranks[i])));
    return leader.id;
  }

  // log-softmax of the raw row at `id`, and its `num` largest values; of equals the lowest ids.
  void logprobs(const float* x, int id, int num, float* chosen, int32_t* top_ids, float* top_values, SamplingScratch& s) const {
    const Best best = best_of(x, b_.vocab);
    const float total = std::isfinite(best.score) ? best.score + float(std::log(exp_sum(x, b_.vocab, best.score))) : best.score;
    *chosen = x[id] - total;
    num = std::min(num, b_.vocab);
    if (num <= 0) return;
    s.ranks.clear();
    const float floor = total != total ? NAN : num < b_.vocab ? kth_largest(x, b_.vocab, num, s.heap) : -INFINITY;
    each_at_least(x, b_.vocab, floor, [&](int i) { s.ranks.push_back(rank_of(x[i], i)); });
    std::sort(s.ranks.begin(), s.ranks.end());
    for (int i = 0; i < num && i < int(s.ranks.size()); ++i) {
      top_ids[i] = int32_t(uint32_t(s.ranks[size_t(i)]));
      top_values[i] = score_of(s.ranks[size_t(i)]) - total;
    }
  }

  const Sampling& b_;
  std::vector<SamplingScratch> scratch_;
  std::atomic<int> next_{0};
};

}  // namespace RADIX_ISA
