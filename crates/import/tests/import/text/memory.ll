; Addresses, stack, copies, and what attributes say.

%point = type { double, i32, [3 x float] }

define float @address(ptr noalias nocapture readonly align 16 dereferenceable(24) %p, i64 %i, i32 %j) memory(argmem: read) {
  %1 = getelementptr inbounds %point, ptr %p, i64 %i, i32 2, i32 %j
  %2 = load float, ptr %1, align 4
  %3 = getelementptr nuw i8, ptr %p, i64 -8
  %4 = load float, ptr %3, align 4
  %5 = fadd float %2, %4
  ret float %5
}

define i64 @stack(i64 %n) {
  %1 = alloca i64, align 8
  %2 = alloca double, i64 %n, align 16
  call void @llvm.lifetime.start.p0(ptr %1)
  store i64 %n, ptr %1, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1, ptr align 16 %2, i64 8, i1 false)
  call void @llvm.memmove.p0.p0.i32(ptr %1, ptr %2, i32 4, i1 false)
  call void @llvm.memset.p0.i64(ptr align 4 %2, i8 0, i64 %n, i1 false)
  %3 = load i64, ptr %1, align 8, !range !0
  call void @llvm.lifetime.end.p0(ptr %1)
  ret i64 %3
}

define ptr @allocation(i64 %n, i64 %m) {
  %1 = call ptr @new(i64 %n, i64 8)
  %2 = call ptr @resize(ptr %1, i64 %n, i64 8, i64 %m)
  %3 = call ptr @malloc(i64 %m)
  call void @free(ptr %3)
  %4 = call ptr @calloc(i64 %n, i64 4)
  call void @delete(ptr %4, i64 %n, i64 4)
  call void @_RNvCs_7___rustc35___rust_no_alloc_shim_is_unstable_v2()
  ret ptr %2
}

declare noalias ptr @new(i64, i64 allocalign) allockind("alloc,uninitialized,aligned") allocsize(0) "alloc-family"="rust"
declare noalias ptr @resize(ptr allocptr, i64, i64 allocalign, i64) allockind("realloc,aligned") allocsize(3) "alloc-family"="rust"
declare void @delete(ptr allocptr, i64, i64) allockind("free") "alloc-family"="rust"
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @_RNvCs_7___rustc35___rust_no_alloc_shim_is_unstable_v2()

@table = private constant [3 x double] [double 1.0, double 2.0, double 3.0]
@counter = global i64 5
@elsewhere = external global i32
@methods = private constant { ptr, i64, ptr } { ptr @stack, i64 8, ptr @table }
@rows = private constant [2 x { ptr, i64 }] [{ ptr, i64 } { ptr inttoptr (i64 8 to ptr), i64 0 }, { ptr, i64 } { ptr @table, i64 3 }]
@alias = alias double, ptr @table
@own = thread_local global i64 0

define double @globals(i64 %i) {
  %1 = getelementptr inbounds [3 x double], ptr @table, i64 0, i64 %i
  %2 = load double, ptr %1, align 8
  %3 = load double, ptr getelementptr (i8, ptr @table, i64 16), align 8
  %4 = load i64, ptr @counter, align 8
  %5 = load ptr, ptr @methods, align 8
  %6 = call i64 %5(i64 %4)
  %7 = load double, ptr @alias, align 8
  %8 = load i32, ptr @elsewhere, align 4
  %9 = call ptr @llvm.threadlocal.address.p0(ptr @own)
  store i64 %6, ptr %9, align 8
  %10 = fadd double %2, %3
  %11 = fadd double %10, %7
  %12 = getelementptr inbounds [2 x { ptr, i64 }], ptr @rows, i64 0, i64 %i
  %13 = load ptr, ptr %12, align 8
  %14 = load double, ptr %13, align 8
  %15 = fadd double %11, %14
  ret double %15
}

define ptr @end(i1 %c) {
entry:
  br i1 %c, label %then, label %join
then:
  br label %join
join:
  %p = phi ptr [ @counter, %entry ], [ getelementptr (i8, ptr @table, i64 24), %then ]
  ret ptr %p
}

