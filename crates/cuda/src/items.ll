; What kernels call for their place in the index space and for local memory, functions for which there are instructions, and the kernel that counts iterations.

@__ferrozyme_shared = external addrspace(3) global [0 x i8], align 16

define internal i64 @__ferrozyme_group() alwaysinline {
  %number = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %wide = zext i32 %number to i64
  ret i64 %wide
}

define internal i64 @__ferrozyme_item() alwaysinline {
  %number = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %number to i64
  ret i64 %wide
}

define internal void @__ferrozyme_barrier() alwaysinline convergent {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

define internal float @__ferrozyme_exchange_f32(float %own, i64 %distance) alwaysinline convergent {
  %bit = trunc i64 %distance to i32
  %other = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %own, i32 %bit, i32 31)
  ret float %other
}

define internal i32 @__ferrozyme_exchange_i32(i32 %own, i64 %distance) alwaysinline convergent {
  %bit = trunc i64 %distance to i32
  %other = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %own, i32 %bit, i32 31)
  ret i32 %other
}

define internal ptr @__ferrozyme_local(i64 %bytes) alwaysinline {
  ret ptr addrspacecast (ptr addrspace(3) @__ferrozyme_shared to ptr)
}

; e to the power of a float, off by some three units in the last place. The instruction raises 2 to a power: to the product with log2 e, less one, so that nothing overflows before its time. What that is rounded by is made good in first order.
define internal float @__ferrozyme_exp_f32(float %x) alwaysinline {
  %less = call float @llvm.fma.f32(float %x, float 0x3FF7154760000000, float -1.0)
  %power = call float @llvm.nvvm.ex2.approx.f32(float %less)
  %minus = fneg float %less
  %near_one = call float @llvm.fma.f32(float %x, float 0x3FF7154760000000, float %minus)
  %rounded = fadd float %near_one, -1.0
  %rest = call float @llvm.fma.f32(float %x, float 0x3E54AE0C00000000, float %rounded)
  %slope = fmul float %rest, 0x3FE62E4300000000
  %better = call float @llvm.fma.f32(float %power, float %slope, float %power)
  ; Where the product or the power is infinite, so that the rest or what follows from it is not a number, the power is right.
  %is_number = fcmp ord float %better, 0.0
  %half = select i1 %is_number, float %better, float %power
  %result = fadd float %half, %half
  ret float %result
}

define ptx_kernel void @__ferrozyme_increment(ptr %counter) {
  %old = load i32, ptr %counter, align 4
  %new = add i32 %old, 1
  store i32 %new, ptr %counter, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32) convergent
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32) convergent
declare float @llvm.nvvm.ex2.approx.f32(float)
declare float @llvm.fma.f32(float, float, float)
