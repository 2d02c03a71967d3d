// What the x86 instruction sets share: the quantization of activations, and where a tile finds its rows; `linear.inl` says what is computed.
namespace RADIX_ISA {

inline __m256i eight_ints(const float* x, __m256 inverse) { return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse)); }

// The largest magnitude of each half, as the bits of a float: as whole numbers they have their order, those of NaN last. In lanes 0 and 1.
inline __m128i most_of_halves(const float* x) {
#if defined(__AVX512VNNI__)
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i lower = _mm512_and_si512(_mm512_loadu_si512(x), magnitude), upper = _mm512_and_si512(_mm512_loadu_si512(x + 16), magnitude);
  const __m512i pairs = _mm512_max_epi32(_mm512_unpacklo_epi32(lower, upper), _mm512_unpackhi_epi32(lower, upper));
  const __m256i fours = _mm256_max_epi32(_mm512_castsi512_si256(pairs), _mm512_extracti64x4_epi64(pairs, 1));
#else
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  const auto eight = [&](int k) { return _mm256_and_si256(_mm256_loadu_si256((const __m256i*)(x + k)), magnitude); };
  const __m256i lower = _mm256_max_epi32(eight(0), eight(8)), upper = _mm256_max_epi32(eight(16), eight(24));
  const __m256i fours = _mm256_max_epi32(_mm256_unpacklo_epi32(lower, upper), _mm256_unpackhi_epi32(lower, upper));
#endif
  const __m128i twos = _mm_max_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  return _mm_max_epi32(twos, _mm_shuffle_epi32(twos, 0x4e));
}

// Codes in the order of `input_of` as words of one half each: inputs 2 j, 2 j + 1, 8 + 2 j, 9 + 2 j of the lower half, then of the upper.
inline __m256i fours_of_halves(__m256i codes) {
  const __m128i first = _mm256_castsi256_si128(codes), last = _mm256_extracti128_si256(codes, 1);
  return _mm256_set_m128i(_mm_unpackhi_epi16(first, last), _mm_unpacklo_epi16(first, last));
}

// Of factors as the bits of floats and sums of codes of a group's halves, in lanes 0 and 1.
inline void store_factors(__m128i bits, __m128i sums, bool is_for_8_bits, Factors* factors) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
  const __m128i bases = _mm_add_epi32(bits, _mm_set1_epi32(23 * kExponent + kExponent / 2));
  const __m128i starts = is_for_8_bits ? _mm_sub_epi32(bases, _mm_slli_epi32(sums, 7)) : bases;
  _mm_storeu_si128((__m128i*)factors, _mm_unpacklo_epi64(starts, bases));
#else
  (void)sums, (void)is_for_8_bits;
  const __m128i numbers = _mm_cvtps_epi32(_mm_castsi128_ps(bits));
  *factors = _mm_cvtsi128_si32(numbers) | _mm_extract_epi32(numbers, 1) << 16;
#endif
}

// Sums of codes of a group's halves, in lanes 0 and 1, from words that hold both halves' by turns in 16-bit places.
inline __m128i sums_of_halves(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  __m128i sums = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sums = _mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0x4e));
  return _mm_cvtepi16_epi32(_mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0xb1)));
}

// The codes of 32 values, in words of both halves: two of the lower, two of the upper.
inline __m256i codes_of_halves(const float* x, __m128 inverse) {
  const __m128i by_twos = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
#if defined(__AVX512VNNI__)
  const __m512i lower = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_broadcastss_ps(inverse)));
  const __m512i upper = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), _mm512_broadcastss_ps(_mm_movehdup_ps(inverse))));
  const __m256i bytes = _mm256_set_m128i(_mm512_cvtsepi32_epi8(upper), _mm512_cvtsepi32_epi8(lower));
  return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(bytes, 0xd8), _mm256_broadcastsi128_si256(by_twos));
