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

// The bits of both scales of a group; of `most` in lanes 0 and 1.
inline __m128i bits_of_scales(__m128i most) {
  const __m128i rounded = _mm_and_si128(_mm_add_epi32(most, _mm_set1_epi32(0x1ffff)), _mm_set1_epi32(0x7f800000));
  const __m128i alone = _mm_max_epi32(_mm_sub_epi32(rounded, _mm_set1_epi32(6 * kExponent)), _mm_set1_epi32(kLeastScale));
  return _mm_max_epi32(alone, _mm_sub_epi32(_mm_shuffle_epi32(alone, 0xb1), _mm_set1_epi32(kFactorBits)));
}

// Codes in the order of `input_of` as words of one half each: inputs 2 j, 2 j + 1, 8 + 2 j, 9 + 2 j of the lower half, then of the upper.
inline __m256i fours_of_halves(__m256i codes) {
  const __m128i first = _mm256_castsi256_si128(codes), last = _mm256_extracti128_si256(codes, 1);
  return _mm256_set_m128i(_mm_unpackhi_epi16(first, last), _mm_unpacklo_epi16(first, last));
}

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
inline Scales spoiled_scales() { return {{0, 0}, {NAN, NAN}}; }

// Sums of products begin with 1.5 * 2^23 * scale, as the bits of a float; those of 8-bit codes, which are 128 too large, 128 times the codes' sum lower.
inline void store_scales(__m128i bits, __m128i sums, bool is_for_8_bits, Scales* scales) {
  const __m128i bases = _mm_add_epi32(bits, _mm_set1_epi32(23 * kExponent + kExponent / 2));
  const __m128i starts = is_for_8_bits ? _mm_sub_epi32(bases, _mm_slli_epi32(sums, 7)) : bases;
  _mm_storeu_si128((__m128i*)scales, _mm_unpacklo_epi64(starts, bases));
}
#else
inline Scales spoiled_scales() { return {0, NAN}; }

inline void store_scales(__m128i bits, __m128i, bool, Scales* scales) {
  const int32_t lower = _mm_cvtsi128_si32(bits), upper = _mm_extract_epi32(bits, 1), least = std::min(lower, upper);
  scales->factors = 1 << ((lower - least) / kExponent) | 1 << ((upper - least) / kExponent) << 16;
  std::memcpy(&scales->unit, &least, 4);
}
#endif

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

inline float quantize_group(const float* x, bool is_for_8_bits, int8_t* codes, Scales* scales) {
  const __m128i most = most_of_halves(x);
  if (std::max(_mm_cvtsi128_si32(most), _mm_extract_epi32(most, 1)) >= kTooLarge) {
    _mm256_storeu_si256((__m256i*)codes, _mm256_setzero_si256());
    *scales = spoiled_scales();
    return 0.0f;
  }
  const __m128i bits = bits_of_scales(most);
  const __m256i bytes = codes_of_halves(x, _mm_castsi128_ps(_mm_sub_epi32(_mm_set1_epi32(2 * kBitsOfOne), bits)));
  _mm256_storeu_si256((__m256i*)codes, kHasVnni ? fours_of_halves(bytes) : bytes);
  const __m128i sums = sums_of_halves(bytes);
  store_scales(bits, sums, is_for_8_bits, scales);
  const __m128 values = _mm_mul_ps(_mm_cvtepi32_ps(sums), _mm_castsi128_ps(bits));
  return _mm_cvtss_f32(_mm_add_ss(values, _mm_movehdup_ps(values)));
}

inline __m256 eight_halves(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }

// Rows of activations from one group on.
struct RowsFrom {
  const int8_t* codes;
  const Scales* scales;
  const float* sums;
  size_t stride;  // groups of a row

  RowsFrom(const Activations& a, int num_in, int row, int group) : stride(size_t(num_in) / kGroup) {
    const size_t at = row * stride + group;
    codes = &a.codes[at * kGroup];
    scales = &a.scales[at];
    sums = &a.sums[at];
  }
  int32_t word(int row, int g, int s) const {
    int32_t four;
    std::memcpy(&four, codes + (row * stride + g) * kGroup + 4 * s, 4);
    return four;
  }
};

}  // namespace RADIX_ISA