!0 = !{i64 0, i64 10}

; The memory of a Vec that may be empty: an address all the way.
define double @maybe_empty(i64 %n, ptr %v) {
entry:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %join, label %some
some:
  %new = call ptr @malloc(i64 %n)
  %address = ptrtoint ptr %new to i64
  br label %join
join:
  %either = phi i64 [ 8, %entry ], [ %address, %some ]
  %next = add i64 %either, 16
  %p = inttoptr i64 %either to ptr
  %q = inttoptr i64 %next to ptr
  store double 1.0, ptr %q, align 8
  %x = load double, ptr %p, align 8
  %w = load i64, ptr %v, align 8
  %r = inttoptr i64 %w to ptr
  %y = load double, ptr %r, align 8
  %sum = fadd double %x, %y
  ret double %sum
}

; A number that was never a pointer.
define double @far(i64 %n) {
  %p = inttoptr i64 %n to ptr
  %x = load double, ptr %p, align 8
  ret double %x
}

; C and C++ allocate in many ways; `realloc` is followed back to what gave the memory.
define double @grow(i64 %n, double %x) {
entry:
  %first = call ptr @malloc(i64 8)
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %p = phi ptr [ %first, %entry ], [ %q, %loop ]
  %next = add i64 %i, 1
  %size = shl i64 %next, 3
  %q = call ptr @realloc(ptr %p, i64 %size)
  %at = getelementptr double, ptr %q, i64 %i
  store double %x, ptr %at
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  %last = load double, ptr %at
  call void @free(ptr %q)
  ret double %last
}

define double @aligned(double %x) {
  %place = alloca ptr
  %status = call i32 @posix_memalign(ptr %place, i64 64, i64 128)
  %p = load ptr, ptr %place
  store double %x, ptr %p
  %y = load double, ptr %p
  call void @free(ptr %p)
  ret double %y
}

define double @operators(double %x) {
  %p = call ptr @_Znwm(i64 8)
  %q = call ptr @_Znam(i64 80)
  %r = call ptr @_ZnwmSt11align_val_t(i64 64, i64 64)
  store double %x, ptr %p
  %y = load double, ptr %p
  call void @_ZdlPvm(ptr %p, i64 8)
  call void @_ZdaPv(ptr %q)
  call void @_ZdlPvmSt11align_val_t(ptr %r, i64 64, i64 64)
  ret double %y
}

; Quotients are not negative where the divisor is more than 1, or the dividend is not; remainders where the divisor is not.
define double @quotients(ptr %p, i64 %n, i64 %m, i32 %k) {
  %halved = udiv i64 %n, 2
  %v0 = getelementptr inbounds double, ptr %p, i64 %halved
  %same = udiv i64 %n, 1
  %v1 = getelementptr inbounds double, ptr %p, i64 %same
  %any = udiv i64 %n, %m
  %v2 = getelementptr inbounds double, ptr %p, i64 %any
  %small = zext i32 %k to i64
  %of_small = udiv i64 %small, %m
  %v3 = getelementptr inbounds double, ptr %p, i64 %of_small
  %by_small = urem i64 %n, %small
  %v4 = getelementptr inbounds double, ptr %p, i64 %by_small
  %v5 = load double, ptr %v0
  %v6 = load double, ptr %v1
  %v7 = load double, ptr %v2
  %v8 = load double, ptr %v3
  %v9 = load double, ptr %v4
  %v10 = fadd double %v5, %v6
  %v11 = fadd double %v7, %v8
  %v12 = fadd double %v10, %v11
  %v13 = fadd double %v12, %v9
  ret double %v13
}

declare ptr @realloc(ptr, i64)
declare i32 @posix_memalign(ptr, i64, i64)
declare ptr @_Znwm(i64)
declare ptr @_Znam(i64)
declare ptr @_ZnwmSt11align_val_t(i64, i64)
declare void @_ZdlPvm(ptr, i64)
declare void @_ZdaPv(ptr)
declare void @_ZdlPvmSt11align_val_t(ptr, i64, i64)