#else
  const __m256 first = _mm256_broadcastss_ps(inverse), second = _mm256_broadcastss_ps(_mm_movehdup_ps(inverse));
  __m256i lower = _mm256_packs_epi32(eight_ints(x, first), eight_ints(x + 8, first));
  __m256i upper = _mm256_packs_epi32(eight_ints(x + 16, second), eight_ints(x + 24, second));
  lower = _mm256_permute4x64_epi64(lower, 0xd8);
  upper = _mm256_permute4x64_epi64(upper, 0xd8);
  return _mm256_shuffle_epi8(_mm256_packs_epi16(lower, upper), _mm256_broadcastsi128_si256(by_twos));
#endif
}

// Codes, factors and sum of group g, given its factors as the bits of floats and what its values are multiplied by, in lanes 0 and 1.
inline void quantize_group(const float* x, __m128i bits, __m128 inverse, bool is_for_8_bits, const GroupCells& to, int g) {
  const __m256i bytes = codes_of_halves(x + g * kGroup, inverse);
  _mm256_storeu_si256((__m256i*)to.codes(g), kHasVnni ? fours_of_halves(bytes) : bytes);
  const __m128i sums = sums_of_halves(bytes);
  store_factors(bits, sums, is_for_8_bits, &to.factors(g));
  const __m128 values = _mm_mul_ps(_mm_cvtepi32_ps(sums), _mm_castsi128_ps(bits));
  to.sum(g) = _mm_cvtss_f32(_mm_add_ss(values, _mm_movehdup_ps(values)));
}

// Returns the span's unit.
inline float quantize_span(const float* x, int num_groups, bool is_for_8_bits, const GroupCells& to) {
  __m128i most[kGroupsOfSpan / 2], top = _mm_setzero_si128();  // of two groups each; an odd group counts as two
  for (int g = 0; g < num_groups; g += 2) {
    most[g / 2] = _mm_unpacklo_epi64(most_of_halves(x + g * kGroup), most_of_halves(x + std::min(g + 1, num_groups - 1) * kGroup));
    top = _mm_max_epi32(top, most[g / 2]);
  }
  top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0x4e));
  const SpanScale scale(_mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(top, _mm_shuffle_epi32(top, 0xb1)))));
  for (int g = 0; g < num_groups; g += 2) {
    const __m128i wanted = _mm_castps_si128(_mm_mul_ps(_mm_castsi128_ps(most[g / 2]), _mm_set1_ps(scale.factors_per_top)));
    const __m128i power = _mm_and_si128(_mm_add_epi32(wanted, _mm_set1_epi32(kExponent - 1)), _mm_set1_epi32(0x7f800000));
    const __m128i bits = _mm_max_epi32(_mm_min_epi32(power, _mm_set1_epi32(kBitsOfTop)), _mm_set1_epi32(kBitsOfOne));
    const __m128 inverse = _mm_mul_ps(_mm_castsi128_ps(_mm_sub_epi32(_mm_set1_epi32(2 * kBitsOfOne), bits)), _mm_set1_ps(scale.per_unit));
    quantize_group(x, bits, inverse, is_for_8_bits, to, g);
    if (g + 1 < num_groups) quantize_group(x, _mm_unpackhi_epi64(bits, bits), _mm_movehl_ps(inverse, inverse), is_for_8_bits, to, g + 1);
  }
  return scale.unit;
}

inline __m256 eight_halves(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }

// Rows of activations from the first group of a span on.
struct RowsFrom {
  const int8_t* codes;
  const Factors* factors;
  const float* sums;
  const float* units;
  size_t stride, span_stride;  // groups and spans of a row

  RowsFrom(const Activations& a, int num_in, int row, int group) : stride(size_t(num_in) / kGroup), span_stride(size_t(a.num_spans(num_in))) {
    const size_t at = row * stride + group;
    codes = &a.codes[at * kGroup];
    factors = &a.factors[at];
    sums = &a.sums[at];
    units = &a.units[row * span_stride + group / kGroupsOfSpan];
  }
  int32_t word(int row, int g, int s) const {
    int32_t four;
    std::memcpy(&four, codes + (row * stride + g) * kGroup + 4 * s, 4);
    return four;
  }
};

}  // namespace RADIX_ISA
