// Linear layers: rows of activations times packed weights, and the quantization of activations.
//
// Every output is one chain of operations that does not depend on how many rows are computed together or by which thread: for quantized
// weights exact integer dot products of 16 inputs, then float additions per group of 32 in order; for float weights one FMA per input in
// order. Activations of quantized layers are int8 with one scale per 16 inputs (amax / 127): twice as fine as the weights' groups of 32,
// which costs a twentieth of the time and takes the loss in perplexity of the default model from 0.5 % to 0.02 %.
namespace RADIX_ISA {

constexpr int kGroup = 32;  // inputs that share a weight's scale
constexpr int kHalf = 16;   // inputs that share an activation's scale
constexpr int kBlock = 16;  // output rows of a block

// Activations as the linears read them: floats, or int8 with scale and exact integer sum per half group, and scale * sum per group.
struct Activations {
  int width = 0;  // inputs
  std::vector<float> floats;
  std::vector<int8_t> codes;
  std::vector<float> scales, sums;
  std::vector<int32_t> totals;

  void reserve(int rows, int num_in) {
    width = num_in;
    const size_t size = size_t(rows) * num_in;
    if (floats.size() < size) floats.resize(size);
    if (codes.size() < size) codes.resize(size);
    const size_t groups = size / kGroup + rows;
    if (sums.size() < groups) {
      sums.resize(groups);
      scales.resize(2 * groups);
      totals.resize(2 * groups);
    }
  }
};

inline bool is_quantized(const Linear& w) { return w.kind == kQ4 || w.kind == kQ8; }

inline void quantize_row(const float* x, int n, int8_t* codes, float* scales, float* sums, int32_t* totals) {
  for (int half = 0; half < n / kHalf; ++half, x += kHalf, codes += kHalf) {
    const F8 v[2] = {load8(x), load8(x + 8)};
    const float amax = max_of(max8(abs8(v[0]), abs8(v[1])));
    const F8 inverse = all8(amax > 0.0f ? 127.0f / amax : 0.0f);
    int32_t total = 0;
    for (int i = 0; i < 2; ++i) {
      float rounded[8];
      store8(rounded, round8(mul(v[i], inverse)));
      for (int k = 0; k < 8; ++k) {
        codes[8 * i + k] = int8_t(rounded[k]);
        total += int32_t(rounded[k]);
      }
    }
    scales[half] = amax / 127.0f;
    totals[half] = total;
    const float sum = scales[half] * float(total);
    if (half % 2 == 0) sums[half / 2] = sum;
    else sums[half / 2] += sum;
  }
}

// Row `row` of `a` from `x`, in the form that `w` reads.
inline void take_row(Activations& a, int row, const float* x, const Linear& w) {
  const int n = w.num_in;
  if (is_quantized(w)) {
    const size_t group = size_t(row) * (n / kGroup);
    quantize_row(x, n, &a.codes[size_t(row) * n], &a.scales[2 * group], &a.sums[group], &a.totals[2 * group]);
  } else {
    std::memcpy(&a.floats[size_t(row) * n], x, size_t(n) * 4);
  }
}

#if defined(__AVX2__)

// Four int8 of a row, in every 32-bit lane.
inline __m256i four(const int8_t* p) {
  int32_t word;
  std::memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}

// Sums of code * activation over one plane of a group for 8 rows, its halves apart: at most 4 * 15 * 2 * 127 = 15,240 in a lane of int16.
template <int M>
inline void plane(const uint8_t* codes, const int8_t* const* a, __m256i* lower, __m256i* upper) {
  const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  for (int i = 0; i < M; ++i) lower[i] = upper[i] = _mm256_setzero_si256();
  for (int j = 0; j < 4; ++j) {
    const __m256i packed = _mm256_load_si256((const __m256i*)(codes + 64 * j));
    const __m256i low = _mm256_and_si256(packed, nibble), high = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
    for (int i = 0; i < M; ++i) {
      lower[i] = _mm256_add_epi16(lower[i], _mm256_maddubs_epi16(low, four(a[i] + 4 * j)));
      upper[i] = _mm256_add_epi16(upper[i], _mm256_maddubs_epi16(high, four(a[i] + kHalf + 4 * j)));
    }
  }
  for (int i = 0; i < M; ++i) {
    lower[i] = _mm256_madd_epi16(lower[i], ones);
    upper[i] = _mm256_madd_epi16(upper[i], ones);
  }
}

// low nibbles + 16 * high nibbles - 128 * total: the product with signed codes.
inline __m256i signed_sum(__m256i low, __m256i high, int32_t total) {
  return _mm256_sub_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, 4)), _mm256_set1_epi32(128 * total));
}

