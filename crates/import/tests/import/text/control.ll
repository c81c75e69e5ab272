; Loops, switches, exits.

define double @guarded(ptr noalias readonly captures(none) %p, i64 range(i64 0, 1000) %n) {
entry:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %exit, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %q = getelementptr inbounds nuw double, ptr %p, i64 %i
  %x = load double, ptr %q, align 8
  %more = fadd double %sum, %x
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  %r = phi double [ 0.0, %entry ], [ %more, %loop ]
  ret double %r
}

define i64 @cases(i64 %x) {
entry:
  switch i64 %x, label %other [
    i64 0, label %zero
    i64 1, label %one
    i64 -1, label %one
    i64 5, label %other
  ]
zero:
  ret i64 10
one:
  %r = phi i64 [ 20, %entry ], [ 20, %entry ]
  ret i64 %r
other:
  ret i64 %x
}

define i64 @first(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %end = icmp eq i64 %i, %n
  br i1 %end, label %missing, label %body
body:
  %q = getelementptr i64, ptr %p, i64 %i
  %x = load i64, ptr %q, align 8
  %next = add i64 %i, 1
  %found = icmp eq i64 %x, 0
  br i1 %found, label %hit, label %head
hit:
  ret i64 %i
missing:
  ret i64 -1
}

declare void @panic(i64, i64) noreturn cold

define double @checked(ptr %p, i64 %i, i64 %n) {
entry:
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %good, label %bad
good:
  %q = getelementptr inbounds double, ptr %p, i64 %i
  %x = load double, ptr %q, align 8
  ret double %x
bad:
  call void @panic(i64 %i, i64 %n)
  unreachable
}

define void @forever() {
entry:
  br label %loop
loop:
  call void @work()
  br label %loop
}

declare void @work()

define void @aborts(i1 %c) {
entry:
  br i1 %c, label %good, label %bad
good:
  ret void
bad:
  call void @llvm.trap()
  unreachable
}

declare void @llvm.trap()
