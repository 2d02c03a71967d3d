// Eight floats at a time: the one vector type that the small ops and attention are written in. AVX2 where the unit is compiled for it,
// NEON on 64-bit ARM, plain arrays otherwise. Each operation rounds once; nothing here lets the compiler reorder a sum.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace RADIX_ISA {

// Vectors whose memory begins at a cache line: no 64 bytes that are loaded at once lie in two.
template <class T>
struct OnLines {
  using value_type = T;
  OnLines() = default;
  template <class U>
  OnLines(const OnLines<U>&) {}
  T* allocate(size_t size) { return static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, std::align_val_t(64)); }
  bool operator==(const OnLines&) const { return true; }
  bool operator!=(const OnLines&) const { return false; }
};

template <class T>
using Lines = std::vector<T, OnLines<T>>;

inline float from_half(uint16_t bits) {
#if defined(__F16C__)
  return _cvtsh_ss(bits);
#elif defined(__aarch64__)
  __fp16 value;
  std::memcpy(&value, &bits, 2);
  return float(value);
#else
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float value;
  if (exponent == 31) {
    const uint32_t word = sign | 0x7f800000 | (fraction << 13);
    std::memcpy(&value, &word, 4);
    return value;
  }
  value = exponent ? std::ldexp(float(1024 + fraction), int(exponent) - 25) : std::ldexp(float(fraction), -24);
  return sign ? -value : value;
#endif
}

struct Half {
  uint16_t bits;
};

inline float from_bf16(uint16_t bits) {
  const uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

inline uint16_t to_bf16(float value) {  // round to nearest even
  uint32_t word;
  std::memcpy(&word, &value, 4);
  if ((word & 0x7fffffff) > 0x7f800000) return uint16_t((word >> 16) | 64);
  return uint16_t((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

#if defined(__AVX2__)
struct F8 {
  __m256 v;
};
inline F8 zero8() { return {_mm256_setzero_ps()}; }
inline F8 all8(float x) { return {_mm256_set1_ps(x)}; }
inline F8 load8(const float* p) { return {_mm256_loadu_ps(p)}; }
inline F8 load8(const uint16_t* p) {  // bf16
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16))};
}
inline F8 load8(const int8_t* p) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)))}; }
inline F8 load8_half(const uint16_t* p) { return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p))}; }
inline void store8(float* p, F8 a) { _mm256_storeu_ps(p, a.v); }
inline void store8(int8_t* p, F8 a) {  // rounded to even
  const __m256i words = _mm256_cvtps_epi32(a.v);
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(halves, halves));
}
inline F8 add(F8 a, F8 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F8 sub(F8 a, F8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F8 mul(F8 a, F8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F8 div(F8 a, F8 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F8 max8(F8 a, F8 b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F8 min8(F8 a, F8 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline F8 fma8(F8 a, F8 b, F8 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F8 round8(F8 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F8 abs8(F8 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline F8 two_to(F8 n) {  // 2^n for whole n in -126 .. 127
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23))};
}
#elif defined(__aarch64__)
struct F8 {
  float32x4_t v, w;
};
inline F8 zero8() { return {vdupq_n_f32(0), vdupq_n_f32(0)}; }
inline F8 all8(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
inline F8 load8(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
inline F8 load8(const uint16_t* p) {  // bf16
  const uint16x8_t x = vld1q_u16(p);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16)), vreinterpretq_f32_u32(vshlq_n_u32(vmovl_high_u16(x), 16))};
}
inline F8 load8(const int8_t* p) {
  const int16x8_t x = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_high_s16(x))};
}
inline F8 load8_half(const uint16_t* p) {
  const float16x8_t x = vreinterpretq_f16_u16(vld1q_u16(p));
  return {vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
}
inline void store8(float* p, F8 a) { vst1q_f32(p, a.v), vst1q_f32(p + 4, a.w); }
inline void store8(int8_t* p, F8 a) {  // rounded to even
  vst1_s8(p, vqmovn_s16(vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.v)), vqmovn_s32(vcvtnq_s32_f32(a.w)))));
}
inline F8 add(F8 a, F8 b) { return {vaddq_f32(a.v, b.v), vaddq_f32(a.w, b.w)}; }
inline F8 sub(F8 a, F8 b) { return {vsubq_f32(a.v, b.v), vsubq_f32(a.w, b.w)}; }
inline F8 mul(F8 a, F8 b) { return {vmulq_f32(a.v, b.v), vmulq_f32(a.w, b.w)}; }
inline F8 div(F8 a, F8 b) { return {vdivq_f32(a.v, b.v), vdivq_f32(a.w, b.w)}; }
// a > b ? a : b, as the other instruction sets do it where one is no number
inline F8 max8(F8 a, F8 b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v), vbslq_f32(vcgtq_f32(a.w, b.w), a.w, b.w)}; }
inline F8 min8(F8 a, F8 b) { return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v), vbslq_f32(vcltq_f32(a.w, b.w), a.w, b.w)}; }
inline F8 fma8(F8 a, F8 b, F8 c) { return {vfmaq_f32(c.v, a.v, b.v), vfmaq_f32(c.w, a.w, b.w)}; }
inline F8 round8(F8 a) { return {vrndnq_f32(a.v), vrndnq_f32(a.w)}; }
inline F8 abs8(F8 a) { return {vabsq_f32(a.v), vabsq_f32(a.w)}; }
inline float32x4_t two_to(float32x4_t n) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23)); }
inline F8 two_to(F8 n) { return {two_to(n.v), two_to(n.w)}; }
#else
struct F8 {
  float v[8];
};
#define RADIX_EACH(expression) \
  F8 r;                        \
  for (int i = 0; i < 8; ++i) r.v[i] = (expression); \
  return r