template <int M, bool kIsQ8>
inline void quantized_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  const int groups = w.num_in / kGroup;
  constexpr int kBytes = kIsQ8 ? 512 : 256;
  for (int half = 0; half < 2; ++half) {
    const uint8_t* codes = (const uint8_t*)w.codes + size_t(block) * groups * kBytes + 32 * half;
    const uint16_t* scales = w.scales + size_t(block) * groups * kBlock + 8 * half;
    const uint16_t* minimums = kIsQ8 ? nullptr : w.minimums + size_t(block) * groups * kBlock + 8 * half;
    const int8_t* rows[M];
    __m256 total[M];
    for (int i = 0; i < M; ++i) {
      rows[i] = &a.codes[size_t(row + i) * w.num_in];
      total[i] = _mm256_setzero_ps();
    }
    for (int g = 0; g < groups; ++g, codes += kBytes) {
      __m256i lower[M], upper[M];
      plane<M>(codes, rows, lower, upper);
      if (kIsQ8) {
        __m256i high_lower[M], high_upper[M];
        plane<M>(codes + 256, rows, high_lower, high_upper);
        for (int i = 0; i < M; ++i) {
          const int32_t* totals = &a.totals[2 * (size_t(row + i) * groups + g)];
          lower[i] = signed_sum(lower[i], high_lower[i], totals[0]);
          upper[i] = signed_sum(upper[i], high_upper[i], totals[1]);
        }
      }
      const __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(scales + g * kBlock)));
      for (int i = 0; i < M; ++i) {
        const float* fine = &a.scales[2 * (size_t(row + i) * groups + g)];
        const __m256 second = _mm256_mul_ps(_mm256_cvtepi32_ps(upper[i]), _mm256_set1_ps(fine[1]));
        const __m256 both = _mm256_fmadd_ps(_mm256_cvtepi32_ps(lower[i]), _mm256_set1_ps(fine[0]), second);
        total[i] = _mm256_fmadd_ps(both, scale, total[i]);
      }
      if (!kIsQ8) {
        const __m256 minimum = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(minimums + g * kBlock)));
        for (int i = 0; i < M; ++i)
          total[i] = _mm256_fmadd_ps(minimum, _mm256_set1_ps(a.sums[size_t(row + i) * groups + g]), total[i]);
      }
      for (int i = 0; i < M; ++i) rows[i] += kGroup;
    }
    const int left = w.num_out - block * kBlock - 8 * half;
    for (int i = 0; i < M; ++i) {
      float* to = out + size_t(row + i) * stride + block * kBlock + 8 * half;
      F8 value = {total[i]};
      if (w.bias && left >= 8) value = add(value, load8(w.bias + block * kBlock + 8 * half));
      if (left >= 8) {
        store8(to, value);
      } else {
        float buffer[8];
        store8(buffer, value);
        for (int k = 0; k < left; ++k) to[k] = buffer[k] + (w.bias ? w.bias[block * kBlock + 8 * half + k] : 0.0f);
      }
    }
  }
}

#else

