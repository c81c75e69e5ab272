; Which level of x86-64 the processor has, and the operating system supports: 2, 3, 4, or 0 for the baseline.
;
; The answer is kept, since asking takes hundreds of cycles. Threads that ask at the same time write the same number.

@__ferrozyme_known_level = internal global i32 -1, align 4

; The answer is at most this; tests set it.
@__ferrozyme_highest_level = internal constant i32 4, align 4

define i32 @__ferrozyme_processor_level() nounwind willreturn {
  %known = load atomic i32, ptr @__ferrozyme_known_level monotonic, align 4
  %is_known = icmp sge i32 %known, 0
  br i1 %is_known, label %told, label %ask
told:
  ret i32 %known
ask:
  %found = call i32 @__ferrozyme_ask_processor()
  %highest = load i32, ptr @__ferrozyme_highest_level, align 4
  %level = call i32 @llvm.umin.i32(i32 %found, i32 %highest)
  store atomic i32 %level, ptr @__ferrozyme_known_level monotonic, align 4
  ret i32 %level
}

; `cpuid` writes to rbx, which may be in use for the frame, so it is exchanged.
define internal { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 %leaf) alwaysinline nounwind willreturn {
  %answer = call { i32, i32, i32, i32 } asm "xchgq %rbx, ${1:q}\0Acpuid\0Axchgq %rbx, ${1:q}", "={ax},=r,={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 0)
  ret { i32, i32, i32, i32 } %answer
}

define internal i32 @__ferrozyme_ask_processor() noinline cold nounwind willreturn {
  %leaves_answer = call { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 0)
  %leaves = extractvalue { i32, i32, i32, i32 } %leaves_answer, 0
  %extended_answer = call { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 -2147483648)
  %extended_leaves = extractvalue { i32, i32, i32, i32 } %extended_answer, 0
  %has_seventh = icmp uge i32 %leaves, 7
  %has_extended = icmp uge i32 %extended_leaves, -2147483647
  %one = call { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 1)
  %features = extractvalue { i32, i32, i32, i32 } %one, 2
  %more_answer = call { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 -2147483647)
  %more_given = extractvalue { i32, i32, i32, i32 } %more_answer, 2
  %more = select i1 %has_extended, i32 %more_given, i32 0
  ; sse3, ssse3, cmpxchg16b, sse4.1, sse4.2, popcnt; lahf.
  %second_has = and i32 %features, 9970177
  %second_all = icmp eq i32 %second_has, 9970177
  %lahf_has = and i32 %more, 1
  %lahf = icmp eq i32 %lahf_has, 1
  %is_second = and i1 %second_all, %lahf
  br i1 %is_second, label %second, label %baseline
baseline:
  ret i32 0
second:
  ; fma, movbe, osxsave, avx, f16c; lzcnt.
  %third_has = and i32 %features, 943722496
  %third_all = icmp eq i32 %third_has, 943722496
  %lzcnt_has = and i32 %more, 32
  %lzcnt = icmp eq i32 %lzcnt_has, 32
  %third_basic = and i1 %third_all, %lzcnt
  %third_possible = and i1 %third_basic, %has_seventh
  br i1 %third_possible, label %ask_system, label %no_third
no_third:
  ret i32 2
ask_system:
  ; `xgetbv`: which registers the operating system keeps for each thread. It exists where osxsave is set.
  %kept_answer = call { i32, i32 } asm sideeffect ".byte 0x0f, 0x01, 0xd0", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %kept = extractvalue { i32, i32 } %kept_answer, 0
  %seven = call { i32, i32, i32, i32 } @__ferrozyme_cpuid(i32 7)
  %seventh = extractvalue { i32, i32, i32, i32 } %seven, 1
  ; bmi1, avx2, bmi2; xmm and ymm registers.
  %vectors_has = and i32 %seventh, 296
  %vectors = icmp eq i32 %vectors_has, 296
  %ymm_has = and i32 %kept, 6
  %ymm = icmp eq i32 %ymm_has, 6
  %is_third = and i1 %vectors, %ymm
  br i1 %is_third, label %third, label %no_third
third:
  ; avx512f, avx512dq, avx512cd, avx512bw, avx512vl; mask and zmm registers.
  %wide_has = and i32 %seventh, -805109760
  %wide = icmp eq i32 %wide_has, -805109760
  %zmm_has = and i32 %kept, 230
  %zmm = icmp eq i32 %zmm_has, 230
  %is_fourth = and i1 %wide, %zmm
  %level = select i1 %is_fourth, i32 4, i32 3
  ret i32 %level
}
