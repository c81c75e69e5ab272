; What kernels call for their place in the index space and for local memory, and the kernel that counts iterations.

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