template <int M, bool kIsQ8>
inline void quantized_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  const int groups = w.num_in / kGroup;
  constexpr int kBytes = kIsQ8 ? 512 : 256;
  for (int i = 0; i < M; ++i) {
    for (int r = 0; r < kBlock && block * kBlock + r < w.num_out; ++r) {
      float total = 0.0f;
      for (int g = 0; g < groups; ++g) {
        const uint8_t* codes = (const uint8_t*)w.codes + (size_t(block) * groups + g) * kBytes + 4 * r;
        const int8_t* x = &a.codes[size_t(row + i) * w.num_in + g * kGroup];
        const size_t at = size_t(row + i) * groups + g;
        int32_t dots[2] = {0, 0};
        for (int plane = 0; plane < (kIsQ8 ? 2 : 1); ++plane)
          for (int j = 0; j < 4; ++j)
            for (int t = 0; t < 4; ++t) {
              const int byte = codes[256 * plane + 64 * j + t], factor = plane ? 16 : 1;
              dots[0] += factor * (byte & 15) * x[4 * j + t];
              dots[1] += factor * (byte >> 4) * x[kHalf + 4 * j + t];
            }
        if (kIsQ8)
          for (int k = 0; k < 2; ++k) dots[k] -= 128 * a.totals[2 * at + k];
        const size_t scale_at = (size_t(block) * groups + g) * kBlock + r;
        const float both = fma1(float(dots[0]), a.scales[2 * at], float(dots[1]) * a.scales[2 * at + 1]);
        total = fma1(both, from_half(w.scales[scale_at]), total);
        if (!kIsQ8) total = fma1(from_half(w.minimums[scale_at]), a.sums[at], total);
      }
      const int column = block * kBlock + r;
      out[size_t(row + i) * stride + column] = total + (w.bias ? w.bias[column] : 0.0f);
    }
  }
}

#endif

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
    float* to = out + size_t(row + i) * stride + block * kBlock;
    for (int k = 0; k < left; ++k) to[k] = w.bias ? buffer[k] + w.bias[block * kBlock + k] : buffer[k];
  }
}

template <int M>
inline void any_block(const Linear& w, int block, const Activations& a, int row, float* out, int stride) {
  switch (w.kind) {
    case kQ4: return quantized_block<M, false>(w, block, a, row, out, stride);
    case kQ8: return quantized_block<M, true>(w, block, a, row, out, stride);
    case kBF16: return float_block<M, uint16_t>(w, block, a, row, out, stride);
    default: return float_block<M, float>(w, block, a, row, out, stride);
  }
}

constexpr int kRowsTogether = 4;
constexpr int kRowsInCache = 256;  // activations of so many rows stay in the second-level cache while blocks of weights pass

// This member's share of out[row][:] = w(a[row]) for rows 0 .. num_rows. A block of weights is read once for all rows in cache.
inline void linear(const Linear& w, const Activations& a, int num_rows, float* out, int stride, int member, int num_members) {
  const int blocks = (w.num_out + kBlock - 1) / kBlock;
  const int begin = int(int64_t(blocks) * member / num_members), end = int(int64_t(blocks) * (member + 1) / num_members);
  for (int first = 0; first < num_rows; first += kRowsInCache) {
    const int last = std::min(num_rows, first + kRowsInCache);
    for (int block = begin; block < end; ++block) {
      int row = first;
      for (; row + kRowsTogether <= last; row += kRowsTogether) any_block<kRowsTogether>(w, block, a, row, out, stride);
      for (; row < last; ++row) any_block<1>(w, block, a, row, out, stride);
    }
  }
}

// One row of a packed weight as floats: the embedding of a token.
inline void unpack_row(const Linear& w, int index, float* out) {
  const int block = index / kBlock, r = index % kBlock;
  if (!is_quantized(w)) {
    for (int k = 0; k < w.num_in; ++k) {
      const size_t at = (size_t(block) * w.num_in + k) * kBlock + r;
      out[k] = w.kind == kF32 ? ((const float*)w.codes)[at] : from_bf16(((const uint16_t*)w.codes)[at]);
    }
    return;
  }
  const int groups = w.num_in / kGroup, bytes = w.kind == kQ8 ? 512 : 256;
  for (int g = 0; g < groups; ++g) {
    const uint8_t* codes = (const uint8_t*)w.codes + (size_t(block) * groups + g) * bytes + 4 * r;
    const size_t at = (size_t(block) * groups + g) * kBlock + r;
    const float scale = from_half(w.scales[at]), minimum = w.kind == kQ4 ? from_half(w.minimums[at]) : 0.0f;
    for (int k = 0; k < kGroup; ++k) {
      const int byte = 64 * (k % 16 / 4) + k % 4, shift = k < 16 ? 0 : 4;
      int code = (codes[byte] >> shift) & 15;
      if (w.kind == kQ8) code += 16 * ((codes[256 + byte] >> shift) & 15) - 128;
      out[g * kGroup + k] = float(code) * scale + minimum;
    }
  }
}

}  // namespace RADIX_ISA
