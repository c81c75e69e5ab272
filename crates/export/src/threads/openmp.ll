; The threads of OpenMP. The references to its runtime are weak: they are null in a program that is linked without it, which has one thread then. So has one that is linked with a part of an archive of it.
;
; `GOMP_parallel` is GCC's entry point to a parallel region; the runtimes of GCC and of LLVM both have it.

%team = type { i64, ptr, ptr }

declare extern_weak i32 @omp_get_max_threads()
declare extern_weak i32 @omp_in_parallel()
declare extern_weak i32 @omp_get_thread_num()
declare extern_weak i32 @omp_get_num_threads()
declare extern_weak void @GOMP_parallel(ptr, ptr, i32, i32)

define internal i1 @__ferrozyme_has_openmp() alwaysinline nounwind willreturn memory(none) {
  %has_max = icmp ne ptr @omp_get_max_threads, null
  %has_inside = icmp ne ptr @omp_in_parallel, null
  %has_own = icmp ne ptr @omp_get_thread_num, null
  %has_all = icmp ne ptr @omp_get_num_threads, null
  %has_fork = icmp ne ptr @GOMP_parallel, null
  %ask = and i1 %has_max, %has_inside
  %split = and i1 %has_own, %has_all
  %calls = and i1 %ask, %split
  %has = and i1 %calls, %has_fork
  ret i1 %has
}

; As many as a parallel region would get here; one in a parallel region, whoever began it.
define i64 @__ferrozyme_threads() nounwind willreturn {
  %is_linked = call i1 @__ferrozyme_has_openmp()
  br i1 %is_linked, label %ask, label %one
ask:
  %inside = call i32 @omp_in_parallel()
  %is_outside = icmp eq i32 %inside, 0
  br i1 %is_outside, label %outside, label %one
outside:
  %threads = call i32 @omp_get_max_threads()
  %all = sext i32 %threads to i64
  ret i64 %all
one:
  ret i64 1
}

define void @__ferrozyme_team(i64 %count, ptr %body, ptr %context) {
  %is_linked = call i1 @__ferrozyme_has_openmp()
  %several = icmp sgt i64 %count, 1
  %fork = and i1 %is_linked, %several
  br i1 %fork, label %parallel, label %alone
parallel:
  %team = alloca %team, align 8
  store i64 %count, ptr %team, align 8
  %body_at = getelementptr inbounds %team, ptr %team, i64 0, i32 1
  store ptr %body, ptr %body_at, align 8
  %context_at = getelementptr inbounds %team, ptr %team, i64 0, i32 2
  store ptr %context, ptr %context_at, align 8
  ; None means as many as there are, however many bodies there are.
  %threads = call i32 @omp_get_max_threads()
  %all = sext i32 %threads to i64
  %is_less = icmp slt i64 %count, %all
  %exactly = trunc i64 %count to i32
  %wanted = select i1 %is_less, i32 %exactly, i32 0
  call void @GOMP_parallel(ptr @__ferrozyme_member, ptr %team, i32 %wanted, i32 0)
  ret void
alone:
  call void @__ferrozyme_share(i64 0, i64 1, i64 %count, ptr %body, ptr %context)
  ret void
}

; What each thread of the team does. It may be fewer than there are bodies.
define internal void @__ferrozyme_member(ptr %team) {
  %first = call i32 @omp_get_thread_num()
  %members = call i32 @omp_get_num_threads()
  %first_number = sext i32 %first to i64
  %step = sext i32 %members to i64
  %count = load i64, ptr %team, align 8
  %body_at = getelementptr inbounds %team, ptr %team, i64 0, i32 1
  %body = load ptr, ptr %body_at, align 8
  %context_at = getelementptr inbounds %team, ptr %team, i64 0, i32 2
  %context = load ptr, ptr %context_at, align 8
  call void @__ferrozyme_share(i64 %first_number, i64 %step, i64 %count, ptr %body, ptr %context)
  ret void
}

; Every `step`-th body, from the first on.
define internal void @__ferrozyme_share(i64 %first, i64 %step, i64 %count, ptr %body, ptr %context) {
  %some = icmp slt i64 %first, %count
  br i1 %some, label %loop, label %done
loop:
  %number = phi i64 [ %first, %0 ], [ %next, %loop ]
  call void %body(ptr %context, i64 %number)
  %next = add nsw i64 %number, %step
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
