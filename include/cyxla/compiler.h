/* Extensions of C11 that kernels use, for gcc and clang.
 *
 * A sequence of blocks separated by blank lines; generated code pastes those that it names.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_COMPILER_H
#define CYXLA_COMPILER_H

/* prefix_name, for arguments that may be macros: the name of a template's function. */
#define CYX_JOIN_(prefix, name) prefix##_##name
#define CYX_JOIN(prefix, name) CYX_JOIN_(prefix, name)

/* Allow the compiler to fuse multiplications and additions in a function: its attribute, and its first statement. */
#if defined(__clang__)
#define CYX_FUSED
#define CYX_FUSE _Pragma("clang fp contract(fast)")
#else
#define CYX_FUSED __attribute__((optimize("fp-contract=fast")))
#define CYX_FUSE
#endif

/* Precedes a loop whose iterations do not depend on each other through memory. */
#if defined(__clang__)
#define CYX_INDEPENDENT
#else
#define CYX_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* The elements of a vector at given places; `places` is a vector of integers of their size. */
#if defined(__clang__)
#define CYX_SHUFFLE(places, v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define CYX_SHUFFLE(places, v, ...) __builtin_shuffle(v, (places){__VA_ARGS__})
#endif

/* f(0) f(1) .. f(n - 1), the same backwards, and f(r, 0) f(r, 1) .. f(r, n - 1), for an n that may be a macro: gcc
   keeps named vectors in registers, but not the elements of an array, even if all loops over it are unrolled. */
#define CYX_ROWS_(n, f) CYX_ROWS_##n(f)
#define CYX_ROWS(n, f) CYX_ROWS_(n, f)
#define CYX_ROWS_1(f) f(0)
#define CYX_ROWS_2(f) CYX_ROWS_1(f) f(1)
#define CYX_ROWS_3(f) CYX_ROWS_2(f) f(2)
#define CYX_ROWS_4(f) CYX_ROWS_3(f) f(3)
#define CYX_ROWS_5(f) CYX_ROWS_4(f) f(4)
#define CYX_ROWS_6(f) CYX_ROWS_5(f) f(5)
#define CYX_ROWS_7(f) CYX_ROWS_6(f) f(6)
#define CYX_ROWS_8(f) CYX_ROWS_7(f) f(7)
#define CYX_ROWS_9(f) CYX_ROWS_8(f) f(8)
#define CYX_ROWS_10(f) CYX_ROWS_9(f) f(9)
#define CYX_ROWS_11(f) CYX_ROWS_10(f) f(10)
#define CYX_ROWS_12(f) CYX_ROWS_11(f) f(11)
#define CYX_ROWS_13(f) CYX_ROWS_12(f) f(12)
#define CYX_ROWS_14(f) CYX_ROWS_13(f) f(13)
#define CYX_ROWS_BACKWARDS_(n, f) CYX_ROWS_BACKWARDS_##n(f)
#define CYX_ROWS_BACKWARDS(n, f) CYX_ROWS_BACKWARDS_(n, f)
#define CYX_ROWS_BACKWARDS_1(f) f(0)
#define CYX_ROWS_BACKWARDS_2(f) f(1) CYX_ROWS_BACKWARDS_1(f)
#define CYX_ROWS_BACKWARDS_3(f) f(2) CYX_ROWS_BACKWARDS_2(f)
#define CYX_ROWS_BACKWARDS_4(f) f(3) CYX_ROWS_BACKWARDS_3(f)
#define CYX_ROWS_BACKWARDS_5(f) f(4) CYX_ROWS_BACKWARDS_4(f)
#define CYX_ROWS_BACKWARDS_6(f) f(5) CYX_ROWS_BACKWARDS_5(f)
#define CYX_ROWS_BACKWARDS_7(f) f(6) CYX_ROWS_BACKWARDS_6(f)
#define CYX_ROWS_BACKWARDS_8(f) f(7) CYX_ROWS_BACKWARDS_7(f)
#define CYX_COLUMNS_(n, f, r) CYX_COLUMNS_##n(f, r)
#define CYX_COLUMNS(n, f, r) CYX_COLUMNS_(n, f, r)
#define CYX_COLUMNS_1(f, r) f(r, 0)
#define CYX_COLUMNS_2(f, r) CYX_COLUMNS_1(f, r) f(r, 1)
#define CYX_COLUMNS_3(f, r) CYX_COLUMNS_2(f, r) f(r, 2)
#define CYX_COLUMNS_4(f, r) CYX_COLUMNS_3(f, r) f(r, 3)
#define CYX_COLUMNS_5(f, r) CYX_COLUMNS_4(f, r) f(r, 4)
#define CYX_COLUMNS_6(f, r) CYX_COLUMNS_5(f, r) f(r, 5)
#define CYX_COLUMNS_7(f, r) CYX_COLUMNS_6(f, r) f(r, 6)
#define CYX_COLUMNS_8(f, r) CYX_COLUMNS_7(f, r) f(r, 7)

/* Stands in the body of a loop that is too short or too rare for vectors to be worth their compile time. */
#define CYX_SCALAR_LOOP __asm__ volatile("");

#endif
