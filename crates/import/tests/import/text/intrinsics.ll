; Intrinsics, and functions of C's library, are operations.

define double @floats(double %x, double %y, i32 %n) {
  %1 = call double @llvm.fma.f64(double %x, double %y, double 1.0)
  %2 = call fast double @llvm.fmuladd.f64(double %1, double %y, double 1.0)
  %3 = call double @llvm.maxnum.f64(double %2, double %y)
  %4 = call double @llvm.maximumnum.f64(double %3, double %y)
  %5 = call double @llvm.minimum.f64(double %4, double %y)
  %6 = call double @llvm.powi.f64.i32(double %5, i32 %n)
  %7 = call double @llvm.roundeven.f64(double %6)
  %8 = call { double, i32 } @llvm.frexp.f64.i32(double %7)
  %9 = extractvalue { double, i32 } %8, 0
  %10 = call { double, double } @llvm.sincos.f64(double %9)
  %11 = extractvalue { double, double } %10, 1
  %12 = call double @cbrt(double %11)
  %13 = call double @hypot(double %12, double %y)
  %14 = fptrunc double %13 to float
  %15 = call float @expm1f(float %14)
  %16 = fpext float %15 to double
  %17 = call double @user(double %16)
  ret double %17
}

declare double @user(double) memory(none) willreturn nounwind

define double @gamma(double %x, ptr %sign) {
  %1 = call double @lgamma_r(double %x, ptr %sign)
  %2 = call double @tgamma(double %1)
  ret double %2
}

define i64 @integers(i64 %x, i64 %y) {
  %1 = call i64 @llvm.abs.i64(i64 %x, i1 true)
  %2 = call i64 @llvm.umin.i64(i64 %1, i64 %y)
  %3 = call i64 @llvm.fshl.i64(i64 %2, i64 %2, i64 13)
  %4 = call i8 @llvm.scmp.i8.i64(i64 %3, i64 %y)
  %5 = sext i8 %4 to i64
  %6 = call i64 @llvm.uadd.sat.i64(i64 %5, i64 %y)
  %7 = call i64 @llvm.ctlz.i64(i64 %6, i1 false)
  %8 = call i64 @llvm.expect.i64(i64 %7, i64 3)
  ret i64 %8
}

define { i32, i1 } @overflow(i32 %x, i32 %y) {
  %1 = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %x, i32 %y)
  %2 = extractvalue { i32, i1 } %1, 0
  %3 = call { i32, i1 } @llvm.umul.with.overflow.i32(i32 %2, i32 %y)
  ret { i32, i1 } %3
}

define i1 @class(float %x) {
  %1 = call i1 @llvm.is.fpclass.f32(float %x, i32 516)
  ret i1 %1
}

define i32 @saturating(double %x) {
  %1 = call i32 @llvm.fptosi.sat.i32.f64(double %x)
  call void @llvm.assume(i1 true)
  ret i32 %1
}

define ptr @masked(ptr %p) {
  %1 = call ptr @llvm.ptrmask.p0.i64(ptr %p, i64 -16)
  ret ptr %1
}

declare double @cbrt(double)
declare double @hypot(double, double)
declare float @expm1f(float)
declare double @lgamma_r(double, ptr)
declare double @tgamma(double)

define { i128, i1 } @wide(i128 %x, i128 %y) {
  %1 = call { i128, i1 } @llvm.smul.with.overflow.i128(i128 %x, i128 %y)
  ret { i128, i1 } %1
}

define double @library(double %x, double %y, ptr %p) {
  %1 = call double @__exp_finite(double %x)
  %2 = call double @scalbln(double %1, i64 4)
  %3 = call i64 @lround(double %2)
  %4 = sitofp i64 %3 to double
  %5 = call double @remquo(double %4, double %y, ptr %p)
  %6 = call double @cabs(double %5, double %y)
  %7 = fptrunc double %6 to float
  %8 = insertelement <2 x float> poison, float %7, i64 0
  %9 = insertelement <2 x float> %8, float %7, i64 1
  %10 = call float @cargf(<2 x float> %9)
  %11 = fpext float %10 to double
  %12 = call double @drem(double %11, double %y)
  %13 = call i32 @isnan(double %12)
  %14 = sitofp i32 %13 to double
  %15 = call i32 (ptr, ...) @printf(ptr %p, double %14)
  ret double %14
}

define { double, double } @complex(double %x, double %y) {
  %1 = call { double, double } @cexp(double %x, double %y)
  ret { double, double } %1
}

declare double @__exp_finite(double)
declare double @scalbln(double, i64)
declare i64 @lround(double)
declare double @remquo(double, double, ptr)
declare double @cabs(double, double)
declare float @cargf(<2 x float>)
declare double @drem(double, double)
declare i32 @isnan(double)
declare i32 @printf(ptr, ...)
declare { double, double } @cexp(double, double)

; A program may have a function of its own by a name that C does not reserve.
define double @drem2(double %x) {
  %1 = call double @j1(double %x)
  ret double %1
}

define double @j1(double %x) {
  %1 = fmul double %x, 2.0
  ret double %1
}
