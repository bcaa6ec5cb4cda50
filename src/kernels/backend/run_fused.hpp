#pragma once
// Loops of fused multiply-adds, compiled for the processor that has the instruction.
//
// Contract: run_fused<Loop>(arguments...) is Loop::run(arguments...), whose body is inlined
// ([[gnu::always_inline]]) into a function for AVX2 where the processor has it. Where there is no
// such instruction the same bits come out of the C library's fma, slowly. Only for
// files that are compiled with -ffp-contract=off.

namespace strata {

#if defined(__x86_64__)
template <class Loop, class... Arguments>
[[gnu::target("avx2,fma")]] void run_on_avx2(Arguments... arguments) {
  Loop::run(arguments...);
}
template <class Loop, class... Arguments>
void run_fused(Arguments... arguments) {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  has ? run_on_avx2<Loop>(arguments...) : Loop::run(arguments...);
}
#else
template <class Loop, class... Arguments>
void run_fused(Arguments... arguments) {
  Loop::run(arguments...);
}
#endif

}  // namespace strata
