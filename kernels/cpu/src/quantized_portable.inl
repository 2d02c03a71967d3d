// Quantized linears and the quantization of activations in plain C++; `linear.inl` says what is computed.
namespace RADIX_ISA {

// The largest magnitude of a row, not finite if one value is not: as whole numbers, the bits of magnitudes have their order, NaN last.
inline float most_of_row(const float* x, int n) {
  int32_t most = 0;
  for (int k = 0; k < n; ++k) {
    int32_t bits;
    std::memcpy(&bits, x + k, 4);
    most = std::max(most, bits & 0x7fffffff);
  }
  float top;
  std::memcpy(&top, &most, 4);
  return top;
}

inline float quantize_group(const float* x, float unit, float factors_per_top, int8_t* codes, int32_t* factors) {
  int32_t sum = 0, both = 0;
  for (int half = 0; half < 2; ++half) {
    float most = 0.0f;
    for (int k = 0; k < kHalf; ++k) most = std::max(most, std::fabs(x[half * kHalf + k]));
    const float factor = std::min(std::ceil(most * factors_per_top), float(kFactors));
    const float inverse = factor > 0.0f ? 1.0f / (factor * unit) : 0.0f;
    int32_t total = 0;
    for (int s = 0; s < 8; ++s)
      for (int t = 2 * half; t < 2 * half + 2; ++t) {
        codes[4 * s + t] = int8_t(std::nearbyint(x[input_of(s, t)] * inverse));
        total += codes[4 * s + t];
      }
    sum += int32_t(factor) * total;
    both |= int32_t(factor) << (16 * half);
  }
  *factors = both;
  return float(sum);
}

// Dot products of one group's halves with 16 rows of weights.
inline void dots_of_group(const uint8_t* codes, bool is_q8, const int8_t* x, int32_t (*dots)[kBlock]) {
  std::memset(dots, 0, 2 * kBlock * sizeof(int32_t));
  for (int s = 0; s < 8; ++s)
    for (int t = 0; t < 4; ++t)
      for (int r = 0; r < kBlock; ++r) {
        const uint8_t byte = codes[64 * (is_q8 ? s : s % 4) + 4 * r + t];
        const int code = is_q8 ? int8_t(byte) : s < 4 ? byte & 15 : byte >> 4;
        dots[t / 2][r] += code * x[4 * s + t];
      }
}

inline void quantized_block(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  const int groups = w.num_in / kGroup, bytes = bytes_of_group(w);
  for (int row = first; row < last; ++row) {
    float totals[kBlock] = {};
    for (int g = 0; g < groups; ++g) {
      const size_t at = size_t(row) * groups + g, weight_at = size_t(block) * groups + g;
      int32_t dots[2][kBlock];
      dots_of_group((const uint8_t*)w.codes + weight_at * bytes, w.kind == k8Bits, &a.codes[at * kGroup], dots);
      const int32_t lower = a.factors[at] & 0xffff, upper = a.factors[at] >> 16;
      for (int r = 0; r < kBlock; ++r) {
        totals[r] = fma1(float(lower * dots[0][r] + upper * dots[1][r]), from_half(w.scales[weight_at * kBlock + r]), totals[r]);
        if (w.minimums) totals[r] = fma1(from_half(w.minimums[weight_at * kBlock + r]), a.sums[at], totals[r]);
      }
    }
    finish(w, block, a.units[row], totals, out + size_t(row) * stride + block * kBlock);
  }
}

}  // namespace RADIX_ISA
