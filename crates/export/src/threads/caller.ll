; A program without threads for derivatives: one thread, which calls the bodies of a team one after the other.

define i64 @__ferrozyme_threads() alwaysinline nounwind willreturn memory(none) {
  ret i64 1
}

define void @__ferrozyme_team(i64 %count, ptr %body, ptr %context) {
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %done
loop:
  %number = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void %body(ptr %context, i64 %number)
  %next = add nuw nsw i64 %number, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
