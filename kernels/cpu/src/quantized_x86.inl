// What the x86 instruction sets share: the quantization of activations, and where a tile finds its rows; `linear.inl` says what is computed.
namespace RADIX_ISA {

inline __m256i eight_ints(const float* x, __m256 inverse) { return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse)); }

inline int32_t sum_of(__m256i v) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}

// The largest magnitude of a row, not finite if one value is not: as whole numbers, the bits of magnitudes have their order, NaN last.
inline float most_of_row(const float* x, int n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  for (int k = 0; k < n; k += 8) most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_loadu_si256((const __m256i*)(x + k)), magnitude));
  __m128i bits = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  bits = _mm_max_epi32(bits, _mm_shuffle_epi32(bits, 0x4e));
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(bits, _mm_shuffle_epi32(bits, 0xb1))));
}

// The largest magnitude of each half, in all lanes of the lower and upper 128 bits.
inline __m256 most_of_halves(const float* x) {
  const F8 lower = max8(abs8(load8(x)), abs8(load8(x + 8))), upper = max8(abs8(load8(x + 16)), abs8(load8(x + 24)));
  __m256 most = _mm256_max_ps(_mm256_permute2f128_ps(lower.v, upper.v, 0x20), _mm256_permute2f128_ps(lower.v, upper.v, 0x31));
  most = _mm256_max_ps(most, _mm256_permute_ps(most, 0x4e));
  return _mm256_max_ps(most, _mm256_permute_ps(most, 0xb1));
}

// Codes in the order of `input_of` as words of one half each: inputs 2 j, 2 j + 1, 8 + 2 j, 9 + 2 j of the lower half, then of the upper.
inline __m256i fours_of_halves(__m256i codes) {
  const __m128i first = _mm256_castsi256_si128(codes), last = _mm256_extracti128_si256(codes, 1);
  return _mm256_set_m128i(_mm_unpackhi_epi16(first, last), _mm_unpacklo_epi16(first, last));
}

#if defined(__AVX512VNNI__)
inline float quantize_group(const float* x, float unit, float factors_per_top, int8_t* codes, int32_t* factors) {
  const __m512 lower = _mm512_loadu_ps(x), upper = _mm512_loadu_ps(x + 16), lower_size = _mm512_abs_ps(lower), upper_size = _mm512_abs_ps(upper);
  // the largest of the lower half in the first 256 bits, of the upper in the last
  __m512 most = _mm512_max_ps(_mm512_shuffle_f32x4(lower_size, upper_size, 0x44), _mm512_shuffle_f32x4(lower_size, upper_size, 0xee));
  most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0xb1));
  most = _mm512_max_ps(most, _mm512_permute_ps(most, 0x4e));
  most = _mm512_max_ps(most, _mm512_permute_ps(most, 0xb1));
  const __m128 both = _mm_unpacklo_ps(_mm512_castps512_ps128(most), _mm512_extractf32x4_ps(most, 2));
  const __m128 factor = _mm_min_ps(_mm_ceil_ps(_mm_mul_ps(both, _mm_set1_ps(factors_per_top))), _mm_set1_ps(float(kFactors)));
  const __m128 inverse = _mm_and_ps(_mm_div_ps(_mm_set1_ps(1.0f), _mm_mul_ps(factor, _mm_set1_ps(unit))), _mm_cmpgt_ps(factor, _mm_setzero_ps()));
  const __m512i first = _mm512_cvtps_epi32(_mm512_mul_ps(lower, _mm512_broadcastss_ps(inverse)));
  const __m512i second = _mm512_cvtps_epi32(_mm512_mul_ps(upper, _mm512_broadcastss_ps(_mm_movehdup_ps(inverse))));
  const __m128i by_twos = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);  // `input_of`
  const __m128i lower_codes = _mm_shuffle_epi8(_mm512_cvtsepi32_epi8(first), by_twos), upper_codes = _mm_shuffle_epi8(_mm512_cvtsepi32_epi8(second), by_twos);
  _mm_storeu_si128((__m128i*)codes, _mm_unpacklo_epi32(lower_codes, upper_codes));
  _mm_storeu_si128((__m128i*)(codes + 16), _mm_unpackhi_epi32(lower_codes, upper_codes));
  const __m128i numbers = _mm_cvtps_epi32(factor);
  *factors = _mm_cvtsi128_si32(numbers) | _mm_extract_epi32(numbers, 1) << 16;
  const __m512i products = _mm512_add_epi32(_mm512_mullo_epi32(first, _mm512_broadcastd_epi32(numbers)),
                                            _mm512_mullo_epi32(second, _mm512_broadcastd_epi32(_mm_shuffle_epi32(numbers, 0x55))));
  return float(_mm512_reduce_add_epi32(products));
}
#else
inline float quantize_group(const float* x, float unit, float factors_per_top, int8_t* codes, int32_t* factors) {
  const __m256 wanted = _mm256_ceil_ps(_mm256_mul_ps(most_of_halves(x), _mm256_set1_ps(factors_per_top)));
  const __m256 factor = _mm256_min_ps(wanted, _mm256_set1_ps(float(kFactors)));
  const __m256 inverse = _mm256_and_ps(_mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_mul_ps(factor, _mm256_set1_ps(unit))),
                                       _mm256_cmp_ps(factor, _mm256_setzero_ps(), _CMP_GT_OQ));
  const __m256 first = _mm256_permute2f128_ps(inverse, inverse, 0x00), second = _mm256_permute2f128_ps(inverse, inverse, 0x11);
  __m256i lower = _mm256_packs_epi32(eight_ints(x, first), eight_ints(x + 8, first));
  __m256i upper = _mm256_packs_epi32(eight_ints(x + 16, second), eight_ints(x + 24, second));
  lower = _mm256_permute4x64_epi64(lower, 0xd8);
  upper = _mm256_permute4x64_epi64(upper, 0xd8);
  const __m256i by_twos = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_packs_epi16(lower, upper), by_twos);
  _mm256_storeu_si256((__m256i*)codes, kHasVnni ? fours_of_halves(bytes) : bytes);
  const __m256i numbers = _mm256_cvtps_epi32(factor);
  *factors = _mm256_extract_epi32(numbers, 0) | _mm256_extract_epi32(numbers, 4) << 16;
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  return float(sum_of(_mm256_madd_epi16(pairs, _mm256_set1_epi32(*factors))));
}
#endif

inline __m256 eight_halves(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }

// Rows of activations from one group on.
struct RowsFrom {
  const int8_t* codes;
  const int32_t* factors;
  const float* sums;
  size_t stride;  // groups of a row

  RowsFrom(const Activations& a, int num_in, int row, int group) : stride(size_t(num_in) / kGroup) {
    const size_t at = row * stride + group;
    codes = &a.codes[at * kGroup];
    factors = &a.factors[at];
    sums = &a.sums[at];
  }
  int32_t word(int row, int g, int s) const {
    int32_t four;
    std::memcpy(&four, codes + (row * stride + g) * kGroup + 4 * s, 4);
    return four;
  }
};

}  // namespace RADIX_ISA
