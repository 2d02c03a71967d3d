// Quantized linears and the quantization of activations in plain C++; `linear.inl` says what is computed.
namespace RADIX_ISA {

inline float quantize_group(const float* x, bool, int8_t* codes, Scales* scales) {
  int32_t bits[2];
  for (int half = 0; half < 2; ++half) {
    int32_t most = 0;  // bits of magnitudes have their order as whole numbers, those of NaN last
    for (int k = 0; k < kHalf; ++k) {
      int32_t magnitude;
      std::memcpy(&magnitude, x + half * kHalf + k, 4);
      most = std::max(most, magnitude & 0x7fffffff);
    }
    if (most >= kTooLarge) {
      std::memset(codes, 0, kGroup);
      *scales = {0, NAN};
      return 0.0f;
    }
    bits[half] = scale_bits(most);
  }
  const int32_t least = std::max(std::min(bits[0], bits[1]), std::max(bits[0], bits[1]) - kFactorBits);
  int32_t sum = 0, factors = 0;
  for (int half = 0; half < 2; ++half) {
    const int32_t scale = std::max(bits[half], least), factor = 1 << ((scale - least) / kExponent), inverse_bits = 2 * kBitsOfOne - scale;
    float inverse;
    std::memcpy(&inverse, &inverse_bits, 4);
    for (int s = 0; s < 8; ++s)
      for (int t = 2 * half; t < 2 * half + 2; ++t) {
        codes[4 * s + t] = int8_t(std::nearbyint(x[input_of(s, t)] * inverse));
        sum += factor * codes[4 * s + t];
      }
    factors |= factor << (16 * half);
  }
  scales->factors = factors;
  std::memcpy(&scales->unit, &least, 4);
  return float(sum) * scales->unit;
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
      const auto [factors, unit] = a.scales[at];
      const int32_t lower = factors & 0xffff, upper = factors >> 16;
      for (int r = 0; r < kBlock; ++r) {
        totals[r] = fma1(float(lower * dots[0][r] + upper * dots[1][r]) * unit, from_half(w.scales[weight_at * kBlock + r]), totals[r]);
        if (w.minimums) totals[r] = fma1(from_half(w.minimums[weight_at * kBlock + r]), a.sums[at], totals[r]);
      }
    }
    finish(w, block, totals, out + size_t(row - first) * stride);
  }
}

}  // namespace RADIX_ISA
