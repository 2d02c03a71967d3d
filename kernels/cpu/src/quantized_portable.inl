// Quantized linears and the quantization of activations in plain C++; `linear.inl` says what is computed.
namespace RADIX_ISA {

// Returns the span's unit.
inline float quantize_span(const float* x, int num_groups, bool, const GroupCells& to) {
  int32_t top_bits = 0;  // bits of magnitudes have their order as whole numbers, those of NaN last
  float most[2 * kGroupsOfSpan] = {}, top;
  for (int k = 0; k < num_groups * kGroup; ++k) {
    int32_t bits;
    std::memcpy(&bits, x + k, 4);
    top_bits = std::max(top_bits, bits & 0x7fffffff);
    most[k / kHalf] = std::max(most[k / kHalf], std::fabs(x[k]));
  }
  std::memcpy(&top, &top_bits, 4);
  const SpanScale scale(top);
  for (int g = 0; g < num_groups; ++g, x += kGroup) {
    int32_t sum = 0, factors = 0;
    for (int half = 0; half < 2; ++half) {
      int32_t factor = 1;
      while (float(factor) < most[2 * g + half] * scale.factors_per_top && factor < kFactors) factor *= 2;
      const float inverse = scale.per_unit / float(factor);
      for (int s = 0; s < 8; ++s)
        for (int t = 2 * half; t < 2 * half + 2; ++t) {
          const float code = std::nearbyint(x[input_of(s, t)] * inverse);
          to.codes(g)[4 * s + t] = std::isfinite(code) ? int8_t(code) : int8_t(0);
          sum += factor * to.codes(g)[4 * s + t];
        }
      factors |= factor << (16 * half);
    }
    to.factors(g) = factors;
    to.sum(g) = float(sum);
  }
  return scale.unit;
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
  const int groups = w.num_in / kGroup, spans = a.num_spans(w.num_in), bytes = bytes_of_group(w);
  for (int row = first; row < last; ++row) {
    float totals[kBlock] = {}, values[kBlock] = {};
    for (int g = 0; g < groups; ++g) {
      const size_t at = size_t(row) * groups + g, weight_at = size_t(block) * groups + g;
      int32_t dots[2][kBlock];
      dots_of_group((const uint8_t*)w.codes + weight_at * bytes, w.kind == k8Bits, &a.codes[at * kGroup], dots);
      const int32_t lower = a.factors[at] & 0xffff, upper = a.factors[at] >> 16;
      const bool is_end = g + 1 == groups || (g + 1) % kGroupsOfSpan == 0;
      const float unit = a.units[size_t(row) * spans + g / kGroupsOfSpan];
      for (int r = 0; r < kBlock; ++r) {
        values[r] = fma1(float(lower * dots[0][r] + upper * dots[1][r]), from_half(w.scales[weight_at * kBlock + r]), values[r]);
        if (w.minimums) values[r] = fma1(from_half(w.minimums[weight_at * kBlock + r]), a.sums[at], values[r]);
        if (!is_end) continue;
        totals[r] = fma1(values[r], unit, totals[r]);
        values[r] = 0.0f;
      }
    }
    finish(w, block, totals, out + size_t(row - first) * stride);
  }
}

}  // namespace RADIX_ISA
