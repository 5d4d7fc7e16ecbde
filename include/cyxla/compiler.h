/* What kernels ask of a compiler beyond C11, for gcc and clang.
 *
 * A sequence of blocks separated by blank lines; generated code pastes those that it names.
 */
#ifndef CYXLA_COMPILER_H
#define CYXLA_COMPILER_H

/* prefix_name, of arguments that may be macros: the names of a template's functions. */
#define CYX_JOIN_(prefix, name) prefix##_##name
#define CYX_JOIN(prefix, name) CYX_JOIN_(prefix, name)

/* Let the compiler fuse multiplications and additions in one function: an attribute, and the first statement. */
#if defined(__clang__)
#define CYX_FUSED
#define CYX_FUSE _Pragma("clang fp contract(fast)")
#else
#define CYX_FUSED __attribute__((optimize("fp-contract=fast")))
#define CYX_FUSE
#endif

/* Before a loop whose iterations do not depend on each other through memory. */
#if defined(__clang__)
#define CYX_INDEPENDENT
#else
#define CYX_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* In the body of a loop that runs too seldom or too short for vectors of it to be worth compiling. */
#define CYX_SCALAR_LOOP __asm__ volatile("");

#endif