inline F8 zero8() { RADIX_EACH(0.0f); }
inline F8 all8(float x) { RADIX_EACH(x); }
inline F8 load8(const float* p) { RADIX_EACH(p[i]); }
inline F8 load8(const uint16_t* p) { RADIX_EACH(from_bf16(p[i])); }
inline F8 load8(const int8_t* p) { RADIX_EACH(float(p[i])); }
inline F8 load8_half(const uint16_t* p) { RADIX_EACH(from_half(p[i])); }
inline void store8(float* p, F8 a) { std::memcpy(p, a.v, 32); }
inline void store8(int8_t* p, F8 a) {  // rounded to even
  for (int i = 0; i < 8; ++i) p[i] = int8_t(std::nearbyint(a.v[i]));
}
inline F8 add(F8 a, F8 b) { RADIX_EACH(a.v[i] + b.v[i]); }
inline F8 sub(F8 a, F8 b) { RADIX_EACH(a.v[i] - b.v[i]); }
inline F8 mul(F8 a, F8 b) { RADIX_EACH(a.v[i] * b.v[i]); }
inline F8 div(F8 a, F8 b) { RADIX_EACH(a.v[i] / b.v[i]); }
inline F8 max8(F8 a, F8 b) { RADIX_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline F8 min8(F8 a, F8 b) { RADIX_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
inline F8 fma8(F8 a, F8 b, F8 c) { RADIX_EACH(a.v[i] * b.v[i] + c.v[i]); }  // without the instruction, a fused one costs 50 times as much
inline F8 round8(F8 a) { RADIX_EACH(std::nearbyint(a.v[i])); }
inline F8 abs8(F8 a) { RADIX_EACH(std::fabs(a.v[i])); }
inline F8 two_to(F8 n) { RADIX_EACH(std::ldexp(1.0f, int(n.v[i]))); }
#undef RADIX_EACH
#endif

// a * b + c as `fma8` rounds it.
inline float fma1(float a, float b, float c) {
#if defined(__AVX2__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

inline F8 load8(const Half* p) { return load8_half(&p->bits); }

inline float sum_of(F8 a) {  // ((0+4)+(2+6)) + ((1+5)+(3+7)), on every machine
  float v[8];
  store8(v, a);
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

inline float max_of(F8 a) {
  float v[8], best;
  store8(v, a);
  best = v[0];
  for (int i = 1; i < 8; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

// The 8 x 8 Hadamard matrix times a vector, not scaled.
inline F8 hadamard8(F8 a) {
#if defined(__AVX2__)
  const auto step = [](__m256 x, __m256 partner, __m256 signs) { return _mm256_fmadd_ps(x, signs, partner); };
  a.v = step(a.v, _mm256_permute_ps(a.v, 0xb1), _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1));
  a.v = step(a.v, _mm256_permute_ps(a.v, 0x4e), _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1));
  a.v = step(a.v, _mm256_permute2f128_ps(a.v, a.v, 1), _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1));
  return a;
#else
  float x[8];
  store8(x, a);
  for (int stride = 1; stride < 8; stride *= 2)
    for (int i = 0; i < 8; ++i)
      if (!(i & stride)) {
        const float first = x[i], second = x[i + stride];
        x[i] = first + second, x[i + stride] = first - second;
      }
  return load8(x);
#endif
}

// Sums of eight vectors, each in the order of `sum_of`.
inline F8 sums_of(const F8 a[8]) {
#if defined(__AVX2__)
  __m256 t[8], u[4];
  for (int i = 0; i < 4; ++i) {  // (x0+x4, x1+x5, x2+x6, x3+x7) of vectors i and i + 4 side by side
    const __m256 low = _mm256_permute2f128_ps(a[i].v, a[i + 4].v, 0x20), high = _mm256_permute2f128_ps(a[i].v, a[i + 4].v, 0x31);
    t[i] = _mm256_add_ps(low, high);
  }
  for (int i = 0; i < 2; ++i) {  // add lanes 0+2 and 1+3 of pairs of vectors
    const __m256 x = t[2 * i], y = t[2 * i + 1];
    u[i] = _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xee));
  }
  return {_mm256_add_ps(_mm256_shuffle_ps(u[0], u[1], 0x88), _mm256_shuffle_ps(u[0], u[1], 0xdd))};
#else
  F8 r;
  for (int i = 0; i < 8; ++i) r.v[i] = sum_of(a[i]);
  return r;
#endif
}

// e^x to about 2 ulp for x <= 88; below -87 the result is 0. Range reduction by ln 2, then the degree-7 Taylor polynomial in Horner form.
inline F8 exp8(F8 x) {
  const F8 clamped = max8(min8(x, all8(88.0f)), all8(-87.0f));
  const F8 n = round8(mul(clamped, all8(1.44269504f)));
  F8 r = fma8(n, all8(-0.693145752f), clamped);
  r = fma8(n, all8(-1.42860677e-6f), r);
  F8 p = all8(1.0f / 5040);
  p = fma8(p, r, all8(1.0f / 720));
  p = fma8(p, r, all8(1.0f / 120));
  p = fma8(p, r, all8(1.0f / 24));
  p = fma8(p, r, all8(1.0f / 6));
  p = fma8(p, r, all8(0.5f));
  p = fma8(p, r, all8(1.0f));
  p = fma8(p, r, all8(1.0f));
  p = mul(p, two_to(n));
#if defined(__AVX2__)
  return {_mm256_and_ps(p.v, _mm256_cmp_ps(x.v, _mm256_set1_ps(-87.0f), _CMP_GE_OQ))};
#elif defined(__aarch64__)
  const float32x4_t low = vdupq_n_f32(-87.0f), zero = vdupq_n_f32(0);
  return {vbslq_f32(vcgeq_f32(x.v, low), p.v, zero), vbslq_f32(vcgeq_f32(x.w, low), p.w, zero)};
#else
  for (int i = 0; i < 8; ++i) p.v[i] = x.v[i] >= -87.0f ? p.v[i] : 0.0f;
  return p;
#endif
}

}  // namespace RADIX_ISA
