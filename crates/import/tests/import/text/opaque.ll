; What the Loop IR has no word for moves into functions of its own.

define i64 @atomics(ptr %p, i64 %n) {
  %1 = atomicrmw add ptr %p, i64 %n monotonic, align 8
  %2 = cmpxchg ptr %p, i64 %1, i64 5 acq_rel acquire, align 8
  %3 = extractvalue { i64, i1 } %2, 0
  fence acquire
  %4 = load atomic i64, ptr %p acquire, align 8
  store volatile i64 %4, ptr %p, align 8
  %5 = add i64 %3, %4
  ret i64 %5
}

define double @hidden_float(ptr %p) {
  %1 = load atomic i64, ptr %p monotonic, align 8
  %2 = bitcast i64 %1 to double
  ret double %2
}

; A pointer may lead to floats.
define ptr @handed_over(ptr %place, ptr %box) {
  store atomic ptr %box, ptr %place release, align 8
  %1 = load atomic ptr, ptr %place acquire, align 8
  ret ptr %1
}

; Memory may hold the bits of floats.
define void @passed_on(ptr %p, ptr %q) {
  %1 = load atomic i64, ptr %p monotonic, align 8
  store i64 %1, ptr %q, align 8
  %2 = load i64, ptr %q, align 8
  store atomic i64 %2, ptr %p monotonic, align 8
  ret void
}

define i64 @assembly(i64 %n) {
  %1 = call i64 asm sideeffect "bswap $0", "=r,0"(i64 %n)
  %2 = call i64 @llvm.readcyclecounter()
  %3 = add i64 %1, %2
  ret i64 %3
}

declare i32 @printf(ptr, ...)
@text = private constant [4 x i8] c"%f\0A\00"

define void @prints(double %x) {
  %1 = call i32 (ptr, ...) @printf(ptr @text, double %x)
  ret void
}

define double @uses_long_double(double %x) {
  %1 = call double @long(double %x)
  ret double %1
}

define internal double @long(double %x) {
  %1 = fpext double %x to x86_fp80
  %2 = fadd x86_fp80 %1, %1
  %3 = fptrunc x86_fp80 %2 to double
  ret double %3
}
