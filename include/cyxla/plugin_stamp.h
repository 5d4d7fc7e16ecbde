/* Stamp of a library of kernels: the version of the interface, and the processor features that its code may use.
 *
 * It is read from the file before any code of the library runs.
 */
#ifndef CYXLA_PLUGIN_STAMP_H
#define CYXLA_PLUGIN_STAMP_H

/* Features that the compiler may use, spelled as in /proc/cpuinfo. */
#ifdef __SSE4_2__
#define CYXLA_F_SSE42 "sse4_2,"
#else
#define CYXLA_F_SSE42 ""
#endif
#ifdef __AVX__
#define CYXLA_F_AVX "avx,"
#else
#define CYXLA_F_AVX ""
#endif
#ifdef __AVX2__
#define CYXLA_F_AVX2 "avx2,"
#else
#define CYXLA_F_AVX2 ""
#endif
#ifdef __FMA__
#define CYXLA_F_FMA "fma,"
#else
#define CYXLA_F_FMA ""
#endif
#ifdef __AVX512F__
#define CYXLA_F_AVX512 "avx512f,"
#else
#define CYXLA_F_AVX512 ""
#endif
#ifndef CYXLA_EXTRA_FEATURES
#define CYXLA_EXTRA_FEATURES "" /* further features, each followed by a comma */
#endif
#define CYXLA_FEATURES CYXLA_F_SSE42 CYXLA_F_AVX CYXLA_F_AVX2 CYXLA_F_FMA CYXLA_F_AVX512 CYXLA_EXTRA_FEATURES

#if defined(__x86_64__)
#define CYXLA_MACHINE "x86_64"
#elif defined(__aarch64__)
#define CYXLA_MACHINE "aarch64"
#else
#define CYXLA_MACHINE "other"
#endif

#define CYXLA_TEXT_(x) #x
#define CYXLA_TEXT(x) CYXLA_TEXT_(x)
#ifdef __cplusplus
#define CYXLA_EXPORT extern "C" __attribute__((visibility("default"), used))
#else
#define CYXLA_EXPORT __attribute__((visibility("default"), used))
#endif

/* CYXLA_KERNEL_ABI is that of the interface which the file includes. */
#define CYXLA_STAMP_TEXT \
  "cyxla-kernel-plugin abi=" CYXLA_TEXT(CYXLA_KERNEL_ABI) " machine=" CYXLA_MACHINE " features=" CYXLA_FEATURES ";"
#define CYXLA_KERNEL_STAMP CYXLA_EXPORT const char cyxla_kernel_stamp[] = CYXLA_STAMP_TEXT;

#endif
